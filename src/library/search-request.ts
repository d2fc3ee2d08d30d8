import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';
import type { ItemType } from '../api/item-type.ts';
import { libraryFilters } from './filters.ts';
import type { Shop } from './operations.ts';
import { type FilterValues, readFilters } from './read-filters.ts';
import { invalid } from './refusal.ts';
import { readLimit } from './request.ts';
import { countHits, findPage, type Position, type Search } from './search.ts';
import { shelves } from './shelves.ts';

/** A search that is under way, as its cursor carries it: a cursor alone is enough to go on. */
const Progress = z.strictObject({
  kind: z.enum(['ads', 'pages']),
  filters: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.array(z.string())])),
  limit: z.number(),
  asOf: z.number(),
  /** Counted once, when the search began. */
  totalHits: z.number(),
  after: z.tuple([z.number().nullable(), z.number()]),
});
type Progress = z.infer<typeof Progress>;

type Wanted = Pick<Progress, 'kind' | 'filters' | 'limit' | 'asOf'> & { totalHits?: number; after?: Position };

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
  const progress = Progress.safeParse(cursors.open(cursor)).data;
  if (progress?.kind !== kind) throw invalid('This cursor belongs to another list. Leave it out to start this one.');
  // Read again: a cursor may be older than this version's filters.
  readFilters(libraryFilters[kind], progress.filters);
  if (Object.keys(filters).length > 0 && !isDeepStrictEqual({ ...filters }, { ...progress.filters })) {
    throw invalid('The filters differ from those the cursor began with. Send the cursor alone, or the filters alone.', {
      cursorFilters: progress.filters,
    });
  }
  return { ...progress, limit: readLimit(limit, 'body', { ...config.searchLimit, default: progress.limit }) };
}

/** One page of a search: row numbers, and the rest of the documented envelope. */
export function runSearch(wanted: Wanted, { database, cursors }: Pick<Shop, 'database' | 'cursors'>) {
  const { kind, filters, limit, asOf } = wanted;
  const search: Search = { shelf: shelves[kind], filters: filters as FilterValues, asOf };
  const { numbers, hasMore, position } = findPage(database, search, limit, wanted.after);
  const totalHits = wanted.totalHits ?? (hasMore ? countHits(database, search) : numbers.length);
  const progress = { kind, filters, limit, asOf, totalHits, after: position };
  return { numbers, cursor: hasMore ? cursors.seal(progress) : null, hasMore, totalHits };
}
