import type { Collection, ItemType } from '../api/schemas.ts';
import { notFound } from './api-error.ts';
import type { Caller } from './caller.ts';
import type { Database } from './database.ts';

type CollectionRow = {
  number: number;
  id: string;
  userId: string;
  name: string;
  type: string;
  defaultType: string | null;
  adCount: number;
  pageCount: number;
};

/** `number` is its row. */
export type OpenCollection = { number: number; collection: Collection };

/** Collections belong to a billing user: everybody who shares the subscription sees them; `isOwner` marks one's own. */
export type Collections = {
  list(caller: Caller): Collection[];
  create(owner: CollectionOwner, made: { name: string; type: string; defaultType: ItemType | null }): string;
  /** @throws ApiError 404, also for a collection of another account */
  open(caller: Caller, id: string): OpenCollection;
  /** Item row numbers, newest first, from the position where an earlier page ended. */
  items(collection: number, kind: ItemType, limit: number, after?: number): CollectionPage;
  /** @returns false if the item was already there */
  add(collection: number, kind: ItemType, item: number): boolean;
};

type CollectionOwner = { userId: string; billingUserId: string };

export type CollectionPage = { numbers: number[]; hasMore: boolean; position: number | undefined };

const count = (kind: ItemType) =>
  `(SELECT count(*) FROM collection_items WHERE collection = collections.number AND itemType = '${kind}')`;
const select = `
  SELECT number, id, userId, name, type, defaultType, ${count('ads')} AS adCount, ${count('pages')} AS pageCount
  FROM collections WHERE billingUserId = ?`;

function toCollection({ number: _, userId, ...row }: CollectionRow, caller: Caller): Collection {
  return { ...row, isDefault: row.defaultType !== null, isOwner: userId === caller.userId };
}

export function collectionsIn(database: Database, uuid: () => string): Collections {
  return {
    create({ userId, billingUserId }, { name, type, defaultType }) {
      const id = uuid();
      database.run(
        'INSERT INTO collections (id, userId, billingUserId, name, type, defaultType) VALUES (?, ?, ?, ?, ?, ?)',
        [id, userId, billingUserId, name, type, defaultType],
      );
      return id;
    },
    list: (caller) =>
      database
        .all<CollectionRow>(`${select} ORDER BY number`, [caller.billingUserId])
        .map((row) => toCollection(row, caller)),
    open(caller, id) {
      const row = database.get<CollectionRow>(`${select} AND id = ?`, [caller.billingUserId, id.toLowerCase()]);
      if (!row) throw notFound('collection', id);
      return { number: row.number, collection: toCollection(row, caller) };
    },
    items(collection, kind, limit, after = Number.MAX_SAFE_INTEGER) {
      const rows = database.all<{ number: number; item: number }>(
        `SELECT number, item FROM collection_items WHERE collection = ? AND itemType = ? AND number < ?
         ORDER BY number DESC LIMIT ?`,
        [collection, kind, after, limit + 1],
      );
      const page = rows.slice(0, limit);
      return { numbers: page.map(({ item }) => item), hasMore: rows.length > limit, position: page.at(-1)?.number };
    },
    add: (collection, kind, item) =>
      database.run('INSERT OR IGNORE INTO collection_items (collection, itemType, item) VALUES (?, ?, ?)', [
        collection,
        kind,
        item,
      ]).changes > 0,
  };
}
