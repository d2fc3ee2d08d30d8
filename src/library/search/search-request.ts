import { isDeepStrictEqual } from 'node:util';
import { isSimilar, sortBySimilarity } from '../../api/nearest.ts';
import type { ItemType } from '../../api/schemas.ts';
import type { SearchFilter } from '../../api/search-filters.ts';
import { isExistingDay } from '../../views/dates.ts';
import { isObject } from '../../views/view.ts';
import type { Database } from '../database/database.ts';
import { type CursorCodec, createInvalidRequestError, parseLimit, quoteValue } from '../service/request.ts';
import { libraryFilters, resultsPerPage } from './filters.ts';
import { countHitsByValue, createSearchNotes } from './notes.ts';
import { countHits, type FilterValue, type FilterValues, findResultPage, type ResultPosition } from './search.ts';
import { recordTypes } from './searchable-records.ts';

/** The dependencies of a search: the database, a codec for signed cursors, and a clock in Unix milliseconds. */
export type SearchContext = { database: Database; cursors: CursorCodec; now: () => number };

/**
 * Returns the name of a kind of list, e.g. `search ads`. The name is part of the signature of each cursor, so that a
 * cursor is valid only for the kind of list that returned it.
 */
const getListName = (itemType: ItemType) => `search ${itemType}`;

/**
 * The maximum size of the filters of a search as JSON, in bytes. A cursor contains the filters, and it must fit into a
 * request.
 */
const maxFilterBytes = 48_000;

/**
 * The content of a search cursor. It includes the filters, so that the cursor is all that a client needs to continue
 * the search.
 */
type CursorContent = [
  limit: number,
  totalHits: number,
  ...previousPosition: ResultPosition,
  searchTimeMs: number,
  filters: FilterValues,
];

/**
 * Parses the body of a search request.
 *
 * @throws ApiError 422 for unknown keys, invalid values, an invalid cursor, or filters that differ from those in the
 * cursor
 */
export function parseSearchRequest(itemType: ItemType, body: Record<string, unknown>, { cursors, now }: SearchContext) {
  const { limit, cursor, countBy, ...filterBody } = body;
  const filters = parseFilters(libraryFilters[itemType], filterBody);
  const filterBytes = Buffer.byteLength(JSON.stringify(filters));
  if (filterBytes > maxFilterBytes)
    throw createInvalidRequestError(`All filters together take at most ${maxFilterBytes} bytes; got ${filterBytes}.`);
  if (cursor === undefined) {
    return {
      itemType,
      filters,
      limit: parseLimit(limit, 'body', resultsPerPage),
      searchTimeMs: now(),
      countBy: parseCountBy(itemType, countBy, filters),
    };
  }
  if (typeof cursor !== 'string')
    throw createInvalidRequestError('"cursor" takes the text that an earlier answer returned.');
  const cursorContent = cursors.decode(getListName(itemType), cursor) as CursorContent;
  const [previousLimit, totalHits, sortValue, rowNumber, searchTimeMs, storedFilters] = cursorContent;
  // Validate the filters in the cursor again, because another version of the library with different filters may have
  // created the cursor.
  const cursorFilters = parseFilters(libraryFilters[itemType], storedFilters);
  if (Object.keys(filters).length > 0 && !isDeepStrictEqual(filters, cursorFilters)) {
    const message = 'The filters differ from those the cursor began with. Send the cursor alone, or the filters alone.';
    throw createInvalidRequestError(message, { cursorFilters });
  }
  const previousPosition: ResultPosition = [sortValue, rowNumber];
  const nextLimit = parseLimit(limit, 'body', { ...resultsPerPage, default: previousLimit });
  return { itemType, filters: cursorFilters, limit: nextLimit, searchTimeMs, totalHits, previousPosition };
}

function parseCountBy(itemType: ItemType, key: unknown, filters: FilterValues): string | undefined {
  if (key === undefined) return undefined;
  const countableKeys = libraryFilters[itemType].flatMap((filter) => (filter.counted ? filter.key : []));
  if (typeof key !== 'string' || !countableKeys.includes(key))
    throw createInvalidRequestError(`"countBy" takes one of ${countableKeys.join(', ')}.`);
  if (key in filters)
    throw createInvalidRequestError(`"countBy" takes a key that is not among the filters; got "${key}".`);
  return key;
}

/**
 * Runs a search for one page of results. Returns the row numbers of the records, and the other fields of the response.
 * Only the first page has notes about the filters and counts of values.
 */
export function runSearch(request: ReturnType<typeof parseSearchRequest>, { database, cursors }: SearchContext) {
  const { itemType, filters, limit, searchTimeMs, previousPosition, countBy } = request;
  const search = { recordType: recordTypes[itemType], filters, searchTimeMs };
  const { rowNumbers, hasMore, position } = findResultPage(database, search, limit, previousPosition);
  const totalHits = request.totalHits ?? (hasMore ? countHits(database, search) : rowNumbers.length);
  const cursorContent = hasMore && position && [limit, totalHits, ...position, searchTimeMs, filters];
  const cursor = cursorContent ? cursors.encode(getListName(itemType), cursorContent) : null;
  const resultPage = { rowNumbers, cursor, hasMore, totalHits };
  if (previousPosition) return resultPage;
  const notes = createSearchNotes(search, database);
  const counts = countBy !== undefined && { counts: countHitsByValue(countBy, search, database) };
  return { ...resultPage, ...counts, ...(notes.length > 0 && { notes }) };
}

