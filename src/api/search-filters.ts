import * as z from 'zod';

/**
 * Describes the filter keys of a search.
 *
 * The API document shows no keys except `limit` and `cursor` (Endpoints, rule 4). The local library describes its own
 * keys in this form, and a JSON file of the same form (`AD_LIBRARY_SEARCH_FILTERS`) describes those of another service.
 */

/** `strings` is a list, any of which may match; `date` is an ISO 8601 date or date-time. */
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
  .refine((filters) => new Set(filters.map(({ key }) => key)).size === filters.length, 'each key may appear only once')
  .default([]);

export const SearchFilters = z
  .strictObject({ ads: filterList.describe('keys of searchAds'), pages: filterList.describe('keys of searchPages') })
  .describe('the filter keys of a service, by search');
export type SearchFilters = z.infer<typeof SearchFilters>;
