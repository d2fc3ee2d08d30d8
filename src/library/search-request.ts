import { isDeepStrictEqual } from 'node:util';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { ItemType } from '../api/item-type.ts';
import type { Cursors } from './cursor.ts';
import { libraryFilters } from './filters.ts';
import { packNumbers, unpackNumbers } from './pack.ts';
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

/** What filters are packed with: words that they are likely to hold, the likeliest last. */
const likely = (kind: ItemType) => {
  const examples = libraryFilters[kind].map(({ key, values, example }) => [values?.join(), example, key]);
  return Buffer.from(`${JSON.stringify(examples)}{"query":"\\"shipping\\"","countries":["US"],"active":true,"sort":"`);
};
const dictionaries = { ads: likely('ads'), pages: likely('pages') };
/** A cursor from before the filters changed cannot be read any more, so the seal is one of filters, too. */
const listOf = (kind: ItemType) => `search ${kind} ${dictionaries[kind]}`;

function seal(cursors: Cursors, { kind, filters, limit, asOf, totalHits, after }: Progress & { kind: ItemType }) {
  const numbers = packNumbers([limit, totalHits, ...after, filters.active === undefined ? null : asOf / 1000]);
  const none = Object.keys(filters).length === 0;
  const dictionary = dictionaries[kind];
  const rest = none ? Buffer.alloc(0) : deflateRawSync(JSON.stringify(filters), { dictionary, level: 9 });
  return cursors.seal(listOf(kind), Buffer.concat([numbers, rest]));
}

function unseal(cursors: Cursors, kind: ItemType, cursor: string, now: number): Progress {
  const { numbers, rest } = unpackNumbers(cursors.open(listOf(kind), cursor), 5);
  const [limit, totalHits, value = null, number, asOf] = numbers;
  const text = rest.length > 0 ? inflateRawSync(rest, { dictionary: dictionaries[kind] }).toString() : '{}';
  return {
    filters: JSON.parse(text),
    limit: Number(limit),
    totalHits: Number(totalHits),
    after: [value, Number(number)],
    asOf: asOf == null ? now : asOf * 1000,
  };
}

/**
 * Reads a SearchRequest.
 * @throws Refusal 422 for unknown keys, wrong values, a bad cursor, or filters other than those the cursor began with
 */
export function readSearch(kind: ItemType, body: Record<string, unknown>, { cursors, config, now }: Shop): Wanted {
  const { limit, cursor, ...given } = body;
  const filters = readFilters(libraryFilters[kind], given);
  if (cursor === undefined) {
    return { kind, filters, limit: readLimit(limit, 'body', config.searchLimit), asOf: wholeSecond(now()) };
  }
  if (typeof cursor !== 'string') throw invalid('"cursor" takes the text that an earlier answer returned.');
  const progress = unseal(cursors, kind, cursor, wholeSecond(now()));
  if (Object.keys(filters).length > 0 && !isDeepStrictEqual(filters, progress.filters)) {
    throw invalid('The filters differ from those the cursor began with. Send the cursor alone, or the filters alone.', {
      cursorFilters: progress.filters,
    });
  }
  return { ...progress, kind, limit: readLimit(limit, 'body', { ...config.searchLimit, default: progress.limit }) };
}

const wholeSecond = (time: number) => Math.floor(time / 1000) * 1000;

/** One page of a search: row numbers, and the rest of the documented envelope. */
export function runSearch(wanted: Wanted, { database, cursors }: Pick<Shop, 'database' | 'cursors'>) {
  const { kind, filters, limit, asOf } = wanted;
  const search: Search = { shelf: shelves[kind], filters, asOf };
  const { numbers, hasMore, position } = findPage(database, search, limit, wanted.after);
  const totalHits = wanted.totalHits ?? (hasMore ? countHits(database, search) : numbers.length);
  const cursor = hasMore && position ? seal(cursors, { kind, filters, limit, asOf, totalHits, after: position }) : null;
  return { numbers, cursor, hasMore, totalHits };
}
