import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ErrorBody } from '../../src/api/schemas.ts';
import { plan } from '../../src/library/service/accounts.ts';
import { at, type Case, itemsOf, type SampleLibrary, search, serveSampleLibrary } from './support/sample-library.ts';
import { uuid } from './support/served-library.ts';

let sample: SampleLibrary;
beforeAll(async () => {
  sample = await serveSampleLibrary();
});
afterAll(() => sample.served.close());

const add = { method: 'POST', path: itemsOf('/items') };
const item = { itemType: 'ads', itemId: uuid(1) };
const ads = { path: at('/v1/ads/search') };
const pages = { path: at('/v1/pages/search') };

describe('404', () => {
  test.each<[string, Case, keyof SampleLibrary['keys']]>([
    ['collection', { path: at(`/v1/collections/${uuid(99)}/items?itemType=ads`) }, 'good'],
    ['collection to add to', { ...add, path: at(`/v1/collections/${uuid(99)}/items`), body: item }, 'good'],
    ['collection of this account', { path: itemsOf('/items?itemType=ads') }, 'stranger'],
    ['collection of this account to add to', { ...add, body: item }, 'stranger'],
    ['ad', { path: at(`/v1/ads/${uuid(99)}`) }, 'good'],
    ['page', { path: at('/v1/pages/nobody') }, 'good'],
    ['page by an id that begins like one', { path: at('/v1/pages/page-1%00x') }, 'good'],
    ['picture', { path: at(`/media/ads/${uuid(99)}/0.webp`) }, 'good'],
    ['ad to add', { ...add, body: { itemType: 'ads', itemId: uuid(99) } }, 'good'],
    ['page to add', { ...add, body: { itemType: 'pages', itemId: 'nobody' } }, 'good'],
  ])('for a missing %s', async (_, call, key) => {
    await sample.expectError(call, sample.keys[key], 404, 'not_found');
  });

  test('for an unknown path, with or without a key', async () => {
    for (const path of ['/', '/v1', '/v1/adverts', '/v2/account', '/v1/ads', '/v1/ads/a/b'])
      await sample.expectError({ path: at(path) }, undefined, 404, 'no_such_path');
  });
});

