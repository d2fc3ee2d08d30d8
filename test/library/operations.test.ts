import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  Account,
  Ad,
  AddCollectionItemResult,
  AdListResult,
  CollectionItemsResult,
  CollectionListResult,
  CreditStatus,
  ErrorBody,
  Identity,
  Page,
  PageListResult,
} from '../../src/api/schemas.ts';
import { type ServedLibrary, serveLibrary, uuid } from './support/served-library.ts';

let served: ServedLibrary;
let collection: string;
const keys: Record<string, string> = {};

beforeAll(async () => {
  served = await serveLibrary();
  await served.load(
    { id: uuid(1), pageId: 'page-1', headline: 'Warm socks', page: { pageName: 'Sock Shop' } },
    { id: uuid(2), pageId: 'page-1', headline: 'Cold drinks', page: { pageName: 'Sock Shop' } },
    { pageId: 'page-2', pageName: 'Drink Shop' },
  );
  keys.good = served.key({ name: 'Good key' });
  keys.revoked = served.key();
  served.library.keys.revoke(keys.revoked.slice(0, 17));
  keys.unsubscribed = served.key({ subscription: false });
  keys.empty = served.key({ credits: 0 });
  keys.limited = served.key({ hourlyLimit: 0 });
  keys.stranger = served.key();
  keys.rich = served.key({ credits: 1e9, hourlyLimit: 1e9, dailyLimit: 1e9 });
  const { body } = await served.ask('GET', '/v1/collections', { key: keys.good });
  collection = body.items[0].id;
  await served.ask('POST', `/v1/collections/${collection}/items`, {
    key: keys.good,
    body: { itemType: 'ads', itemId: uuid(2) },
  });
});
afterAll(() => served.close());

const search = (body: unknown = {}) => ({ method: 'POST', body });

type Case = { method?: string; path: () => string; body?: unknown };
const items = (rest: string) => () => `/v1/collections/${collection}${rest}`;
const at = (path: string) => () => path;

/** The document's operations: a call that succeeds, its scope, its 200 body and its headers. */
const operations = {
  whoami: { call: { path: at('/v1/whoami') }, body: Identity, headers: [] },
  getAccount: { call: { path: at('/v1/account') }, scope: 'account:read', body: Account, headers: [] },
  getCredits: {
    call: { path: at('/v1/credits') },
    scope: 'credits:read',
    body: CreditStatus,
    headers: ['charged', 'remaining'],
  },
  listCollections: {
    call: { path: at('/v1/collections') },
    scope: 'collections:read',
    body: CollectionListResult,
    headers: ['charged'],
  },
  listCollectionItems: {
    call: { path: items('/items?itemType=ads') },
    scope: 'collections:read',
    gated: 1,
    body: CollectionItemsResult,
    headers: ['charged', 'remaining'],
  },
  addCollectionItem: {
    call: { method: 'POST', path: items('/items'), body: { itemType: 'ads', itemId: uuid(1) } },
    scope: 'collections:write',
    body: AddCollectionItemResult,
    headers: ['charged'],
  },
  searchAds: {
    call: { ...search(), path: at('/v1/ads/search') },
    scope: 'ads:read',
    gated: 1,
    body: AdListResult,
    headers: ['charged', 'remaining'],
  },
  getAd: {
    call: { path: at(`/v1/ads/${uuid(1)}`) },
    scope: 'ads:read',
    gated: 1,
    body: Ad,
    headers: ['charged', 'remaining'],
  },
  searchPages: {
    call: { ...search(), path: at('/v1/pages/search') },
    scope: 'pages:read',
    gated: 1,
    body: PageListResult,
    headers: ['charged', 'remaining'],
  },
  getPage: {
    call: { path: at('/v1/pages/page-1') },
    scope: 'pages:read',
    gated: 1,
    body: Page,
    headers: ['charged', 'remaining'],
  },
} as const;
const names = Object.keys(operations) as (keyof typeof operations)[];
const gated = names.filter((name) => 'gated' in operations[name]);
const scoped = names.filter((name) => 'scope' in operations[name]);

const ask = ({ method = 'GET', path, body }: Case, key: string | undefined) =>
  served.ask(method, path(), { key, body });

async function expectError(call: Case, key: string | undefined, status: number, code?: string) {
  const answer = await ask(call, key);
  expect(answer.status).toBe(status);
  const { error } = ErrorBody.parse(answer.body);
  expect(Object.keys(answer.body)).toEqual(['error']);
  expect(error.requestId).toBe(answer.headers.get('x-service-request-id'));
  expect(error.requestId).toBeTruthy();
  expect(answer.headers.get('x-service-credits-charged')).toBeNull();
  if (code) expect(error.code).toBe(code);
  return error;
}

