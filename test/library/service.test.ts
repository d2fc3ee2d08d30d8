import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import * as z from 'zod';
import * as schemas from '../../src/api/schemas.ts';
import { parseSearchFilters } from '../../src/api/search-filters.ts';
import { libraryFilters } from '../../src/library/search/filters.ts';
import { createUuid, startLibraryServer } from './support/library-server.ts';

const libraryServer = await startLibraryServer();
afterAll(() => libraryServer.close());
await libraryServer.importRecords(
  { id: createUuid(1), pageId: 'page-1', headline: 'Warm socks', page: { pageName: 'Sock Shop' } },
  { id: createUuid(2), pageId: 'page-1', headline: 'Cold drinks', page: { pageName: 'Sock Shop' } },
  { pageId: 'page-2', pageName: 'Drink Shop' },
);

/** API keys of accounts in different states, e.g. without credits or without a subscription. */
const keys = {
  good: libraryServer.createKey({ name: 'Good key' }),
  revoked: libraryServer.createKey(),
  unsubscribed: libraryServer.createKey({ subscription: false }),
  empty: libraryServer.createKey({ credits: 0 }),
  limited: libraryServer.createKey({ hourlyLimit: 0 }),
  stranger: libraryServer.createKey(),
};
libraryServer.library.keys.revoke(keys.revoked);
const readFirstCollection = async (key: string) => (await libraryServer.get('/v1/collections', key)).body.items[0];
const { id: defaultCollectionId } = await readFirstCollection(keys.good);

/**
 * A request to the API. `{collection}` in its path stands for the id of a collection, by default the first collection
 * of the `keys.good` key.
 */
type Call = { method?: string; path: string; body?: unknown };
const send = ({ method = 'GET', path, body }: Call, key?: string, collectionId = defaultCollectionId) =>
  libraryServer.request(method, path.replace('{collection}', collectionId), { key, body });

/** Sends a request, and checks that the response is a documented error that costs no credits. Returns the error. */
async function expectError(call: Call, key: string | undefined, status: number, code?: string, collectionId?: string) {
  const answer = await send(call, key, collectionId);
  expect(answer.status).toBe(status);
  expect(Object.keys(answer.body)).toEqual(['error']);
  const { error } = schemas.ErrorBody.parse(answer.body);
  expect(error.requestId).toMatch(/./);
  expect(error.requestId).toBe(answer.headers.get('x-service-request-id'));
  expect(answer.headers.get('x-service-credits-charged')).toBeNull();
  if (code) expect(error.code).toBe(code);
  return error;
}

const searchCall = (body: unknown, kind = 'ads'): Call => ({ method: 'POST', path: `/v1/${kind}/search`, body });
const itemsPath = '/v1/collections/{collection}/items';
const addItemCall = (body: unknown = { itemType: 'ads', itemId: createUuid(1) }): Call => ({
  method: 'POST',
  path: itemsPath,
  body,
});
const listItemsCall = (query: string): Call => ({ path: `${itemsPath}?${query}` });

const chargedHeader = ['charged'];
const bothHeaders = ['charged', 'remaining'];
const pageFields = { cursor: z.string().nullable(), hasMore: z.boolean(), totalHits: z.number().optional() };
const listSchema = (item: z.ZodType, otherFields: z.ZodRawShape = pageFields) =>
  z.looseObject({ items: z.array(item), ...otherFields });

/**
 * The documented operations: for each one, a successful call, the scope and the price in credits, the schema of the
 * response body, and the credit headers.
 */
const documented: [name: string, call: Call, scope: string | undefined, price: 0 | 1, z.ZodType, headers: string[]][] =
  [
    ['whoami', { path: '/v1/whoami' }, undefined, 0, schemas.Identity, []],
    ['getAccount', { path: '/v1/account' }, 'account:read', 0, schemas.Account, []],
    ['getCredits', { path: '/v1/credits' }, 'credits:read', 0, schemas.CreditStatus, bothHeaders],
    [
      'listCollections',
      { path: '/v1/collections' },
      'collections:read',
      0,
      listSchema(schemas.Collection, {}),
      chargedHeader,
    ],
    ['addCollectionItem', addItemCall(), 'collections:write', 0, schemas.AddCollectionItemResult, chargedHeader],
    [
      'listCollectionItems',
      listItemsCall('itemType=ads'),
      'collections:read',
      1,
      schemas.CollectionItemsResult,
      bothHeaders,
    ],
    ['searchAds', searchCall({}), 'ads:read', 1, listSchema(schemas.Ad), bothHeaders],
    ['getAd', { path: `/v1/ads/${createUuid(1)}` }, 'ads:read', 1, schemas.Ad, bothHeaders],
    ['searchPages', searchCall({}, 'pages'), 'pages:read', 1, listSchema(schemas.Page), bothHeaders],
    ['getPage', { path: '/v1/pages/page-1' }, 'pages:read', 1, schemas.Page, bothHeaders],
  ];
