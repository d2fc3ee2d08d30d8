import type { ItemType } from '../api/item-type.ts';
import type { Collection } from '../api/schemas.ts';
import type { Caller } from './caller.ts';
import type { Database } from './database.ts';
import { notFound } from './refusal.ts';

type Row = {
  number: number;
  id: string;
  userId: string;
  name: string;
  type: string;
  defaultType: string | null;
  adCount: number;
  pageCount: number;
};

export type OpenCollection = { number: number; shown: Collection };

/** Collections belong to a billing user: whoever shares the subscription sees them, `isOwner` says whose they are. */
export type Collections = {
  list(caller: Caller): Collection[];
  create(owner: Owner, made: { name: string; type: string; defaultType: ItemType | null }): string;
  /** @throws Refusal 404, also for a collection of somebody else */
  open(caller: Caller, id: string): OpenCollection;
  /** Item row numbers, newest first, starting after the position of an earlier page. */
  items(collection: Pick<OpenCollection, 'number'>, kind: ItemType, limit: number, after?: number): CollectionPage;
  /** false: it was there before. */
  add(collection: Pick<OpenCollection, 'number'>, kind: ItemType, item: number): boolean;
};

type Owner = { userId: string; billingUserId: string };

export type CollectionPage = { numbers: number[]; hasMore: boolean; position: number | undefined };

const count = (kind: ItemType) =>
  `(SELECT count(*) FROM collection_items WHERE collection = collections.number AND itemType = '${kind}')`;
const select = `
  SELECT number, id, userId, name, type, defaultType, ${count('ads')} AS adCount, ${count('pages')} AS pageCount
  FROM collections WHERE billingUserId = ?`;

function shown({ number: _, userId, ...row }: Row, caller: Caller): Collection {
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
      database.all<Row>(`${select} ORDER BY number`, [caller.billingUserId]).map((row) => shown(row, caller)),
    open(caller, id) {
      const row = database.get<Row>(`${select} AND id = ?`, [caller.billingUserId, id.toLowerCase()]);
      if (!row) throw notFound('collection', id);
      return { number: row.number, shown: shown(row, caller) };
    },
    items(collection, kind, limit, after = Number.MAX_SAFE_INTEGER) {
      const rows = database.all<{ number: number; item: number }>(
        `SELECT number, item FROM collection_items WHERE collection = ? AND itemType = ? AND number < ?
         ORDER BY number DESC LIMIT ?`,
        [collection.number, kind, after, limit + 1],
      );
      const page = rows.slice(0, limit);
      return { numbers: page.map(({ item }) => item), hasMore: rows.length > limit, position: page.at(-1)?.number };
    },
    add: (collection, kind, item) =>
      database.run('INSERT OR IGNORE INTO collection_items (collection, itemType, item) VALUES (?, ?, ?)', [
        collection.number,
        kind,
        item,
      ]).changes > 0,
  };
}
