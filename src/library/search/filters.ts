import type { SearchFilter, SearchFilters } from '../../api/search-filters.ts';
import { type Measure, type RecordType, recordTypes, type Tag, type TextFilter } from './ads-and-pages.ts';

/**
 * The filter keys of this library, derived from the record types. Validation, the text of a 422, `library filters` and
 * what a model reads all come from these two lists. The build puts the values in place of this module.
 */

const maxLength = { text: 300, list: 50 };

function bounds({ key, about, date }: Measure): SearchFilter[] {
  const type = date ? 'date' : 'number';
  return [
    { key: `${key}From`, type, description: `At or above: ${about}` },
    { key: `${key}To`, type, description: `At or below: ${about}${date ? '; a date alone means its whole day' : ''}` },
  ];
}

function words({ key, about, columns: _, ...rest }: TextFilter): SearchFilter {
  const description = `Words that must all occur in ${about}; "…" for an exact phrase, -word for what must not occur, alone too`;
  return { key, type: 'query', description, maxLength: maxLength.text, ...rest };
}

function anyOf({
  key,
  about,
  boolean,
  all,
  opaque,
  valuesOf: _,
  furtherValuesOf: __,
  columnKeys: ___,
  ...rest
}: Tag): SearchFilter {
  const counted = !opaque && !all && { counted: true };
  if (boolean) return { key, type: 'boolean', description: `Only records that say ${about}`, ...rest, ...counted };
  const description = all ? about : `Any of: ${about}`;
  return { key, type: 'strings', description, maxLength: maxLength.list, ...rest, ...counted };
}

const inverted = (keys: SearchFilter[]): SearchFilter => ({
  key: 'not',
  type: 'filters',
  description: `None of these filters may match; each key of missing counts by itself. Records without a value are found, too. Takes all other keys but sort and order: ${keys[0]?.key} …`,
  note: 'without sort and order; leaves out what any of them finds',
});

function filtersOf({ textFilters, tags, measures }: RecordType, others: SearchFilter[] = []): SearchFilter[] {
  const conditions = [...textFilters.map(words), ...others, ...tags.map(anyOf), ...measures.flatMap(bounds)];
  const sortable = measures.map(({ key }) => key);
  const [first] = sortable;
  return [
    { key: 'limit', type: 'integer', minimum: 1, ...searchLimit },
    ...conditions,
    inverted(conditions),
    {
      key: 'sort',
      type: 'string',
      description: 'What to sort by, records without it last',
      values: sortable,
      ...(first && { default: first }),
    },
    { key: 'order', type: 'string', description: 'Direction of the sort', values: ['desc', 'asc'], default: 'desc' },
  ];
}

/** Bounds of a search's page; the document leaves them open. */
export const searchLimit = { default: 20, maximum: 100 };

export const libraryFilters = {
  inclusive: true,
  ignoresCase: true,
  ads: filtersOf(recordTypes.ads, [
    {
      key: 'active',
      type: 'boolean',
      description:
        'true: endDate lies ahead, or there is none and the ad was seen at most two days ago; false: endDate is past. Whether any other ad runs is unknown: only missing active finds it',
      note: 'true: seen in the last 2 days or endDate ahead; false: endDate past; unknown: missing active',
      single: true,
      counted: true,
    },
  ]),
  pages: filtersOf(recordTypes.pages),
} satisfies SearchFilters;