/**
 * Validates the filters of a request. Each filter must have a known key, and a value of the type that the filter
 * description states.
 *
 * @param otherKeys further keys that a request may contain, which the error about an unknown key also lists
 * @throws ApiError 422 that names the invalid key with its expected and actual value, or lists the known keys
 */
function parseFilters(
  descriptions: SearchFilter[],
  filters: Record<string, unknown>,
  otherKeys = ['cursor'],
): FilterValues {
  const parseEntry = ([key, value]: [string, unknown]): [string, FilterValue] => {
    const filter = descriptions.find((description) => description.key === key);
    if (!filter) {
      const knownKeys = [...otherKeys, ...descriptions.map((description) => description.key)];
      const boundKeys = [`${key}From`, `${key}To`].filter((boundKey) => knownKeys.includes(boundKey));
      const [nearestKey = ''] = sortBySimilarity(key, knownKeys);
      const suggestedKeys = boundKeys.length === 0 && isSimilar(key, nearestKey) ? [nearestKey] : boundKeys;
      const hint =
        suggestedKeys.length > 0 ? ` Did you mean ${suggestedKeys.map((name) => `"${name}"`).join(' or ')}?` : '';
      const message = `Unknown filter key "${key.slice(0, 100)}".${hint} Known keys: ${knownKeys.join(', ')}.`;
      throw createInvalidRequestError(message, { knownKeys });
    }
    const parsedValue =
      filter.type === 'filters' ? parseNotFilter(filter, descriptions, value) : parseValue(filter, value);
    return [key, parsedValue];
  };
  return Object.fromEntries(Object.entries(filters).map(parseEntry));
}

/**
 * Parses the `not` filter, whose value is an object with other filters. These must not include another `not` or a sort
 * order.
 */
function parseNotFilter(filter: SearchFilter, descriptions: SearchFilter[], value: unknown): FilterValues {
  if (!isObject(value))
    throw createInvalidValueError(filter, 'an object of filters other than not, sort and order', quoteValue(value));
  const excludedKeys = ['not', 'limit', 'sort', 'order'];
  return parseFilters(
    descriptions.filter(({ key }) => !excludedKeys.includes(key)),
    value,
    [],
  );
}

const isNonBlankText = (value: unknown): value is string => typeof value === 'string' && value.trim() !== '';
const isoDatePattern = /^(\d{4}-\d{2}-\d{2})(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2}))?$/i;

/** Returns true if a text is an ISO 8601 date or date-time whose day exists, so not for 31 February. */
function isIsoDate(text: string): boolean {
  const day = isoDatePattern.exec(text)?.[1];
  return day !== undefined && isExistingDay(day) && !Number.isNaN(Date.parse(text));
}

function parseValue(filter: SearchFilter, value: unknown): FilterValue {
  const { type, maxLength = Number.POSITIVE_INFINITY } = filter;
  const requireValid = (isValid: boolean, expected: string, actual: unknown = value) => {
    if (!isValid) throw createInvalidValueError(filter, expected, quoteValue(actual));
  };
  if (type === 'strings') {
    // Treat a single text as a list with one item.
    const texts: unknown[] = [value].flat();
    requireValid(texts.length > 0 && texts.every(isNonBlankText), 'a list of texts');
    requireValid(texts.length <= maxLength, `a list of at most ${maxLength} texts`, texts.length);
    return texts.map((item) => findAllowedValue(filter, item as string));
  }
  if (type === 'boolean') requireValid(typeof value === 'boolean', 'true or false');
  else if (type === 'number') requireValid(typeof value === 'number', 'a number');
  else if (type === 'date') {
    requireValid(
      typeof value === 'string' && isIsoDate(value),
      'an ISO 8601 date (2026-01-31) or date-time with its zone (2026-01-31T12:00:00Z)',
    );
  } else {
    requireValid(isNonBlankText(value), 'a text that is not empty');
    requireValid(String(value).length <= maxLength, `a text of at most ${maxLength} characters`, String(value).length);
    return findAllowedValue(filter, String(value));
  }
  return value as FilterValue;
}

/**
 * Returns the allowed value that equals the text when letter case is ignored. If the filter accepts any text, returns
 * the text itself.
 *
 * @throws ApiError 422 if no allowed value equals the text
 */
function findAllowedValue(filter: SearchFilter, text: string): string {
  if (!filter.values || filter.open) return text;
  const matchingValue = filter.values.find((allowedValue) => allowedValue.toLowerCase() === text.toLowerCase());
  if (matchingValue === undefined)
    throw createInvalidValueError(filter, `one of ${filter.values.join(', ')}`, quoteValue(text));
  return matchingValue;
}

function createInvalidValueError(filter: SearchFilter, expected: string, actual: string) {
  return createInvalidRequestError(`"${filter.key}" takes ${expected}; got ${actual}.`, { key: filter.key, expected });
}
