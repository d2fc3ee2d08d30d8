import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  Account,
  Ad,
  AddCollectionItemResult,
  AdListResult,
  CollectionItemsResult,
  CollectionListResult,
  CreditStatus,
  Identity,
  Page,
  PageListResult,
} from '../../src/api/schemas.ts';
import { at, type Case, itemsOf, type SampleLibrary, search, serveSampleLibrary } from './support/sample-library.ts';
import { uuid } from './support/served-library.ts';

let sample: SampleLibrary;
beforeAll(async () => {
  sample = await serveSampleLibrary();
});
afterAll(() => sample.served.close());

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
    call: { path: itemsOf('/items?itemType=ads') },
    scope: 'collections:read',
    gated: 1,
    body: CollectionItemsResult,
    headers: ['charged', 'remaining'],
  },
  addCollectionItem: {
    call: { method: 'POST', path: itemsOf('/items'), body: { itemType: 'ads', itemId: uuid(1) } },
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

describe.each(names)('%s', (name) => {
  const { call, body, headers } = operations[name];

  test('answers 200 with the documented body and headers', async () => {
    const answer = await sample.ask(call, sample.keys.good);
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

  test.each([
    ['no key', () => undefined, 'missing_api_key'],
    ['an unknown key', () => 'svc_live_0000', 'invalid_api_key'],
    ['a revoked key', () => sample.keys.revoked, 'revoked_api_key'],
  ])('answers 401 to %s', async (_, key, code) => {
    await sample.expectError(call, key(), 401, code);
  });
});

describe.each(scoped)('%s', (name) => {
  const { call, scope } = operations[name] as { call: Case; scope: string };
  test('answers 403 without its scope, and 200 with it alone', async () => {
    const others = new Set(scoped.map((other) => (operations[other] as { scope: string }).scope));
    others.delete(scope);
    const error = await sample.expectError(call, sample.served.key({ scopes: [...others] }), 403, 'missing_scope');
    expect(error.message).toContain(scope);
    const key = sample.served.key({ scopes: [scope], accountOf: sample.keys.good.slice(0, 17) });
    expect((await sample.ask(call, key)).status).toBe(200);
  });
});

describe.each(gated)('%s', (name) => {
  const { call } = operations[name];
  const own = async (key: string | undefined): Promise<Case> => {
    if (name !== 'listCollectionItems') return call;
    const { body } = await sample.served.ask('GET', '/v1/collections', { key });
    return { ...call, path: at(`/v1/collections/${body.items[0].id}/items?itemType=ads`) };
  };
  test.each([
    ['402 without a subscription', 'unsubscribed', 402, 'subscription_required'],
    ['402 without credits', 'empty', 402, 'credits_exhausted'],
    ['429 when a window is full', 'limited', 429, 'usage_limit_exceeded'],
  ] as const)('answers %s', async (_, key, status, code) => {
    await sample.expectError(await own(sample.keys[key]), sample.keys[key], status, code);
  });
});

describe('ungated operations', () => {
  test.each(names.filter((name) => !gated.includes(name) && name !== 'addCollectionItem'))(
    '%s answers without subscription, credits or room in a window',
    async (name) => {
      for (const key of [sample.keys.unsubscribed, sample.keys.empty, sample.keys.limited]) {
        expect((await sample.ask(operations[name].call, key)).status).toBe(200);
      }
    },
  );
});
describe('what the document says of single operations', () => {
  test('added is true once, and the counts match', async () => {
    const key = sample.served.key();
    const [ads] = (await sample.served.ask('GET', '/v1/collections', { key })).body.items;
    const add = () =>
      sample.served.ask('POST', `/v1/collections/${ads.id}/items`, { key, body: { itemType: 'ads', itemId: uuid(1) } });
    expect((await add()).body).toEqual({
      collection: { ...ads, adCount: 1 },
      itemType: 'ads',
      itemId: uuid(1),
      added: true,
    });
    expect((await add()).body).toMatchObject({ added: false, collection: { adCount: 1 } });
  });

  test('appUrl is on list items only', async () => {
    const { body } = await sample.served.ask('POST', '/v1/ads/search', {
      key: sample.keys.good,
      body: { query: 'socks' },
    });
    expect(body.items[0].appUrl).toBe(`${sample.served.base}/ads/${uuid(1)}`);
    expect((await sample.served.ask('GET', `/v1/ads/${uuid(1)}`, { key: sample.keys.good })).body).not.toHaveProperty(
      'appUrl',
    );
  });

  test('a page known only from its ads can be read', async () => {
    const { body } = await sample.served.ask('GET', '/v1/pages/page-1', { key: sample.keys.good });
    expect(body).toEqual({ pageId: 'page-1', pageName: 'Sock Shop', detailsEstimated: true });
  });

  test('the cursor of the last page is null', async () => {
    const { body } = await sample.served.ask('POST', '/v1/ads/search', {
      key: sample.keys.good,
      body: { limit: 1, query: 'socks' },
    });
    expect(body).toMatchObject({ cursor: null, hasMore: false, totalHits: 1 });
  });

  test('whoami names the key and never shows it', async () => {
    const { body } = await sample.served.ask('GET', '/v1/whoami', { key: sample.keys.good });
    expect(body.apiKey).toMatchObject({ name: 'Good key', keyPrefix: sample.keys.good.slice(0, 17) });
    expect(JSON.stringify(body)).not.toContain(sample.keys.good);
  });

  test('a key is read from the header only', async () => {
    await sample.expectError({ path: at(`/v1/account?api_key=${sample.keys.good}`) }, undefined, 401);
  });
});
test('no request caused an internal error', () => {
  expect(sample.served.errors).toEqual([]);
});