describe.each(names)('%s', (name) => {
  const { call, body, headers } = operations[name];

  it('answers 200 with the documented body and headers', async () => {
    const answer = await ask(call, keys.good);
    expect(answer.status).toBe(200);
    body.parse(answer.body);
    const seen = ['charged', 'remaining'].filter((header) => answer.headers.has(`x-service-credits-${header}`));
    expect(seen).toEqual(headers);
    expect(answer.headers.get('x-service-request-id')).toBeTruthy();
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
    if (headers.length > 0) {
      const charged = 'gated' in operations[name] ? '1' : '0';
      expect(answer.headers.get('x-service-credits-charged')).toBe(charged);
    }
  });

  it.each([
    ['no key', () => undefined, 'missing_api_key'],
    ['an unknown key', () => 'svc_live_0000', 'invalid_api_key'],
    ['a revoked key', () => keys.revoked, 'revoked_api_key'],
  ])('answers 401 to %s', async (_, key, code) => {
    await expectError(call, key(), 401, code);
  });
});

describe.each(scoped)('%s', (name) => {
  const { call, scope } = operations[name] as { call: Case; scope: string };
  it('answers 403 without its scope, and 200 with it alone', async () => {
    const others = new Set(scoped.map((other) => (operations[other] as { scope: string }).scope));
    others.delete(scope);
    const error = await expectError(call, served.key({ scopes: [...others] }), 403, 'missing_scope');
    expect(error.message).toContain(scope);
    const key = served.key({ scopes: [scope], accountOf: keys.good?.slice(0, 17) ?? '' });
    expect((await ask(call, key)).status).toBe(200);
  });
});

describe.each(gated)('%s', (name) => {
  const { call } = operations[name];
  const own = async (key: string | undefined): Promise<Case> => {
    if (name !== 'listCollectionItems') return call;
    const { body } = await served.ask('GET', '/v1/collections', { key });
    return { ...call, path: at(`/v1/collections/${body.items[0].id}/items?itemType=ads`) };
  };
  it.each([
    ['402 without a subscription', 'unsubscribed', 402, 'subscription_required'],
    ['402 without credits', 'empty', 402, 'credits_exhausted'],
    ['429 when a window is full', 'limited', 429, 'usage_limit_exceeded'],
  ] as const)('answers %s', async (_, key, status, code) => {
    await expectError(await own(keys[key]), keys[key], status, code);
  });
});

describe('ungated operations', () => {
  it.each(names.filter((name) => !gated.includes(name) && name !== 'addCollectionItem'))(
    '%s answers without subscription, credits or room in a window',
    async (name) => {
      for (const key of [keys.unsubscribed, keys.empty, keys.limited]) {
        expect((await ask(operations[name].call, key)).status).toBe(200);
      }
    },
  );
});

describe('404', () => {
  it.each([
    ['a collection', 'GET', `/v1/collections/${uuid(99)}/items?itemType=ads`, undefined],
    ['a collection to add to', 'POST', `/v1/collections/${uuid(99)}/items`, { itemType: 'ads', itemId: uuid(1) }],
    ['an ad', 'GET', `/v1/ads/${uuid(99)}`, undefined],
    ['a page', 'GET', '/v1/pages/nobody', undefined],
    ['a page by an id that begins like one', 'GET', '/v1/pages/page-1%00x', undefined],
  ])('for %s that is not there', async (_, method, path, body) => {
    await expectError({ method, path: at(path), body }, keys.good, 404, 'not_found');
  });

  it('for an ad and a page to add that are not there', async () => {
    const path = items('/items');
    await expectError({ method: 'POST', path, body: { itemType: 'ads', itemId: uuid(99) } }, keys.good, 404);
    await expectError({ method: 'POST', path, body: { itemType: 'pages', itemId: 'nobody' } }, keys.good, 404);
  });

  it('for the collection of somebody else', async () => {
    await expectError(operations.listCollectionItems.call, keys.stranger, 404);
    await expectError(operations.addCollectionItem.call, keys.stranger, 404);
  });

  it('for a path that is not served, whoever asks', async () => {
    for (const path of ['/', '/v1', '/v1/adverts', '/v2/account', '/v1/ads', '/v1/ads/a/b']) {
      await expectError({ path: at(path) }, undefined, 404, 'no_such_path');
    }
  });
});