const scopes = new Set(documented.flatMap(([, , scope]) => scope ?? []));

describe.each(documented)("The local library's API operation %s", (name, call, scope, price, body, headers) => {
  test('the local library responds to a valid request with 200 and the documented body and headers', async () => {
    const answer = await send(call, keys.good);
    expect(answer.status).toBe(200);
    body.parse(answer.body);
    expect(bothHeaders.filter((header) => answer.headers.has(`x-service-credits-${header}`))).toEqual(headers);
    expect(answer.headers.get('x-service-request-id')).toBeTruthy();
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
    if (headers.length > 0) expect(answer.headers.get('x-service-credits-charged')).toBe(String(price));
  });

  test('the local library responds with 401 to an invalid API key and with 403 to a missing permission', async () => {
    await expectError(call, undefined, 401, 'missing_api_key');
    await expectError(call, 'svc_live_0000', 401, 'invalid_api_key');
    await expectError(call, keys.revoked, 401, 'revoked_api_key');
    if (scope === undefined) return;
    const otherScopes = [...scopes].filter((other) => other !== scope);
    const error = await expectError(call, libraryServer.createKey({ scopes: otherScopes }), 403, 'missing_scope');
    expect(error.message).toContain(scope);
    // A key with only this scope is accepted. Calls for a collection return 404, because the collection belongs to
    // another account.
    expect((await send(call, libraryServer.createKey({ scopes: [scope] }))).status).toBe(
      name.includes('CollectionItem') ? 404 : 200,
    );
  });

  test('calls from a local library account without credits fail only if the operation costs credits', async () => {
    for (const [state, status, code] of [
      ['unsubscribed', 402, 'subscription_required'],
      ['empty', 402, 'credits_exhausted'],
      ['limited', 429, 'usage_limit_exceeded'],
    ] as const) {
      const { id } = await readFirstCollection(keys[state]);
      if (price === 1) await expectError(call, keys[state], status, code, id);
      else expect((await send(call, keys[state], id)).status).toBe(200);
    }
  });
});

describe("Details of the local library's API", () => {
  test('adding the same item to a collection of the library twice counts the item once', async () => {
    const key = libraryServer.createKey();
    const emptyCollection = await readFirstCollection(key);
    const collection = { ...emptyCollection, adCount: 1 };
    const added = { itemType: 'ads', itemId: createUuid(1), added: true };
    expect((await send(addItemCall(), key, emptyCollection.id)).body).toEqual({ collection, ...added });
    expect((await send(addItemCall(), key, emptyCollection.id)).body).toMatchObject({
      added: false,
      collection: { adCount: 1 },
    });
  });

  test('the library API returns the appUrl field for ads in lists, but not for a single ad', async () => {
    const { body } = await libraryServer.search({ query: 'socks', limit: 1 });
    expect(body).toMatchObject({ cursor: null, hasMore: false, totalHits: 1 });
    expect(body.items[0].appUrl).toBe(`${libraryServer.baseUrl}/ads/${createUuid(1)}`);
    expect((await libraryServer.get(`/v1/ads/${createUuid(1)}`)).body).not.toHaveProperty('appUrl');
  });

  test("the library API returns an advertiser page that it knows only from the page's ads", async () => {
    const page = { pageId: 'page-1', pageName: 'Sock Shop', detailsEstimated: true };
    expect((await libraryServer.get('/v1/pages/page-1')).body).toEqual(page);
  });

  test('the operation whoami of the library API returns the name and prefix of the API key', async () => {
    const { body } = await libraryServer.get('/v1/whoami', keys.good);
    expect(body.apiKey).toMatchObject({ name: 'Good key', keyPrefix: keys.good.slice(0, 17) });
    expect(JSON.stringify(body)).not.toContain(keys.good);
  });

  test('the library API ignores an API key in the query of the URL', async () => {
    await expectError({ path: `/v1/account?api_key=${keys.good}` }, undefined, 401);
  });
});

