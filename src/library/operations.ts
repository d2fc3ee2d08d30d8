import type { ItemType } from '../api/item-type.ts';
import type { Account, Identity } from '../api/schemas.ts';
import type { Caller } from './caller.ts';
import type { OperationName } from './endpoints.ts';
import type { Presenter } from './presenter.ts';
import type { Records } from './records.ts';
import { notFound } from './refusal.ts';
import { readBody, readItem, readItemsQuery, readPageId, readUuid } from './request.ts';
import { readSearch, runSearch } from './search-request.ts';
import type { Shop } from './shop.ts';

export type Call = { request: Request; params: Record<string, string>; caller: Caller; present: Presenter };

/** The body of a 200, and how many items of it the price counts. */
export type Answer = { body: unknown; items: number };

/**
 * An operation in two steps. Reading the request may wait and refuses with 422; what it returns runs inside one
 * transaction together with the charge, so that what is refused is never paid and what is paid is never lost.
 */
export type Operation = (call: Call, shop: Shop) => Promise<() => Answer> | (() => Answer);

export const operations: Record<OperationName, Operation> = {
  whoami: ({ caller }) => {
    return () => single(identity(caller));
  },
  getAccount: ({ caller }) => {
    return () => single(account(caller));
  },
  getCredits: ({ caller }, { meter }) => {
    return () => single(meter.status(caller));
  },
  listCollections: ({ caller }, { collections }) => {
    return () => single({ items: collections.list(caller) });
  },
  listCollectionItems,
  addCollectionItem,
  searchAds: (call, shop) => search('ads', call, shop),
  searchPages: (call, shop) => search('pages', call, shop),
  getAd: ({ params, present }, { records }) => {
    const id = readUuid('The ad id', params.adId ?? '');
    return () => single(present.one('ads', found(records, 'ads', id)));
  },
  getPage: ({ params, present }, { records }) => {
    const id = readPageId(params.pageId ?? '');
    return () => single(present.one('pages', found(records, 'pages', id)));
  },
};

const single = (body: unknown): Answer => ({ body, items: 1 });

function found(records: Records, kind: ItemType, id: string): number {
  const number = records.find(kind, id);
  if (number === undefined) throw notFound(kind === 'ads' ? 'ad' : 'page', id);
  return number;
}

async function search(kind: ItemType, { request, present }: Call, shop: Shop) {
  const wanted = readSearch(kind, await readBody(request, shop.config.bodyBytes), shop);
  return () => {
    const { numbers, ...rest } = runSearch(wanted, shop);
    return { body: { items: present.list(kind, numbers), ...rest }, items: numbers.length };
  };
}

function listCollectionItems({ request, params, caller, present }: Call, shop: Shop) {
  const id = readUuid('The collection id', params.collectionId ?? '').toLowerCase();
  const { itemType, limit, cursor } = readItemsQuery(new URL(request.url).searchParams);
  const list = `items ${id} ${itemType}`;
  const [after] = cursor === undefined ? [] : (shop.cursors.read(list, cursor) as [after: number]);
  return () => {
    const collection = shop.collections.open(caller, id);
    const { numbers, hasMore, position } = shop.collections.items(collection, itemType, limit, after);
    const next = hasMore ? shop.cursors.write(list, [position]) : null;
    const items = present.list(itemType, numbers);
    return { body: { collection: collection.shown, itemType, items, cursor: next, hasMore }, items: items.length };
  };
}

async function addCollectionItem({ request, params, caller }: Call, shop: Shop) {
  const id = readUuid('The collection id', params.collectionId ?? '');
  const { itemType, itemId } = readItem(await readBody(request, shop.config.bodyBytes));
  return () => {
    const collection = shop.collections.open(caller, id);
    const added = shop.collections.add(collection, itemType, found(shop.records, itemType, itemId));
    return single({ collection: shop.collections.open(caller, id).shown, itemType, itemId, added });
  };
}

function account({ userId, billingUserId, planId, isTeamMember, subscriptionStatus }: Caller): Account {
  return { userId, billingUserId, planId, isTeamMember, subscriptionStatus };
}

/** Plan and subscription are never null here, unlike in Account: `none` stands for a missing one. */
function identity(caller: Caller): Identity {
  const { name, emailAddress, keyId, keyName, keyPrefix, planId, subscriptionStatus, ...rest } = caller;
  const { userId, billingUserId, isTeamMember } = rest;
  return {
    authenticated: true,
    authSource: 'api_key',
    user: {
      userId,
      billingUserId,
      name,
      emailAddress,
      planId: planId ?? 'none',
      isTeamMember,
      subscriptionStatus: subscriptionStatus ?? 'none',
    },
    apiKey: { id: keyId, name: keyName, keyPrefix },
    oauthClientId: null,
  };
}
