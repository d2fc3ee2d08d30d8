import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import * as z from 'zod';
import * as schemas from '../../src/api/schemas.ts';
import { readSearchFilters } from '../../src/api/search-filters.ts';
import { libraryFilters } from '../../src/library/search/filters.ts';
import { serveLibrary, uuid } from './support/served-library.ts';

const served = await serveLibrary();
afterAll(() => served.close());
await served.importRecords(
  { id: uuid(1), pageId: 'page-1', headline: 'Warm socks', page: { pageName: 'Sock Shop' } },
  { id: uuid(2), pageId: 'page-1', headline: 'Cold drinks', page: { pageName: 'Sock Shop' } },
  { pageId: 'page-2', pageName: 'Drink Shop' },
);

const keys = {
  good: served.key({ name: 'Good key' }),
  revoked: served.key(),
  unsubscribed: served.key({ subscription: false }),
  empty: served.key({ credits: 0 }),
  limited: served.key({ hourlyLimit: 0 }),
  stranger: served.key(),
};
served.library.keys.revoke(keys.revoked);
const collectionOf = async (key: string) => (await served.get('/v1/collections', key)).body.items[0];
const { id: collection } = await collectionOf(keys.good);

/** `{collection}` in a path stands for that of the good key, or another one. */
type Call = { method?: string; path: string; body?: unknown };
const ask = ({ method = 'GET', path, body }: Call, key?: string, of = collection) =>
  served.ask(method, path.replace('{collection}', of), { key, body });

/** Expects the document's error and no charge. */
async function expectError(call: Call, key: string | undefined, status: number, code?: string, of?: string) {
  const answer = await ask(call, key, of);
  expect(answer.status).toBe(status);
  expect(Object.keys(answer.body)).toEqual(['error']);
  const { error } = schemas.ErrorBody.parse(answer.body);
  expect(error.requestId).toMatch(/./);
  expect(error.requestId).toBe(answer.headers.get('x-service-request-id'));
  expect(answer.headers.get('x-service-credits-charged')).toBeNull();
  if (code) expect(error.code).toBe(code);
  return error;
}

const searching = (body: unknown, kind = 'ads'): Call => ({ method: 'POST', path: `/v1/${kind}/search`, body });
const items = '/v1/collections/{collection}/items';
const adding = (body: unknown = { itemType: 'ads', itemId: uuid(1) }): Call => ({ method: 'POST', path: items, body });
const itemsQuery = (query: string): Call => ({ path: `${items}?${query}` });

const charged = ['charged'];
const both = ['charged', 'remaining'];
const paging = { cursor: z.string().nullable(), hasMore: z.boolean(), totalHits: z.number().optional() };
const listOf = (item: z.ZodType, more: z.ZodRawShape = paging) => z.looseObject({ items: z.array(item), ...more });

/** The document's operations: a call that succeeds, its scope, its price where it is gated, its 200 body and headers. */
const documented: [name: string, call: Call, scope: string | undefined, price: 0 | 1, z.ZodType, headers: string[]][] =
  [
    ['whoami', { path: '/v1/whoami' }, undefined, 0, schemas.Identity, []],
    ['getAccount', { path: '/v1/account' }, 'account:read', 0, schemas.Account, []],
    ['getCredits', { path: '/v1/credits' }, 'credits:read', 0, schemas.CreditStatus, both],
    ['listCollections', { path: '/v1/collections' }, 'collections:read', 0, listOf(schemas.Collection, {}), charged],
    ['addCollectionItem', adding(), 'collections:write', 0, schemas.AddCollectionItemResult, charged],
    ['listCollectionItems', itemsQuery('itemType=ads'), 'collections:read', 1, schemas.CollectionItemsResult, both],
    ['searchAds', searching({}), 'ads:read', 1, listOf(schemas.Ad), both],
    ['getAd', { path: `/v1/ads/${uuid(1)}` }, 'ads:read', 1, schemas.Ad, both],
    ['searchPages', searching({}, 'pages'), 'pages:read', 1, listOf(schemas.Page), both],
    ['getPage', { path: '/v1/pages/page-1' }, 'pages:read', 1, schemas.Page, both],
  ];
const scopes = new Set(documented.flatMap(([, , scope]) => scope ?? []));

