import * as z from 'zod';

/**
 * The form in which filter keys of a search are described.
 *
 * The API document does not show the keys beyond `limit` and `cursor` (Endpoints, rule 4). Whoever knows those of a
 * service writes them down in this form: the local library does so for its own, and a JSON file of the same form
 * (`AD_LIBRARY_SEARCH_FILTERS`) does it for any other service.
 */

/** What a filter takes. `strings` is a list of which any one may match; `date` is an ISO 8601 date or date-time. */
export const filterTypes = ['string', 'strings', 'integer', 'number', 'boolean', 'date'] as const;

export const SearchFilter = z
  .strictObject({
    key: z.string().min(1).max(100),
    type: z.enum(filterTypes),
    description: z.string().min(1).max(1000),
    values: z.array(z.string()).min(1).optional().describe('the only values allowed (string, strings)'),
    minimum: z.number().optional().describe('lowest value (integer, number)'),
    maximum: z.number().optional().describe('highest value (integer, number)'),
    maxLength: z.number().int().positive().optional().describe('longest text (string) or list (strings)'),
    example: z.unknown().optional(),
  })
  .describe('one filter key of a search');
export type SearchFilter = z.infer<typeof SearchFilter>;

const filterList = z
  .array(SearchFilter)
  .refine((filters) => new Set(filters.map(({ key }) => key)).size === filters.length, 'each key may stand only once')
  .default([]);

export const SearchFilters = z
  .strictObject({ ads: filterList.describe('keys of searchAds'), pages: filterList.describe('keys of searchPages') })
  .describe('the filter keys of a service, by search');
export type SearchFilters = z.infer<typeof SearchFilters>;