test.each<[string, Call, key?: keyof typeof keys]>([
  ['collection', { path: `/v1/collections/${createUuid(99)}/items?itemType=ads` }],
  ['collection to add to', { ...addItemCall(), path: `/v1/collections/${createUuid(99)}/items` }],
  ['collection of this account', listItemsCall('itemType=ads'), 'stranger'],
  ['collection of this account to add to', addItemCall(), 'stranger'],
  ['ad', { path: `/v1/ads/${createUuid(99)}` }],
  ['page', { path: '/v1/pages/nobody' }],
  ['page by an id that begins like one', { path: '/v1/pages/page-1%00x' }],
  ['picture', { path: '/media/kept/0.webp' }],
  ['picture of the demo in a library without demo data', { path: '/media/demo/mossgate-1-offer.webp' }],
  ['ad to add', addItemCall({ itemType: 'ads', itemId: createUuid(99) })],
  ['page to add', addItemCall({ itemType: 'pages', itemId: 'nobody' })],
])('the library API responds with 404 to a request for a %s that does not exist', async (_, call, key = 'good') => {
  await expectError(call, keys[key], 404, 'not_found');
});

test.each(['/', '/v1', '/v1/adverts', '/v2/account', '/v1/ads', '/v1/ads/a/b'])(
  'the library API responds with 404 to a request for the unknown path %s',
  async (path) => {
    await expectError({ path }, undefined, 404, 'no_such_path');
  },
);

const isoDate = 'an ISO 8601 date \\(2026-01-31\\) or date-time with its zone';