describe.each(documented)('%s', (name, call, scope, price, body, headers) => {
  test('answers 200 with the documented body and headers', async () => {
    const answer = await ask(call, keys.good);
    expect(answer.status).toBe(200);
    body.parse(answer.body);
    expect(both.filter((header) => answer.headers.has(`x-service-credits-${header}`))).toEqual(headers);
    expect(answer.headers.get('x-service-request-id')).toBeTruthy();
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
    if (headers.length > 0) expect(answer.headers.get('x-service-credits-charged')).toBe(String(price));
  });

  test('answers 401 without a key that works, 403 without its scope, and not with it alone', async () => {
    await expectError(call, undefined, 401, 'missing_api_key');
    await expectError(call, 'svc_live_0000', 401, 'invalid_api_key');
    await expectError(call, keys.revoked, 401, 'revoked_api_key');
    if (scope === undefined) return;
    const others = [...scopes].filter((other) => other !== scope);
    const error = await expectError(call, served.key({ scopes: others }), 403, 'missing_scope');
    expect(error.message).toContain(scope);
    // The collection is that of another account.
    expect((await ask(call, served.key({ scopes: [scope] }))).status).toBe(name.includes('CollectionItem') ? 404 : 200);
  });

  test('is gated as documented, for accounts that may not pay', async () => {
    for (const [state, status, code] of [
      ['unsubscribed', 402, 'subscription_required'],
      ['empty', 402, 'credits_exhausted'],
      ['limited', 429, 'usage_limit_exceeded'],
    ] as const) {
      const { id } = await collectionOf(keys[state]);
      if (price === 1) await expectError(call, keys[state], status, code, id);
      else expect((await ask(call, keys[state], id)).status).toBe(200);
    }
  });
});

describe('what the document says of single operations', () => {
  test('added is true once, and the counts match', async () => {
    const key = served.key();
    const own = await collectionOf(key);
    const collection = { ...own, adCount: 1 };
    const added = { itemType: 'ads', itemId: uuid(1), added: true };
    expect((await ask(adding(), key, own.id)).body).toEqual({ collection, ...added });
    expect((await ask(adding(), key, own.id)).body).toMatchObject({ added: false, collection: { adCount: 1 } });
  });

  test('appUrl is on list items only, and the cursor of the last page is null', async () => {
    const { body } = await served.search({ query: 'socks', limit: 1 });
    expect(body).toMatchObject({ cursor: null, hasMore: false, totalHits: 1 });
    expect(body.items[0].appUrl).toBe(`${served.base}/ads/${uuid(1)}`);
    expect((await served.get(`/v1/ads/${uuid(1)}`)).body).not.toHaveProperty('appUrl');
  });

  test('a page known only from its ads can be read', async () => {
    const page = { pageId: 'page-1', pageName: 'Sock Shop', detailsEstimated: true };
    expect((await served.get('/v1/pages/page-1')).body).toEqual(page);
  });

  test('whoami names the key and never shows it', async () => {
    const { body } = await served.get('/v1/whoami', keys.good);
    expect(body.apiKey).toMatchObject({ name: 'Good key', keyPrefix: keys.good.slice(0, 17) });
    expect(JSON.stringify(body)).not.toContain(keys.good);
  });

  test('a key is read from the header only', async () => {
    await expectError({ path: `/v1/account?api_key=${keys.good}` }, undefined, 401);
  });
});

test.each<[string, Call, key?: keyof typeof keys]>([
  ['collection', { path: `/v1/collections/${uuid(99)}/items?itemType=ads` }],
  ['collection to add to', { ...adding(), path: `/v1/collections/${uuid(99)}/items` }],
  ['collection of this account', itemsQuery('itemType=ads'), 'stranger'],
  ['collection of this account to add to', adding(), 'stranger'],
  ['ad', { path: `/v1/ads/${uuid(99)}` }],
  ['page', { path: '/v1/pages/nobody' }],
  ['page by an id that begins like one', { path: '/v1/pages/page-1%00x' }],
  ['picture', { path: '/media/kept/0.webp' }],
  ['picture of the demo, where other data is served', { path: '/media/demo/mossgate-1-offer.webp' }],
  ['ad to add', adding({ itemType: 'ads', itemId: uuid(99) })],
  ['page to add', adding({ itemType: 'pages', itemId: 'nobody' })],
])('a missing %s is a 404', async (_, call, key = 'good') => {
  await expectError(call, keys[key], 404, 'not_found');
});

test.each(['/', '/v1', '/v1/adverts', '/v2/account', '/v1/ads', '/v1/ads/a/b'])('%s is no path: 404', async (path) => {
  await expectError({ path }, undefined, 404, 'no_such_path');
});

const isoDate = 'an ISO 8601 date \\(2026-01-31\\) or date-time with its zone';

