import type { SearchFilter, SearchFilters } from '../api/search-filters.ts';
import { type Measure, type RecordType, recordTypes, type Tag } from './record-type.ts';

/**
 * The filter keys of this library, derived from the record types. Validation, the text of a 422, the OpenAPI document
 * and what a model reads in demo mode all come from these two lists.
 */

const maxLength = { text: 300, list: 50 };

function bounds({ key, about, date }: Measure): SearchFilter[] {
  const type = date ? 'date' : 'number';
  return [
    { key: `${key}From`, type, description: `At or above: ${about}` },
    { key: `${key}To`, type, description: `At or below: ${about}${date ? '; a date alone means its whole day' : ''}` },
  ];
}

function anyOf({ key, about, values, boolean, example }: Tag): SearchFilter {
  if (boolean) return { key, type: 'boolean', description: `Only records that say ${about}` };
  const filter: SearchFilter = { key, type: 'strings', description: `Any of: ${about}`, maxLength: maxLength.list };
  return { ...filter, ...(values && { values }), ...(example !== undefined && { example }) };
}

function filtersOf(recordType: RecordType, textFilters: SearchFilter[]): SearchFilter[] {
  const measures = recordType.measures.map(({ key }) => key);
  return [
    ...textFilters,
    ...recordType.tags.map(anyOf),
    ...recordType.measures.flatMap(bounds),
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
  maxLength: maxLength.text,
  example: 'summer sale -shoes',
});

export const libraryFilters: SearchFilters = {
  ads: filtersOf(recordTypes.ads, [
    query('the copy, headline, product, cards or advertiser name'),
    {
      key: 'advertiser',
      type: 'string',
      description: 'Words of the advertiser page’s name',
      maxLength: maxLength.text,
    },
    { key: 'active', type: 'boolean', description: 'Whether the ad has no endDate, or one that is still to come' },
  ]),
  pages: filtersOf(recordTypes.pages, [query('the page name')]),
};
