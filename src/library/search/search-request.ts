import { hash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { canonical } from '../../api/call.ts';
import type { ItemType } from '../../api/schemas.ts';
import type { Database } from '../database/database.ts';
import type { Records } from '../database/records.ts';
import type { LibraryConfig } from '../service/config.ts';
import { type Cursors, invalid, readLimit } from '../service/request.ts';
import { recordTypes } from './ads-and-pages.ts';
import { type FilterValues, libraryFilters, readFilters } from './filters.ts';
import { countsBy, searchNotes } from './notes.ts';
import { countHits, findPage, type Position, type Search } from './search.ts';

/** What a cursor holds: everything needed to continue its search, so filters need not be sent again. */
type CursorState = {
  filters: FilterValues;
  limit: number;
  asOf: number;
  /** Counted once, with the first page. */
  totalHits: number;
  after: Position;
};

type SearchRequest = Omit<CursorState, 'totalHits' | 'after'> & {
  kind: ItemType;
  /** A key whose values are counted with the first page. */
  countBy?: string | undefined;
  totalHits?: number;
  after?: Position;
};

/** What a search needs of the library. */
export type SearchContext = {
  config: LibraryConfig;
  database: Database;
  records: Records;
  cursors: Cursors;
  now: () => number;
};

const listOf = (kind: ItemType) => `search ${kind}`;

type Content = [limit: number, totalHits: number, ...after: Position, asOf: number, filters: FilterValues | string];

/** Longer filters are sent along with the cursor, which then holds only a checksum: a request takes no more of both. */
const maxFilters = 2000;

const checksumOf = (filters: FilterValues) => hash('sha256', canonical(filters), 'base64url').slice(0, 22);

function writeCursor(
  cursors: Cursors,
  { kind, filters, limit, asOf, totalHits, after }: CursorState & { kind: ItemType },
) {
  const held = JSON.stringify(filters).length > maxFilters ? checksumOf(filters) : filters;
  const content: Content = [limit, totalHits, ...after, asOf, held];
  return cursors.write(listOf(kind), content);
}

function readCursor(cursors: Cursors, kind: ItemType, cursor: string, given: FilterValues): CursorState {
  const [limit, totalHits, value, number, asOf, filters] = cursors.read(listOf(kind), cursor) as Content;
  const state = { limit, totalHits, after: [value, number] as Position, asOf };
  // Checked again: the cursor may be from a version with other filters.
  if (typeof filters !== 'string') return { ...state, filters: readFilters(libraryFilters[kind], filters) };
  if (filters === checksumOf(given)) return { ...state, filters: given };
  throw invalid('The filters of this cursor are too long to be in it. Send the same filters along with it.');
}

/**
 * Reads a SearchRequest.
 * @throws ApiError 422 for unknown keys, wrong values, a bad cursor, or filters other than those the cursor began with
 */
export function readSearch(
  kind: ItemType,
  body: Record<string, unknown>,
  { cursors, config, now }: SearchContext,
): SearchRequest {
  const { limit, cursor, countBy, ...given } = body;
  const filters = readFilters(libraryFilters[kind], given);
  if (cursor === undefined) {
    const by = readCountBy(kind, countBy, filters);
    return { kind, filters, limit: readLimit(limit, 'body', config.searchLimit), asOf: now(), countBy: by };
  }
  if (typeof cursor !== 'string') throw invalid('"cursor" takes the text that an earlier answer returned.');
  const state = readCursor(cursors, kind, cursor, filters);
  if (Object.keys(filters).length > 0 && !isDeepStrictEqual(filters, state.filters)) {
    throw invalid('The filters differ from those the cursor began with. Send the cursor alone, or the filters alone.', {
      cursorFilters: state.filters,
    });
  }
  return { ...state, kind, limit: readLimit(limit, 'body', { ...config.searchLimit, default: state.limit }) };
}

function readCountBy(kind: ItemType, key: unknown, filters: FilterValues): string | undefined {
  if (key === undefined) return undefined;
  const keys = libraryFilters[kind].flatMap((filter) => (filter.counted ? filter.key : []));
  if (typeof key !== 'string' || !keys.includes(key)) throw invalid(`"countBy" takes one of ${keys.join(', ')}.`);
  if (key in filters) throw invalid(`"countBy" takes a key that is not among the filters; got "${key}".`);
  return key;
}

/** One page of a search: row numbers and the rest of the result envelope. */
export function runSearch(request: SearchRequest, { database, cursors, records }: SearchContext) {
  const { kind, filters, limit, asOf } = request;
  const search: Search = { recordType: recordTypes[kind], filters, asOf };
  const { numbers, hasMore, position } = findPage(database, search, limit, request.after);
  const totalHits = request.totalHits ?? (hasMore ? countHits(database, search) : numbers.length);
  const cursor =
    hasMore && position ? writeCursor(cursors, { kind, filters, limit, asOf, totalHits, after: position }) : null;
  const notes = request.after
    ? []
    : searchNotes(search, { totalHits, countBy: request.countBy }, { database, records });
  const by = request.after ? undefined : request.countBy;
  const counts = by !== undefined && { counts: countsBy(by, search, database, records) };
  return { numbers, cursor, hasMore, totalHits, ...counts, ...(notes.length > 0 && { notes }) };
}