test.each<[string, Call, RegExp]>([
  ['a collection id that is not a UUID', { path: '/v1/collections/7/items?itemType=ads' }, /UUID/],
  ['a list of items without itemType', { path: itemsPath }, /itemType/],
  ['a list of items with an unknown itemType', listItemsCall('itemType=cats'), /ads or pages.*cats/],
  ['a list of items with limit 0', listItemsCall('itemType=ads&limit=0'), /1 to 100/],
  ['a list of items with limit 101', listItemsCall('itemType=ads&limit=101'), /1 to 100/],
  ['a list of items with limit 1.5', listItemsCall('itemType=ads&limit=1.5'), /whole number/],
  ['a list of items with limit ten', listItemsCall('itemType=ads&limit=ten'), /whole number/],
  ['a list of items with a made-up cursor', listItemsCall('itemType=ads&cursor=abc'), /cursor/],
  ['an ad id that is not a UUID', { path: '/v1/ads/7' }, /UUID/],
  ['a page id that is too long', { path: `/v1/pages/${'x'.repeat(301)}` }, /300/],
  ['an item to add without itemId', addItemCall({ itemType: 'ads' }), /itemId/],
  ['an item to add with an empty itemId', addItemCall({ itemType: 'pages', itemId: '' }), /itemId/],
  ['an item to add with a numeric itemId', addItemCall({ itemType: 'pages', itemId: 1 }), /itemId/],
  ['an ad to add whose id is not a UUID', addItemCall({ itemType: 'ads', itemId: 'x' }), /UUID/],
  ['an item to add of an unknown type', addItemCall({ itemType: 'x', itemId: 'x' }), /itemType/],
  ['a body that is not JSON', searchCall('{"query":'), /not JSON/],
  ['an empty body', searchCall(''), /empty/],
  ['an array as the body', searchCall([]), /JSON object/],
  ['null as the body', searchCall(null, 'pages'), /JSON object/],
  ['a body that is too large', searchCall({ query: 'x'.repeat(70_000) }), /65536 bytes/],
  [
    'a body that is nested too deep',
    searchCall(`{"limit":${'['.repeat(70)}${']'.repeat(70)}}`),
    /nested deeper than 64 levels/,
  ],
  [
    'a filter not that is nested too deep',
    searchCall(`${'{"not":'.repeat(5000)}{}${'}'.repeat(5000)}`),
    /nested deeper than 64 levels/,
  ],
  ['a search limit of 0', searchCall({ limit: 0 }), /1 to 100/],
  ['a search limit of 101', searchCall({ limit: 101 }, 'pages'), /1 to 100/],
  ['a search limit that is a text', searchCall({ limit: '20' }), /whole number.*"20"/],
  ['a cursor that is a number', searchCall({ cursor: 7 }), /cursor/],
  ['a made-up cursor of a search', searchCall({ cursor: 'e30.AAAA' }), /cursor/],
  [
    'an unknown filter key',
    searchCall({ countrys: [] }),
    /Did you mean "countries"\?.*Known keys: cursor, limit, query/,
  ],
  [
    'a filter key without the suffix of its bound',
    searchCall({ startedAt: '2025-12-01' }),
    /Did you mean "startedAtFrom" or "startedAtTo"\?/,
  ],
  ['a filter key of the other search', searchCall({ languages: ['de'] }), /Unknown filter key "languages"/],
  ['a text for a boolean filter', searchCall({ active: 'yes' }), /"active" takes true or false; got "yes"/],
  ['a number for a text filter', searchCall({ query: 7 }), /"query" takes a text that is not empty; got 7/],
  ['a text of blanks only', searchCall({ query: '  ' }), /"query" takes a text that is not empty; got " {2}"/],
  [
    'a text that is too long',
    searchCall({ query: 'x'.repeat(301) }),
    /"query" takes a text of at most 300 characters; got 301/,
  ],
  ['an empty list', searchCall({ countries: [] }), /"countries" takes a list of texts; got \[\]/],
  [
    'a list of texts and numbers',
    searchCall({ countries: ['DE', 1] }),
    /"countries" takes a list of texts; got \["DE",1\]/,
  ],
  [
    'a list that is too long',
    searchCall({ countries: Array(51).fill('DE') }),
    /takes a list of at most 50 texts; got 51/,
  ],
  ['an unknown sort key', searchCall({ sort: 'luck' }), /"sort" takes one of startedAt, .*; got "luck"/],
  ['a text for a number filter', searchCall({ duplicatesFrom: 'many' }), /"duplicatesFrom" takes a number; got "many"/],
  [
    'a word for a date filter',
    searchCall({ startedAtFrom: 'yesterday' }),
    new RegExp(`takes ${isoDate}.*; got "yesterday"`),
  ],
  [
    'an hour that does not exist',
    searchCall({ startedAtFrom: '2026-02-28T25:00:00Z' }),
    new RegExp(`takes ${isoDate}`),
  ],
  ['a day that does not exist', searchCall({ startedAtFrom: '2026-02-31' }), new RegExp(`takes ${isoDate}`)],
  ['a leap day in another year', searchCall({ startedAtTo: '2026-02-29T12:00:00Z' }), new RegExp(`takes ${isoDate}`)],
  [
    'a number for a date filter',
    searchCall({ startedAtFrom: 20_260_131 }),
    new RegExp(`takes ${isoDate}.*; got 20260131`),
  ],
  ['an unknown key in countBy', searchCall({ countBy: 'colour' }), /"countBy" takes one of active, advertiserExact, /],
  [
    'a key in countBy that is also a filter',
    searchCall({ countBy: 'active', active: true }),
    /not among the filters; got "active"/,
  ],
  [
    'an unknown key in missing',
    searchCall({ missing: ['colour'] }),
    /"missing" takes one of headline, .*; got "colour"/,
  ],
  ['__proto__ in missing', searchCall({ missing: ['__proto__'] }), /"missing" takes one of .*; got "__proto__"/],
  [
    'a text for the filter not',
    searchCall({ not: 'DE' }),
    /"not" takes an object of filters other than not, sort .*; got "DE"/,
  ],
  ['a list for the filter not', searchCall({ not: [] }), /"not" takes an object of filters other.*; got \[\]/],
  ['a not inside not', searchCall({ not: { not: {} } }), /Unknown filter key "not"\. .*Known keys: query, /],
  ['sort inside not', searchCall({ not: { sort: 'startedAt' } }), /Unknown filter key "sort"/],
  ['limit inside not', searchCall({ not: { limit: 1 } }), /Unknown filter key "limit"\. .*Known keys: query, /],
  [
    'a misspelled key inside not',
    searchCall({ not: { contries: ['DE'] } }),
    /key "contries"\. Did you mean "countries"\?/,
  ],
  ['__proto__ inside not', searchCall('{"not":{"__proto__":1}}'), /Unknown filter key "__proto__"/],
])('the library API rejects %s with status 422 and says what it expects', async (_, call, message) => {
  expect((await expectError(call, keys.good, 422, 'invalid_request')).message).toMatch(message);
});

