import * as z from 'zod';

/*
 * Describes the filter keys of a search.
 *
 * The API document lists no filter keys except `limit` and `cursor` (*Endpoints*, rule 4). The local library describes
 * its own keys in this format: `library filters` prints the description, and a served library returns it at
 * `/filters.json`. For any other service, users provide a JSON file in the same format (`AD_LIBRARY_SEARCH_FILTERS`).
 */

/**
 * The types of filter values:
 * - `query`: words, `"phrases"` and `-excluded` words.
 * - `strings`: a list. A search matches ads with any of its entries.
 * - `date`: an ISO 8601 date or date-time.
 * - `filters`: an object with the other filter keys.
 */
const filterTypes = ['query', 'string', 'strings', 'integer', 'number', 'boolean', 'date', 'filters'] as const;

const createFilterSchema = () =>
  z
    .strictObject({
      key: z.string().min(1).max(100),
      type: z.enum(filterTypes).optional().describe('left out where it is not known'),
      description: z.string().min(1).max(1000).optional().describe('for people'),
      note: z.string().min(1).max(100).optional().describe('a few words that the model reads beside the key'),
      values: z.array(z.string()).min(1).optional().describe('the values allowed (string, strings)'),
      open: z.boolean().optional().describe('true: the values listed are common ones, and others are allowed'),
      single: z.boolean().optional().describe('true: no record has more than one value, so counts by value add up'),
      counted: z
        .boolean()
        .optional()
        .describe('true: a search with countBy of this key tells its values with their numbers'),
      fields: z.array(z.string()).min(1).optional().describe('the fields it looks in (query)'),
      minimum: z.number().optional().describe('lowest value (integer, number)'),
      maximum: z.number().optional().describe('highest value (integer, number)'),
      maxLength: z.number().int().positive().optional().describe('longest text (query, string) or list (strings)'),
      default: z.union([z.string(), z.number(), z.boolean()]).optional().describe('the value when it is left out'),
      example: z.unknown().optional(),
    })
    .describe('one filter key of a search; the key "limit" describes the page size');
/** A key by which a search can filter ads or pages, with its type, its allowed values and a description. */
export type SearchFilter = z.infer<ReturnType<typeof createFilterSchema>>;

const createFilterListSchema = () =>
  z
    .array(createFilterSchema())
    .refine(
      (filters) => new Set(filters.map(({ key }) => key)).size === filters.length,
      'each key may appear only once',
    )
    .default([]);

const createFiltersSchema = () =>
  z
    .strictObject({
      ads: createFilterListSchema().describe('keys of searchAds'),
      pages: createFilterListSchema().describe('keys of searchPages'),
      inclusive: z.boolean().optional().describe('true: keys that end in From and To include the bound itself'),
      ignoresCase: z.boolean().optional().describe('true: upper and lower case make no difference'),
    })
    .describe('the filter keys of a service, by search');
/** The keys by which searches of a service can filter ads and advertiser pages. */
export type SearchFilters = z.infer<ReturnType<typeof createFiltersSchema>>;

/**
 * Parses a description of the filter keys of a service, e.g. from the file that `AD_LIBRARY_SEARCH_FILTERS` names.
 * @throws ZodError if the description is invalid
 */
export const parseSearchFilters = (json: unknown): SearchFilters => createFiltersSchema().parse(json);
