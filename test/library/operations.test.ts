import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type * as z from 'zod';
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

const none: string[] = [];
const charged = ['charged'];
const both = ['charged', 'remaining'];
const items = itemsOf('/items?itemType=ads');
const added = { itemType: 'ads', itemId: uuid(1) };

type Operation = [
  name: string,
  call: Case,
  scope: string | undefined,
  price: 0 | 1,
  body: z.ZodType,
  headers: string[],
];

/** The document's operations: a call that succeeds, its scope, its price where it is gated, its 200 body and headers. */
const operations: Operation[] = [
  ['whoami', { path: at('/v1/whoami') }, undefined, 0, Identity, none],
  ['getAccount', { path: at('/v1/account') }, 'account:read', 0, Account, none],
  ['getCredits', { path: at('/v1/credits') }, 'credits:read', 0, CreditStatus, both],
  ['listCollections', { path: at('/v1/collections') }, 'collections:read', 0, CollectionListResult, charged],
  ['listCollectionItems', { path: items }, 'collections:read', 1, CollectionItemsResult, both],
  [
    'addCollectionItem',
    { method: 'POST', path: itemsOf('/items'), body: added },
    'collections:write',
    0,
    AddCollectionItemResult,
    charged,
  ],
  ['searchAds', { ...search(), path: at('/v1/ads/search') }, 'ads:read', 1, AdListResult, both],
  ['getAd', { path: at(`/v1/ads/${uuid(1)}`) }, 'ads:read', 1, Ad, both],
  ['searchPages', { ...search(), path: at('/v1/pages/search') }, 'pages:read', 1, PageListResult, both],
  ['getPage', { path: at('/v1/pages/page-1') }, 'pages:read', 1, Page, both],
];
const scopes = new Set(operations.flatMap(([, , scope]) => scope ?? []));

describe.each(operations)('%s', (_, call, scope, price, body, headers) => {
  test('answers 200 with the documented body and headers', async () => {
    const answer = await sample.ask(call, sample.keys.good);
    expect(answer.status).toBe(200);
    body.parse(answer.body);
    expect(both.filter((header) => answer.headers.has(`x-service-credits-${header}`))).toEqual(headers);
    expect(answer.headers.get('x-service-request-id')).toBeTruthy();
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
    if (headers.length > 0) expect(answer.headers.get('x-service-credits-charged')).toBe(String(price));
  });

  test('answers 401 without a key that works, 403 without its scope, and 200 with it alone', async () => {
    await sample.expectError(call, undefined, 401, 'missing_api_key');
    await sample.expectError(call, 'svc_live_0000', 401, 'invalid_api_key');
    await sample.expectError(call, sample.keys.revoked, 401, 'revoked_api_key');
    if (scope === undefined) return;
    const others = [...scopes].filter((other) => other !== scope);
    const error = await sample.expectError(call, sample.served.key({ scopes: others }), 403, 'missing_scope');
    expect(error.message).toContain(scope);
    const key = sample.served.key({ scopes: [scope], accountOf: sample.keys.good.slice(0, 17) });
    expect((await sample.ask(call, key)).status).toBe(200);
  });

  test.each([
    ['unsubscribed', 402, 'subscription_required'],
    ['empty', 402, 'credits_exhausted'],
    ['limited', 429, 'usage_limit_exceeded'],
  ] as const)('is gated as documented, with an account that is %s', async (state, status, code) => {
    const key = sample.keys[state];
    const { body } = await sample.served.ask('GET', '/v1/collections', { key });
    const own = (path: (collection: string) => string) => at(path(body.items[0].id));
    const mine = { ...call, path: own(call.path) };
    if (price === 1) await sample.expectError(mine, key, status, code);
    else expect((await sample.ask(mine, key)).status).toBe(200);
  });
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