test('the library API rejects a request body whose media type or encoding is not supported', async () => {
  const sendBody = async (contentType: string, body: string | Uint8Array<ArrayBuffer>) => {
    const headers = { Authorization: `Bearer ${keys.good}`, 'Content-Type': contentType };
    const response = await fetch(`${libraryServer.baseUrl}/v1/ads/search`, { method: 'POST', headers, body });
    return [response.status, schemas.ErrorBody.parse(await response.json()).error.message];
  };
  expect(await sendBody('text/plain', '{}')).toEqual([
    422,
    expect.stringContaining('application/json"; got "text/plain"'),
  ]);
  expect(await sendBody('', '{}')).toEqual([422, expect.stringContaining('application/json"; got ""')]);
  expect(await sendBody('application/json', new Uint8Array([0x7b, 0xff, 0x7d]))).toEqual([
    422,
    'The body is not UTF-8.',
  ]);
});

test('if a request has several problems, the library API reports the first one in a fixed order, such as 401 before 403', async () => {
  const invalidCall = { path: '/v1/ads/not-a-uuid' };
  await expectError(invalidCall, 'svc_live_x', 401);
  await expectError(invalidCall, libraryServer.createKey({ scopes: ['pages:read'], credits: 0 }), 403);
  await expectError(invalidCall, keys.empty, 422);
  await expectError({ path: `/v1/ads/${createUuid(99)}` }, keys.empty, 404);
  await expectError({ path: `/v1/ads/${createUuid(1)}` }, keys.empty, 402);
  await expectError({ path: `/v1/ads/${createUuid(1)}` }, libraryServer.createKey({ credits: 0, hourlyLimit: 0 }), 402);
});

test('the library API responds with 405 to a request with the wrong HTTP method', async () => {
  for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS', 'POST']) {
    await expectError({ method, path: '/v1/account' }, keys.good, 405, 'method_not_allowed');
    expect((await libraryServer.request(method, '/v1/account')).headers.get('allow')).toBe('GET');
  }
  const key = libraryServer.createKey({ credits: 7 });
  expect((await libraryServer.request('HEAD', `/v1/ads/${createUuid(1)}`, { key })).status).toBe(405);
  expect((await libraryServer.get('/v1/credits', key)).body.credits).toBe(7);
});

test('the library API responds to any random request as documented and never with an internal error', async () => {
  const piece = fc.oneof(
    fc.constantFrom(
      'v1',
      'ads',
      'pages',
      'collections',
      'items',
      'search',
      'media',
      'logo.webp',
      createUuid(1),
      '-',
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
      const answer = await send({ method, path: `${path}?${query}`, ...(method !== 'GET' && { body }) }, keys.good);
      expect(answer.status).toBeLessThan(500);
      if (answer.status !== 200) schemas.ErrorBody.parse(answer.body);
    }),
    { numRuns: 300 },
  );
});

test('the library API returns an advertiser page although the id of the page has unusual characters', async () => {
  const pageId = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }).filter((id) => !/^\.\.?$/.test(id));
  await fc.assert(
    fc.asyncProperty(pageId, async (pageId) => {
      await libraryServer.importRecords({ pageId, pageName: 'Any' });
      expect((await libraryServer.get(`/v1/pages/${encodeURIComponent(pageId)}`)).body.pageId).toBe(pageId);
    }),
  );
});

test("the search filter list at the library's path /filters.json needs no API key", async () => {
  const { status, body } = await libraryServer.request('GET', '/filters.json');
  expect({ status, body }).toEqual({ status: 200, body: libraryFilters });
  expect(parseSearchFilters(body)).toEqual(libraryFilters);
});

test('the library logs an internal error in full and responds with 500 without details', async () => {
  // No test in this file has caused an internal error so far.
  expect(libraryServer.errors).toEqual([]);
  libraryServer.library.context.database.run('DROP TABLE collection_items');
  const { status, headers, body } = await libraryServer.get('/v1/collections');
  const [message, requestId] = ['The library failed to answer; its log says why.', headers.get('x-service-request-id')];
  expect([status, body.error]).toEqual([500, { code: 'internal_error', message, requestId }]);
  expect(libraryServer.errors.map(String)).toEqual([expect.stringContaining('collection_items')]);
});
