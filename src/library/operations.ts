import type { OperationName } from '../api/call.ts';
import type { Account, Identity, ItemType } from '../api/schemas.ts';
import { notFound } from './api-error.ts';
import type { Caller } from './caller.ts';
import type { Presenter } from './presenter.ts';
import type { Records } from './records.ts';
import { readBody, readItem, readItemsQuery, readPageId, readUuid } from './request.ts';
import { readSearch, runSearch } from './search-request.ts';
import type { ServiceContext } from './service-context.ts';

export type OperationCall = { request: Request; params: Record<string, string>; caller: Caller; present: Presenter };

/** The body of a 200, and how many of its items the price counts. */
export type OperationResult = { body: unknown; items: number };

/**
 * An operation in two steps. The first reads the request, may wait, and throws 422. The function it returns runs in one
 * transaction with the charge, so an error is never charged and a charge never lost.
 */
export type Handler = (
  call: OperationCall,
  context: ServiceContext,
) => Promise<() => OperationResult> | (() => OperationResult);

export const handlers: Record<OperationName, Handler> = {
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
  searchAds: (call, context) => searchRecords('ads', call, context),
  searchPages: (call, context) => searchRecords('pages', call, context),
  getAd: ({ params, present }, { records }) => {
    const id = readUuid('The ad id', params.adId ?? '');
    return () => single(present.one('ads', found(records, 'ads', id)));
  },
  getPage: ({ params, present }, { records }) => {
    const id = readPageId(params.pageId ?? '');
    return () => single(present.one('pages', found(records, 'pages', id)));
  },
};

const single = (body: unknown): OperationResult => ({ body, items: 1 });

function found(records: Records, kind: ItemType, id: string): number {
  const number = records.find(kind, id);
  if (number === undefined) throw notFound(kind === 'ads' ? 'ad' : 'page', id);
  return number;
}

async function searchRecords(kind: ItemType, { request, present }: OperationCall, context: ServiceContext) {
  const search = readSearch(kind, await readBody(request, context.config.bodyBytes), context);
  return () => {
    const { numbers, ...rest } = runSearch(search, context);
    return { body: { items: present.list(kind, numbers), ...rest }, items: numbers.length };
  };
}

function listCollectionItems({ request, params, caller, present }: OperationCall, context: ServiceContext) {
  const id = readUuid('The collection id', params.collectionId ?? '').toLowerCase();
  const { itemType, limit, cursor } = readItemsQuery(new URL(request.url).searchParams);
  const list = `items ${id} ${itemType}`;
  const [after] = cursor === undefined ? [] : (context.cursors.read(list, cursor) as [after: number]);
  return () => {
    const { number, collection } = context.collections.open(caller, id);
    const { numbers, hasMore, position } = context.collections.items(number, itemType, limit, after);
    const next = hasMore ? context.cursors.write(list, [position]) : null;
    const items = present.list(itemType, numbers);
    return { body: { collection, itemType, items, cursor: next, hasMore }, items: items.length };
  };
}

async function addCollectionItem({ request, params, caller }: OperationCall, context: ServiceContext) {
  const id = readUuid('The collection id', params.collectionId ?? '');
  const { itemType, itemId } = readItem(await readBody(request, context.config.bodyBytes));
  return () => {
    const { number } = context.collections.open(caller, id);
    const added = context.collections.add(number, itemType, found(context.records, itemType, itemId));
    const { collection } = context.collections.open(caller, id);
    return single({ collection, itemType, itemId, added });
  };
}

function account({ userId, billingUserId, planId, isTeamMember, subscriptionStatus }: Caller): Account {
  return { userId, billingUserId, planId, isTeamMember, subscriptionStatus };
}

/** Unlike in Account, plan and subscription are never null here: a missing one is `none`. */
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
