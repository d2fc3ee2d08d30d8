import { isDeepStrictEqual } from 'node:util';
import { isNear, nearestFirst } from '../../api/nearest.ts';
import type { ItemType } from '../../api/schemas.ts';
import type { SearchFilter } from '../../api/search-filters.ts';
import { isObject } from '../../views/view.ts';
import type { Database } from '../database/database.ts';
import { type Cursors, invalid, quoted, readLimit } from '../service/request.ts';
import { recordTypes } from './ads-and-pages.ts';
import { libraryFilters, searchLimit } from './filters.ts';
import { countsBy, searchNotes } from './notes.ts';
import { countHits, type FilterValue, type FilterValues, findPage, type Position } from './search.ts';

export type SearchContext = { database: Database; cursors: Cursors; now: () => number };

const listOf = (kind: ItemType) => `search ${kind}`;

/** Bytes of all filters: a cursor holds them, and a request holds a cursor. */
const maxFilters = 48_000;

/** What a cursor holds: everything needed to continue its search, so filters need not be sent again. */
type Content = [limit: number, totalHits: number, ...after: Position, asOf: number, filters: FilterValues];

/**
 * Reads a SearchRequest.
 * @throws ApiError 422 for unknown keys, wrong values, a bad cursor, or filters other than those the cursor began with
 */
export function readSearch(kind: ItemType, body: Record<string, unknown>, { cursors, now }: SearchContext) {
  const { limit, cursor, countBy, ...given } = body;
  const filters = readFilters(libraryFilters[kind], given);
  const bytes = Buffer.byteLength(JSON.stringify(filters));
  if (bytes > maxFilters) throw invalid(`All filters together take at most ${maxFilters} bytes; got ${bytes}.`);
  if (cursor === undefined) {
    const by = readCountBy(kind, countBy, filters);
    return { kind, filters, limit: readLimit(limit, 'body', searchLimit), asOf: now(), countBy: by };
  }
  if (typeof cursor !== 'string') throw invalid('"cursor" takes the text that an earlier answer returned.');
  const [before, totalHits, value, number, asOf, cursorValues] = cursors.read(listOf(kind), cursor) as Content;
  // Checked again: the cursor may be from a version with other filters.
  const cursorFilters = readFilters(libraryFilters[kind], cursorValues);
  if (Object.keys(filters).length > 0 && !isDeepStrictEqual(filters, cursorFilters)) {
    const message = 'The filters differ from those the cursor began with. Send the cursor alone, or the filters alone.';
    throw invalid(message, { cursorFilters });
  }
  const after: Position = [value, number];
  const next = readLimit(limit, 'body', { ...searchLimit, default: before });
  return { kind, filters: cursorFilters, limit: next, asOf, totalHits, after };
}

function readCountBy(kind: ItemType, key: unknown, filters: FilterValues): string | undefined {
  if (key === undefined) return undefined;
  const keys = libraryFilters[kind].flatMap((filter) => (filter.counted ? filter.key : []));
  if (typeof key !== 'string' || !keys.includes(key)) throw invalid(`"countBy" takes one of ${keys.join(', ')}.`);
  if (key in filters) throw invalid(`"countBy" takes a key that is not among the filters; got "${key}".`);
  return key;
}

/** One page of a search: row numbers and the rest of the result envelope. */
export function runSearch(request: ReturnType<typeof readSearch>, { database, cursors }: SearchContext) {
  const { kind, filters, limit, asOf } = request;
  const search = { recordType: recordTypes[kind], filters, asOf };
  const { numbers, hasMore, position } = findPage(database, search, limit, request.after);
  const totalHits = request.totalHits ?? (hasMore ? countHits(database, search) : numbers.length);
  const content = hasMore && position && [limit, totalHits, ...position, asOf, filters];
  const page = { numbers, cursor: content ? cursors.write(listOf(kind), content) : null, hasMore, totalHits };
  if (request.after) return page;
  const { countBy } = request;
  const notes = searchNotes(search, database);
  const counts = countBy !== undefined && { counts: countsBy(countBy, search, database) };
  return { ...page, ...counts, ...(notes.length > 0 && { notes }) };
}

/**
 * Checks the filter keys of a SearchRequest against their description.
 * @throws ApiError 422 that names the key, what it takes and what it got, or lists the known keys
 */
function readFilters(filters: SearchFilter[], given: Record<string, unknown>, others = ['cursor']): FilterValues {
  const read = ([key, value]: [string, unknown]): [string, FilterValue] => {
    const filter = filters.find((one) => one.key === key);
    if (!filter) {
      const knownKeys = [...others, ...filters.map((one) => one.key)];
      const [nearest = ''] = nearestFirst(key, knownKeys);
      const hint = isNear(key, nearest) ? ` Did you mean "${nearest}"?` : '';
      const message = `Unknown filter key "${key.slice(0, 100)}".${hint} Known keys: ${knownKeys.join(', ')}.`;
      throw invalid(message, { knownKeys });
    }
    return [key, filter.type === 'filters' ? readInverted(filter, filters, value) : readValue(filter, value)];
  };
  return Object.fromEntries(Object.entries(given).map(read));
}

/** The filters of `not`, which takes neither a second `not` nor an order. */
function readInverted(filter: SearchFilter, filters: SearchFilter[], value: unknown): FilterValues {
  if (!isObject(value)) throw wrong(filter, 'an object of filters other than not, sort and order', quoted(value));
  const others = ['not', 'limit', 'sort', 'order'];
  return readFilters(
    filters.filter(({ key }) => !others.includes(key)),
    value,
    [],
  );
}

const isText = (value: unknown): value is string => typeof value === 'string' && value.trim() !== '';
const isoDate = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2}))?$/i;

function readValue(filter: SearchFilter, value: unknown): FilterValue {
  const { type, maxLength = Number.POSITIVE_INFINITY } = filter;
  const expect = (isRight: boolean, expected: string, got: unknown = value) => {
    if (!isRight) throw wrong(filter, expected, quoted(got));
  };
  if (type === 'strings') {
    // A single text counts as a list of one.
    const list: unknown[] = [value].flat();
    expect(list.length > 0 && list.every(isText), 'a list of texts');
    expect(list.length <= maxLength, `a list of at most ${maxLength} texts`, list.length);
    return list.map((one) => matchValue(filter, one as string));
  }
  if (type === 'boolean') expect(typeof value === 'boolean', 'true or false');
  else if (type === 'number') expect(typeof value === 'number', 'a number');
  else if (type === 'date') {
    const isDate = typeof value === 'string' && isoDate.test(value) && !Number.isNaN(Date.parse(value));
    expect(isDate, 'an ISO 8601 date (2026-01-31) or date-time with its zone (2026-01-31T12:00:00Z)');
  } else {
    expect(isText(value), 'a text that is not empty');
    expect(String(value).length <= maxLength, `a text of at most ${maxLength} characters`, String(value).length);
    return matchValue(filter, String(value));
  }
  return value as FilterValue;
}

function matchValue(filter: SearchFilter, value: string): string {
  if (!filter.values || filter.open) return value;
  const match = filter.values.find((candidate) => candidate.toLowerCase() === value.toLowerCase());
  if (match === undefined) throw wrong(filter, `one of ${filter.values.join(', ')}`, quoted(value));
  return match;
}

function wrong(filter: SearchFilter, expected: string, got: string) {
  return invalid(`"${filter.key}" takes ${expected}; got ${got}.`, { key: filter.key, expected });
}
