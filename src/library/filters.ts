import type { SearchFilter, SearchFilters } from '../api/search-filters.ts';
import { type Measure, type Shelf, shelves, type Tag } from './shelves.ts';

/**
 * The filter keys of this library, made from what its shelves can be searched by. Validation, the text of a 422, the
 * OpenAPI document and the description a model reads in demo mode all come from these two lists.
 */

const longest = { text: 300, list: 50 };

function bounds({ key, about, date }: Measure): SearchFilter[] {
  const type = date ? 'date' : 'number';
  return [
    { key: `${key}From`, type, description: `At or above: ${about}` },
    { key: `${key}To`, type, description: `At or below: ${about}${date ? '; a date alone means its whole day' : ''}` },
  ];
}

function anyOf({ key, about, values, boolean, example }: Tag): SearchFilter {
  if (boolean) return { key, type: 'boolean', description: `Only records that say ${about}` };
  const filter: SearchFilter = { key, type: 'strings', description: `Any of: ${about}`, maxLength: longest.list };
  return { ...filter, ...(values && { values }), ...(example !== undefined && { example }) };
}

function describe(shelf: Shelf, words: SearchFilter[]): SearchFilter[] {
  const measures = shelf.measures.map(({ key }) => key);
  return [
    ...words,
    ...shelf.tags.map(anyOf),
    ...shelf.measures.flatMap(bounds),
    {
      key: 'sort',
      type: 'string',
      description: `What to sort by, records without it last; ${measures[0]} when left out`,
      values: measures,
    },
    { key: 'order', type: 'string', description: 'Direction of the sort; desc when left out', values: ['desc', 'asc'] },
  ];
}

const query = (where: string): SearchFilter => ({
  key: 'query',
  type: 'string',
  description: `Words that must all occur in ${where}; "…" for an exact phrase, -word for what must not occur`,
  maxLength: longest.text,
  example: 'summer sale -shoes',
});

export const libraryFilters: SearchFilters = {
  ads: describe(shelves.ads, [
    query('the copy, headline, product, cards or advertiser name'),
    { key: 'advertiser', type: 'string', description: 'Words of the advertiser page’s name', maxLength: longest.text },
    { key: 'active', type: 'boolean', description: 'Whether the ad has no endDate, or one that is still to come' },
  ]),
  pages: describe(shelves.pages, [query('the page name')]),
};
