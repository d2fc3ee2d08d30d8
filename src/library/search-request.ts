import { isDeepStrictEqual } from 'node:util';
import type { ItemType } from '../api/item-type.ts';
import type { Cursors } from './cursor.ts';
import { libraryFilters } from './filters.ts';
import { type FilterValues, readFilters } from './read-filters.ts';
import { invalid } from './refusal.ts';
import { readLimit } from './request.ts';
import { countHits, findPage, type Position, type Search } from './search.ts';
import { shelves } from './shelves.ts';
import type { Shop } from './shop.ts';

/** A search that is under way, as its cursor carries it: a cursor alone is enough to go on. */
type Progress = {
  filters: FilterValues;
  limit: number;
  asOf: number;
  /** Counted once, when the search began. */
  totalHits: number;
  after: Position;
};

type Wanted = Omit<Progress, 'totalHits' | 'after'> & { kind: ItemType; totalHits?: number; after?: Position };

const listOf = (kind: ItemType) => `search ${kind}`;

type Content = [limit: number, totalHits: number, ...after: Position, asOf: number, filters: FilterValues];

function writeCursor(
  cursors: Cursors,
  { kind, filters, limit, asOf, totalHits, after }: Progress & { kind: ItemType },
) {
  const content: Content = [limit, totalHits, ...after, filters.active === undefined ? 0 : asOf, filters];
  return cursors.write(listOf(kind), content);
}

function readCursor(cursors: Cursors, kind: ItemType, cursor: string): Progress {
  const [limit, totalHits, value, number, asOf, filters] = cursors.read(listOf(kind), cursor) as Content;
  // Read again, since the filters may have changed since the cursor was written.
  return { limit, totalHits, after: [value, number], asOf, filters: readFilters(libraryFilters[kind], filters) };
}

/**
 * Reads a SearchRequest.
 * @throws Refusal 422 for unknown keys, wrong values, a bad cursor, or filters other than those the cursor began with
 */
export function readSearch(kind: ItemType, body: Record<string, unknown>, { cursors, config, now }: Shop): Wanted {
  const { limit, cursor, ...given } = body;
  const filters = readFilters(libraryFilters[kind], given);
  if (cursor === undefined) {
    return { kind, filters, limit: readLimit(limit, 'body', config.searchLimit), asOf: now() };
  }
  if (typeof cursor !== 'string') throw invalid('"cursor" takes the text that an earlier answer returned.');
  const progress = readCursor(cursors, kind, cursor);
  if (Object.keys(filters).length > 0 && !isDeepStrictEqual(filters, progress.filters)) {
    throw invalid('The filters differ from those the cursor began with. Send the cursor alone, or the filters alone.', {
      cursorFilters: progress.filters,
    });
  }
  return { ...progress, kind, limit: readLimit(limit, 'body', { ...config.searchLimit, default: progress.limit }) };
}

/** One page of a search: row numbers, and the rest of the documented envelope. */
export function runSearch(wanted: Wanted, { database, cursors }: Pick<Shop, 'database' | 'cursors'>) {
  const { kind, filters, limit, asOf } = wanted;
  const search: Search = { shelf: shelves[kind], filters, asOf };
  const { numbers, hasMore, position } = findPage(database, search, limit, wanted.after);
  const totalHits = wanted.totalHits ?? (hasMore ? countHits(database, search) : numbers.length);
  const cursor =
    hasMore && position ? writeCursor(cursors, { kind, filters, limit, asOf, totalHits, after: position }) : null;
  return { numbers, cursor, hasMore, totalHits };
}