test.each<[string, Call, RegExp]>([
  ['a collection id that is no UUID', { path: '/v1/collections/7/items?itemType=ads' }, /UUID/],
  ['no itemType', { path: items }, /itemType/],
  ['an unknown itemType', itemsQuery('itemType=cats'), /ads or pages.*cats/],
  ['limit 0', itemsQuery('itemType=ads&limit=0'), /1 to 100/],
  ['limit 101', itemsQuery('itemType=ads&limit=101'), /1 to 100/],
  ['limit 1.5', itemsQuery('itemType=ads&limit=1.5'), /whole number/],
  ['limit ten', itemsQuery('itemType=ads&limit=ten'), /whole number/],
  ['a made-up cursor', itemsQuery('itemType=ads&cursor=abc'), /cursor/],
  ['an ad id that is no UUID', { path: '/v1/ads/7' }, /UUID/],
  ['a page id that is too long', { path: `/v1/pages/${'x'.repeat(301)}` }, /300/],
  ['a body without itemId', adding({ itemType: 'ads' }), /itemId/],
  ['an empty itemId', adding({ itemType: 'pages', itemId: '' }), /itemId/],
  ['a numeric itemId', adding({ itemType: 'pages', itemId: 1 }), /itemId/],
  ['an ad to add whose id is no UUID', adding({ itemType: 'ads', itemId: 'x' }), /UUID/],
  ['an item type nobody knows', adding({ itemType: 'x', itemId: 'x' }), /itemType/],
  ['a body that is no JSON', searching('{"query":'), /not JSON/],
  ['an empty body', searching(''), /empty/],
  ['an array', searching([]), /JSON object/],
  ['null', searching(null, 'pages'), /JSON object/],
  ['a body that is too large', searching({ query: 'x'.repeat(70_000) }), /65536 bytes/],
  ['too deep a body', searching(`{"limit":${'['.repeat(70)}${']'.repeat(70)}}`), /nested deeper than 64 levels/],
  ['too deep a not', searching(`${'{"not":'.repeat(5000)}{}${'}'.repeat(5000)}`), /nested deeper than 64 levels/],
  ['a search limit of 0', searching({ limit: 0 }), /1 to 100/],
  ['a search limit of 101', searching({ limit: 101 }, 'pages'), /1 to 100/],
  ['a search limit in words', searching({ limit: '20' }), /whole number.*"20"/],
  ['a cursor that is no text', searching({ cursor: 7 }), /cursor/],
  ['a cursor made up', searching({ cursor: 'e30.AAAA' }), /cursor/],
  ['an unknown key', searching({ countrys: [] }), /Did you mean "countries"\?.*Known keys: cursor, limit, query/],
  ['a key of the other search', searching({ languages: ['de'] }), /Unknown filter key "languages"/],
  ['a text as boolean', searching({ active: 'yes' }), /"active" takes true or false; got "yes"/],
  ['a number as text', searching({ query: 7 }), /"query" takes a text that is not empty; got 7/],
  ['blanks', searching({ query: '  ' }), /"query" takes a text that is not empty; got " {2}"/],
  ['a long text', searching({ query: 'x'.repeat(301) }), /"query" takes a text of at most 300 characters; got 301/],
  ['an empty list', searching({ countries: [] }), /"countries" takes a list of texts; got \[\]/],
  ['a mixed list', searching({ countries: ['DE', 1] }), /"countries" takes a list of texts; got \["DE",1\]/],
  ['a long list', searching({ countries: Array(51).fill('DE') }), /takes a list of at most 50 texts; got 51/],
  ['an unknown order', searching({ sort: 'luck' }), /"sort" takes one of startedAt, .*; got "luck"/],
  ['a text as number', searching({ duplicatesFrom: 'many' }), /"duplicatesFrom" takes a number; got "many"/],
  ['no date', searching({ startedAtFrom: 'yesterday' }), new RegExp(`takes ${isoDate}.*; got "yesterday"`)],
  ['a day that is not', searching({ startedAtFrom: '2026-02-31T25:00:00Z' }), new RegExp(`takes ${isoDate}`)],
  ['a number as date', searching({ startedAtFrom: 20_260_131 }), new RegExp(`takes ${isoDate}.*; got 20260131`)],
  ['an unknown countBy', searching({ countBy: 'colour' }), /"countBy" takes one of active, advertiserExact, /],
  ['countBy of a filter', searching({ countBy: 'active', active: true }), /not among the filters; got "active"/],
  ['missing nothing known', searching({ missing: ['colour'] }), /"missing" takes one of headline, .*; got "colour"/],
  ['missing __proto__', searching({ missing: ['__proto__'] }), /"missing" takes one of .*; got "__proto__"/],
  ['a text as not', searching({ not: 'DE' }), /"not" takes an object of filters other than not, sort .*; got "DE"/],
  ['a list as not', searching({ not: [] }), /"not" takes an object of filters other.*; got \[\]/],
  ['not in not', searching({ not: { not: {} } }), /Unknown filter key "not"\. .*Known keys: query, /],
  ['sort in not', searching({ not: { sort: 'startedAt' } }), /Unknown filter key "sort"/],
  ['limit in not', searching({ not: { limit: 1 } }), /Unknown filter key "limit"\. .*Known keys: query, /],
  ['a typo in not', searching({ not: { contries: ['DE'] } }), /key "contries"\. Did you mean "countries"\?/],
  ['__proto__ in not', searching('{"not":{"__proto__":1}}'), /Unknown filter key "__proto__"/],
])('%s is a 422 that says what was expected, and charges nothing', async (_, call, message) => {
  expect((await expectError(call, keys.good, 422, 'invalid_request')).message).toMatch(message);
});