describe('422', () => {
  test.each<[string, Case, RegExp]>([
    ['a collection id that is no UUID', { path: at('/v1/collections/7/items?itemType=ads') }, /UUID/],
    ['no itemType', { path: itemsOf('/items') }, /itemType/],
    ['an unknown itemType', { path: itemsOf('/items?itemType=cats') }, /ads or pages.*cats/],
    ['limit 0', { path: itemsOf('/items?itemType=ads&limit=0') }, /1 to 100/],
    ['limit 101', { path: itemsOf('/items?itemType=ads&limit=101') }, /1 to 100/],
    ['limit 1.5', { path: itemsOf('/items?itemType=ads&limit=1.5') }, /whole number/],
    ['limit ten', { path: itemsOf('/items?itemType=ads&limit=ten') }, /whole number/],
    ['a made-up cursor', { path: itemsOf('/items?itemType=ads&cursor=abc') }, /cursor/],
    ['an ad id that is no UUID', { path: at('/v1/ads/7') }, /UUID/],
    ['a page id that is too long', { path: at(`/v1/pages/${'x'.repeat(301)}`) }, /300/],
    ['a body without itemId', { ...add, body: { itemType: 'ads' } }, /itemId/],
    ['a body with an empty itemId', { ...add, body: { itemType: 'pages', itemId: '' } }, /itemId/],
    ['a body with a numeric itemId', { ...add, body: { itemType: 'pages', itemId: 1 } }, /itemId/],
    ['an ad to add whose id is no UUID', { ...add, body: { itemType: 'ads', itemId: 'x' } }, /UUID/],
    ['an item type nobody knows', { ...add, body: { itemType: 'x', itemId: 'x' } }, /itemType/],
    ['a body that is no JSON', { ...search('{"query":'), ...ads }, /not JSON/],
    ['an empty body', { ...search(''), ...ads }, /empty/],
    ['an array', { ...search([]), ...ads }, /JSON object/],
    ['null', { ...search(null), ...pages }, /JSON object/],
    ['a body that is too large', { ...search({ query: 'x'.repeat(70_000) }), ...ads }, /65536 bytes/],
    ['a search limit of 0', { ...search({ limit: 0 }), ...ads }, /1 to 100/],
    ['a search limit of 101', { ...search({ limit: 101 }), ...pages }, /1 to 100/],
    ['a search limit in words', { ...search({ limit: '20' }), ...ads }, /whole number.*"20"/],
    ['a cursor that is no text', { ...search({ cursor: 7 }), ...ads }, /cursor/],
    ['a cursor made up', { ...search({ cursor: 'e30.AAAA' }), ...ads }, /cursor/],
    [
      'an unknown key',
      { ...search({ countrys: ['US'] }), ...ads },
      /Did you mean "countries"\?.*Known keys: limit, cursor, query/,
    ],
    ['a filter of the wrong type', { ...search({ active: 'yes' }), ...ads }, /"active" takes true or false; got "yes"/],
    ['a key of the other search', { ...search({ languages: ['de'] }), ...ads }, /Unknown filter key "languages"/],
  ])('%s, and charges nothing', async (_, call, message) => {
    const error = await sample.expectError(call, sample.keys.good, 422, 'invalid_request');
    expect(error.message).toMatch(message);
  });

  test('a body of another type, or not in UTF-8', async () => {
    const headers = { 'Content-Type': 'text/plain' };
    const plain = await sample.served.ask('POST', '/v1/ads/search', { key: sample.keys.good, body: '{}', headers });
    expect(plain.status).toBe(422);
    expect(plain.body.error.message).toContain('application/json');
    const none = await sample.served.ask('POST', '/v1/ads/search', { key: sample.keys.good });
    expect([none.status, none.body.error.message]).toEqual([422, expect.stringContaining('application/json"; got ""')]);
    const response = await fetch(`${sample.served.base}/v1/ads/search`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${sample.keys.good}`, 'Content-Type': 'application/json' },
      body: new Uint8Array([0x7b, 0xff, 0x7d]),
    });
    expect(response.status).toBe(422);
  });
});

describe('the order of the checks', () => {
  const bad = { path: at('/v1/ads/not-a-uuid') };
  test('is key, scope, request, existence, credits', async () => {
    await sample.expectError(bad, 'svc_live_x', 401);
    await sample.expectError(bad, sample.served.key({ scopes: ['pages:read'], credits: 0 }), 403);
    await sample.expectError(bad, sample.keys.empty, 422);
    await sample.expectError({ path: at(`/v1/ads/${uuid(99)}`) }, sample.keys.empty, 404);
    await sample.expectError({ path: at(`/v1/ads/${uuid(1)}`) }, sample.keys.empty, 402);
    await sample.expectError(
      { path: at(`/v1/ads/${uuid(1)}`) },
      sample.served.key({ credits: 0, hourlyLimit: 0 }),
      402,
    );
  });
});

describe('methods', () => {
  test.each(['PUT', 'DELETE', 'PATCH', 'OPTIONS', 'POST'])('%s where only GET is served is a 405', async (method) => {
    await sample.expectError({ method, path: at('/v1/account') }, sample.keys.good, 405, 'method_not_allowed');
    const { headers } = await sample.served.ask(method, '/v1/account');
    expect(headers.get('allow')).toBe('GET');
  });

  test('HEAD is refused and never paid', async () => {
    const key = sample.served.key();
    expect((await sample.served.ask('HEAD', `/v1/ads/${uuid(1)}`, { key })).status).toBe(405);
    expect((await sample.served.ask('GET', '/v1/credits', { key })).body.credits).toBe(plan.credits);
  });
});

describe('any request at all', () => {
  test('gets an answer in the documented form', async () => {
    const piece = fc.oneof(
      fc.constantFrom(
        ...['v1', 'ads', 'pages', 'collections', 'items', 'search', 'media', 'logo.webp', uuid(1), '-', 'keys', '..'],
      ),
      fc.webSegment(),
      fc.constantFrom('%E0%A4%A', '%00', '%2F', '%ff', '%F0%9F%94%A5'),
    );
    const path = fc.array(piece, { maxLength: 5 }).map((pieces) => `/${pieces.join('/')}`);
    const method = fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'OPTIONS');
    const body = fc.oneof(fc.json(), fc.string());
    await fc.assert(
      fc.asyncProperty(method, path, fc.webQueryParameters(), body, async (method, path, query, body) => {
        const { status, body: answer } = await sample.served.ask(method, `${path}?${query}`, {
          key: sample.keys.rich,
          ...(method !== 'GET' && { body }),
        });
        expect(status).toBeLessThan(500);
        if (status !== 200) ErrorBody.parse(answer);
      }),
      { numRuns: 400 },
    );
  });

  test('a page id may hold any character', async () => {
    const pageId = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 40 })
      .filter((id) => id !== '.' && id !== '..');
    await fc.assert(
      fc.asyncProperty(pageId, async (pageId) => {
        await sample.served.load({ pageId, pageName: 'Any' });
        const { body } = await sample.served.ask('GET', `/v1/pages/${encodeURIComponent(pageId)}`, {
          key: sample.keys.rich,
        });
        expect(body.pageId).toBe(pageId);
      }),
    );
  });
});

test('no request caused an internal error; one reaches the log in full, and callers as a plain 500', async () => {
  expect(sample.served.errors).toEqual([]);
  const { served } = await serveSampleLibrary();
  const key = served.key();
  served.library.context.database.run('DROP TABLE collection_items');
  const { status, headers, body } = await served.ask('GET', '/v1/collections', { key });
  expect(status).toBe(500);
  expect(body.error).toEqual({
    code: 'internal_error',
    message: 'The library failed to answer; its log says why.',
    requestId: headers.get('x-service-request-id'),
  });
  expect(served.errors.map(String)).toEqual([expect.stringContaining('collection_items')]);
  await served.close();
});
