import type { SearchFilter, SearchFilters } from '../api/search-filters.ts';

/** Describes the `filters` argument of each search, where its keys are known, in few tokens. */
export const filterHints = ({ ads, pages }: SearchFilters): Record<string, string> => ({
  ...(ads.length > 0 && { search_ads: hint(ads) }),
  ...(pages.length > 0 && { search_pages: hint(pages) }),
});

const hint = (filters: readonly SearchFilter[]) =>
  `Keys: ${merged(filters)
    .map(({ name, filter }) => `${name}${typeText(filter)}`)
    .join('; ')}`;

/** Merges `startedAtFrom` and `startedAtTo` into `startedAtFrom/To`. */
function merged(filters: readonly SearchFilter[]) {
  const keys = new Set(filters.map(({ key }) => key));
  return filters.flatMap((filter) => {
    const stem = /^(.+)(From|To)$/.exec(filter.key);
    const isPair = stem !== null && keys.has(`${stem[1]}From`) && keys.has(`${stem[1]}To`);
    if (isPair && stem[2] === 'To') return [];
    return [{ name: isPair ? `${filter.key}/To` : filter.key, filter }];
  });
}

function typeText({ type, values, example }: SearchFilter): string {
  const words = {
    string: '',
    strings: 'list',
    integer: 'number',
    number: 'number',
    boolean: 'true/false',
    date: 'date',
  }[type];
  const allowed = values ? values.join(', ') : undefined;
  const shown = allowed ?? (example === undefined ? undefined : `e.g. ${JSON.stringify(example)}`);
  const parts = [words, shown].filter(Boolean).join(': ');
  return parts === '' ? '' : ` (${parts})`;
}