test('a body of another type, or not in UTF-8, is a 422', async () => {
  const send = async (type: string, body: string | Uint8Array<ArrayBuffer>) => {
    const headers = { Authorization: `Bearer ${keys.good}`, 'Content-Type': type };
    const response = await fetch(`${served.base}/v1/ads/search`, { method: 'POST', headers, body });
    return [response.status, schemas.ErrorBody.parse(await response.json()).error.message];
  };
  expect(await send('text/plain', '{}')).toEqual([422, expect.stringContaining('application/json"; got "text/plain"')]);
  expect(await send('', '{}')).toEqual([422, expect.stringContaining('application/json"; got ""')]);
  expect(await send('application/json', new Uint8Array([0x7b, 0xff, 0x7d]))).toEqual([422, 'The body is not UTF-8.']);
});

test('the checks come in the order key, scope, request, existence, credits', async () => {
  const bad = { path: '/v1/ads/not-a-uuid' };
  await expectError(bad, 'svc_live_x', 401);
  await expectError(bad, served.key({ scopes: ['pages:read'], credits: 0 }), 403);
  await expectError(bad, keys.empty, 422);
  await expectError({ path: `/v1/ads/${uuid(99)}` }, keys.empty, 404);
  await expectError({ path: `/v1/ads/${uuid(1)}` }, keys.empty, 402);
  await expectError({ path: `/v1/ads/${uuid(1)}` }, served.key({ credits: 0, hourlyLimit: 0 }), 402);
});

test('other methods are a 405 that names the right one; HEAD too, and it is never paid', async () => {
  for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS', 'POST']) {
    await expectError({ method, path: '/v1/account' }, keys.good, 405, 'method_not_allowed');
    expect((await served.ask(method, '/v1/account')).headers.get('allow')).toBe('GET');
  }
  const key = served.key({ credits: 7 });
  expect((await served.ask('HEAD', `/v1/ads/${uuid(1)}`, { key })).status).toBe(405);
  expect((await served.get('/v1/credits', key)).body.credits).toBe(7);
});

test('any request at all gets an answer in the documented form', async () => {
  const piece = fc.oneof(
    fc.constantFrom('v1', 'ads', 'pages', 'collections', 'items', 'search', 'media', 'logo.webp', uuid(1), '-', '..'),
    fc.webSegment(),
    fc.constantFrom('%E0%A4%A', '%00', '%2F', '%ff', '%F0%9F%94%A5'),
  );
  const path = fc.array(piece, { maxLength: 5 }).map((pieces) => `/${pieces.join('/')}`);
  const method = fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'OPTIONS');
  const body = fc.oneof(fc.json(), fc.string());
  await fc.assert(
    fc.asyncProperty(method, path, fc.webQueryParameters(), body, async (method, path, query, body) => {
      const answer = await ask({ method, path: `${path}?${query}`, ...(method !== 'GET' && { body }) }, keys.good);
      expect(answer.status).toBeLessThan(500);
      if (answer.status !== 200) schemas.ErrorBody.parse(answer.body);
    }),
    { numRuns: 300 },
  );
});

test('a page id may hold any character', async () => {
  const pageId = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }).filter((id) => !/^\.\.?$/.test(id));
  await fc.assert(
    fc.asyncProperty(pageId, async (pageId) => {
      await served.importRecords({ pageId, pageName: 'Any' });
      expect((await served.get(`/v1/pages/${encodeURIComponent(pageId)}`)).body.pageId).toBe(pageId);
    }),
  );
});

test('the filters are served without a key, in the form in which a file describes those of another service', async () => {
  const { status, body } = await served.ask('GET', '/filters.json');
  expect({ status, body }).toEqual({ status: 200, body: libraryFilters });
  expect(readSearchFilters(body)).toEqual(libraryFilters);
});

test('no request caused an internal error; one reaches the log in full, and callers as a plain 500', async () => {
  expect(served.errors).toEqual([]);
  served.library.context.database.run('DROP TABLE collection_items');
  const { status, headers, body } = await served.get('/v1/collections');
  const [message, requestId] = ['The library failed to answer; its log says why.', headers.get('x-service-request-id')];
  expect([status, body.error]).toEqual([500, { code: 'internal_error', message, requestId }]);
  expect(served.errors.map(String)).toEqual([expect.stringContaining('collection_items')]);
});