describe('422', () => {
  const add = { method: 'POST', path: items('/items') };
  it.each<[string, Case, RegExp]>([
    ['a collection id that is no UUID', { path: at('/v1/collections/7/items?itemType=ads') }, /UUID/],
    ['no itemType', { path: items('/items') }, /itemType/],
    ['an unknown itemType', { path: items('/items?itemType=cats') }, /ads or pages.*cats/],
    ['limit 0', { path: items('/items?itemType=ads&limit=0') }, /1 to 100/],
    ['limit 101', { path: items('/items?itemType=ads&limit=101') }, /1 to 100/],
    ['limit 1.5', { path: items('/items?itemType=ads&limit=1.5') }, /whole number/],
    ['limit ten', { path: items('/items?itemType=ads&limit=ten') }, /whole number/],
    ['a made-up cursor', { path: items('/items?itemType=ads&cursor=abc') }, /cursor/],
    ['an ad id that is no UUID', { path: at('/v1/ads/7') }, /UUID/],
    ['a page id that is too long', { path: at(`/v1/pages/${'x'.repeat(301)}`) }, /300/],
    ['a body without itemId', { ...add, body: { itemType: 'ads' } }, /itemId/],
    ['a body with an empty itemId', { ...add, body: { itemType: 'pages', itemId: '' } }, /itemId/],
    ['a body with a numeric itemId', { ...add, body: { itemType: 'pages', itemId: 1 } }, /itemId/],
    ['an ad to add whose id is no UUID', { ...add, body: { itemType: 'ads', itemId: 'x' } }, /UUID/],
    ['an item type nobody knows', { ...add, body: { itemType: 'x', itemId: 'x' } }, /itemType/],
    ['a body that is no JSON', { ...search('{"query":'), path: at('/v1/ads/search') }, /not JSON/],
    ['an empty body', { ...search(''), path: at('/v1/ads/search') }, /empty/],
    ['an array', { ...search([]), path: at('/v1/ads/search') }, /JSON object/],
    ['null', { ...search(null), path: at('/v1/pages/search') }, /JSON object/],
    [
      'a body that is too large',
      { ...search({ query: 'x'.repeat(70_000) }), path: at('/v1/ads/search') },
      /65536 bytes/,
    ],
    ['a search limit of 0', { ...search({ limit: 0 }), path: at('/v1/ads/search') }, /1 to 100/],
    ['a search limit of 101', { ...search({ limit: 101 }), path: at('/v1/pages/search') }, /1 to 100/],
    ['a search limit in words', { ...search({ limit: '20' }), path: at('/v1/ads/search') }, /whole number.*"20"/],
    ['a cursor that is no text', { ...search({ cursor: 7 }), path: at('/v1/ads/search') }, /cursor/],
    ['a cursor made up', { ...search({ cursor: 'e30.AAAA' }), path: at('/v1/ads/search') }, /cursor/],
    [
      'an unknown key',
      { ...search({ countrys: ['US'] }), path: at('/v1/ads/search') },
      /Did you mean "countries"\?.*Known keys: limit, cursor, query/,
    ],
    [
      'a filter of the wrong type',
      { ...search({ active: 'yes' }), path: at('/v1/ads/search') },
      /"active" takes true or false; got "yes"/,
    ],
    [
      'a key of the other search',
      { ...search({ languages: ['de'] }), path: at('/v1/ads/search') },
      /Unknown filter key "languages"/,
    ],
  ])('%s, and charges nothing', async (_, call, message) => {
    const error = await expectError(call, keys.good, 422, 'invalid_request');
    expect(error.message).toMatch(message);
  });

  it('a body of another type, or not in UTF-8', async () => {
    const headers = { 'Content-Type': 'text/plain' };
    const plain = await served.ask('POST', '/v1/ads/search', { key: keys.good, body: '{}', headers });
    expect(plain.status).toBe(422);
    expect(plain.body.error.message).toContain('application/json');
    const response = await fetch(`${served.base}/v1/ads/search`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${keys.good}`, 'Content-Type': 'application/json' },
      body: new Uint8Array([0x7b, 0xff, 0x7d]),
    });
    expect(response.status).toBe(422);
  });
});

describe('the order of the checks', () => {
  const bad = { path: at('/v1/ads/not-a-uuid') };
  it('is key, scope, request, existence, credits', async () => {
    await expectError(bad, 'svc_live_x', 401);
    await expectError(bad, served.key({ scopes: ['pages:read'], credits: 0 }), 403);
    await expectError(bad, keys.empty, 422);
    await expectError({ path: at(`/v1/ads/${uuid(99)}`) }, keys.empty, 404);
    await expectError({ path: at(`/v1/ads/${uuid(1)}`) }, keys.empty, 402);
    await expectError({ path: at(`/v1/ads/${uuid(1)}`) }, served.key({ credits: 0, hourlyLimit: 0 }), 402);
  });
});

describe('methods', () => {
  it.each(['PUT', 'DELETE', 'PATCH', 'OPTIONS', 'POST'])('%s where only GET is served is a 405', async (method) => {
    await expectError({ method, path: at('/v1/account') }, keys.good, 405, 'method_not_allowed');
    const { headers } = await served.ask(method, '/v1/account');
    expect(headers.get('allow')).toBe('GET');
  });

  it('HEAD is refused and never paid', async () => {
    const key = served.key();
    expect((await served.ask('HEAD', `/v1/ads/${uuid(1)}`, { key })).status).toBe(405);
    expect((await served.ask('GET', '/v1/credits', { key })).body.credits).toBe(served.config.plan.credits);
  });
});

describe('what the document says of single operations', () => {
  it('added is true once, and the counts follow', async () => {
    const key = served.key();
    const [ads] = (await served.ask('GET', '/v1/collections', { key })).body.items;
    const add = () =>
      served.ask('POST', `/v1/collections/${ads.id}/items`, { key, body: { itemType: 'ads', itemId: uuid(1) } });
    expect((await add()).body).toEqual({
      collection: { ...ads, adCount: 1 },
      itemType: 'ads',
      itemId: uuid(1),
      added: true,
    });
    expect((await add()).body).toMatchObject({ added: false, collection: { adCount: 1 } });
  });

  it('appUrl stands on list items only', async () => {
    const { body } = await served.ask('POST', '/v1/ads/search', { key: keys.good, body: { query: 'socks' } });
    expect(body.items[0].appUrl).toBe(`${served.base}/ads/${uuid(1)}`);
    expect((await served.ask('GET', `/v1/ads/${uuid(1)}`, { key: keys.good })).body).not.toHaveProperty('appUrl');
  });

  it('a page that only its ads name can be read', async () => {
    const { body } = await served.ask('GET', '/v1/pages/page-1', { key: keys.good });
    expect(body).toEqual({ pageId: 'page-1', pageName: 'Sock Shop', detailsEstimated: true });
  });

  it('a cursor without further pages is null', async () => {
    const { body } = await served.ask('POST', '/v1/ads/search', { key: keys.good, body: { limit: 1, query: 'socks' } });
    expect(body).toMatchObject({ cursor: null, hasMore: false, totalHits: 1 });
  });

  it('whoami names the key and never shows it', async () => {
    const { body } = await served.ask('GET', '/v1/whoami', { key: keys.good });
    expect(body.apiKey).toMatchObject({ name: 'Good key', keyPrefix: keys.good?.slice(0, 17) });
    expect(JSON.stringify(body)).not.toContain(keys.good);
  });

  it('a key is taken from the header only', async () => {
    await expectError({ path: at(`/v1/account?api_key=${keys.good}`) }, undefined, 401);
  });
});

describe('any request at all', () => {
  it('gets an answer in the documented form', async () => {
    const piece = fc.oneof(
      fc.constantFrom(
        'v1',
        'ads',
        'pages',
        'collections',
        'items',
        'search',
        'media',
        'logo.svg',
        uuid(1),
        '-',
        'keys',
        '..',
      ),
      fc.webSegment(),
      fc.constantFrom('%E0%A4%A', '%00', '%2F', '%ff', '%F0%9F%94%A5'),
    );
    const path = fc.array(piece, { maxLength: 5 }).map((pieces) => `/${pieces.join('/')}`);
    const method = fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'OPTIONS');
    const body = fc.oneof(fc.json(), fc.string());
    await fc.assert(
      fc.asyncProperty(method, path, fc.webQueryParameters(), body, async (method, path, query, body) => {
        const { status, body: answer } = await served.ask(method, `${path}?${query}`, {
          key: keys.rich,
          ...(method !== 'GET' && { body }),
        });
        expect(status).toBeLessThan(500);
        if (status !== 200) ErrorBody.parse(answer);
      }),
      { numRuns: 400 },
    );
  });

  it('a page id may hold any character', async () => {
    const pageId = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 40 })
      .filter((id) => id !== '.' && id !== '..');
    await fc.assert(
      fc.asyncProperty(pageId, async (pageId) => {
        await served.load({ pageId, pageName: 'Any' });
        const { body } = await served.ask('GET', `/v1/pages/${encodeURIComponent(pageId)}`, { key: keys.rich });
        expect(body.pageId).toBe(pageId);
      }),
    );
  });
});

it('nothing failed behind a 500', () => {
  expect(served.errors).toEqual([]);
});
