import fc from 'fast-check';
import { describe, expect } from 'vitest';
import * as z from 'zod';
import { readArguments } from '../../src/mcp/call-tool.ts';
import { everyTool } from '../support/every-tool.ts';
import { ad, documented, type Upstream } from '../support/faulty-upstream.ts';
import { upstreamTest } from '../support/fixtures.ts';
import { uuidOf } from '../support/uuid-of.ts';

const test = upstreamTest({ config: { cacheSeconds: 0 } })
  /** Refused before anything went out, in words that name the argument. */
  .extend(
    'expectRefused',
    ({ upstream, server }) =>
      async (tool: string, args: Record<string, unknown>, ...words: (string | RegExp)[]) => {
        const { error, text } = await server.call(tool, args);
        expect(error).toEqual({ kind: 'invalid_request', retryable: false });
        for (const word of words) expect(text).toMatch(word);
        expect(text).toContain('Nothing was sent, nothing was charged.');
        expect(upstream.requests).toEqual([]);
      },
  );
test.beforeEach(({ upstream }) => upstream.does(documented));

const sent = (upstream: Upstream) => upstream.requests.map(({ path, body }) => (body === '' ? path : JSON.parse(body)));

describe('an argument', () => {
  test('that is unknown is refused by name, with the known ones', async ({ expectRefused }) => {
    await expectRefused(
      'search_ads',
      { filter: {} },
      'Unknown argument: filter. It takes: filters, limit, cursor, detail, fresh',
    );
    await expectRefused('whoami', { verbose: true }, 'Unknown argument: verbose. This tool takes no arguments');
  });

  test('does not fill the answer by its name, nor do ten thousand of them', async ({ expectRefused }) => {
    for (const piece of ['x', 'x ', '\u202e', '®', '"', '\n'])
      await expectRefused('whoami', { [piece.repeat(1_000_000)]: 1 }, /^.{0,1500}$/s);
    const many = Array.from({ length: 10_000 }, (_, nr) => [`name ${nr}`, 1]);
    await expectRefused('whoami', Object.fromEntries(many), /^.{0,1500}$/s);
  });

  test.for([
    ['search_ads', { limit: '7' }, { limit: 7 }],
    ['search_ads', { filters: '{"countries":["DE"]}' }, { countries: ['DE'] }],
    ['search_ads', { limit: ' 7 ', fresh: 'true' }, { limit: 7 }],
    [
      'list_collection_items',
      { collectionId: uuidOf('c'), itemType: 'ads', limit: '7' },
      `/v1/collections/${uuidOf('c')}/items?itemType=ads&limit=7`,
    ],
  ] as const)(
    'of %s that came as its JSON text is understood',
    async ([tool, args, expected], { upstream, server }) => {
      expect((await server.call(tool, args)).isError).toBe(false);
      expect(sent(upstream)).toEqual([expected]);
    },
  );

  test.for([
    ['search_ads', { limit: '', cursor: '', filters: '', detail: '', fresh: '' }, {}],
    ['search_ads', { limit: null, cursor: null, filters: null, detail: null, fresh: null }, {}],
    ['search_ads', { limit: 'null', filters: 'null' }, {}],
    ['get_page', { pageId: '4711', detail: null }, '/v1/pages/4711'],
  ] as const)(
    'of %s that is empty and optional counts as absent',
    async ([tool, args, expected], { upstream, server }) => {
      expect((await server.call(tool, args)).isError).toBe(false);
      expect(sent(upstream)).toEqual([expected]);
    },
  );

  test.for([
    ['{"from":1e400}', 'filters: holds a number too large to be sent'],
    ['{"any":[1,[-1e999]]}', 'filters: holds a number too large to be sent'],
    ['{"__proto__":{"a":1},"countries":["DE"]}', 'filters: the key __proto__ cannot be sent'],
    ['{"not":{"__proto__":1}}', 'filters: the key __proto__ cannot be sent'],
  ] as const)(
    'of filters %s is refused, because it would go out as something else',
    async ([json, words], { expectRefused }) => {
      await expectRefused('search_ads', { filters: json }, words);
      await expectRefused('search_ads', { filters: JSON.parse(json) }, words);
    },
  );

  test('that is a string stays a string, whatever it looks like', async ({ upstream, server }) => {
    await server.call('get_page', { pageId: '123456789012345678901' });
    await server.call('get_page', { pageId: 'true' });
    await server.call('get_page', { pageId: '{"a":1}' });
    expect(sent(upstream)).toEqual([
      '/v1/pages/123456789012345678901',
      '/v1/pages/true',
      '/v1/pages/%7B%22a%22%3A1%7D',
    ]);
  });

  test.for([
    ['search_ads', { limit: 'many' }, 'limit'],
    ['search_ads', { limit: 0 }, 'limit'],
    ['search_ads', { limit: 2.5 }, 'limit'],
    ['search_ads', { limit: [5] }, 'limit'],
    ['search_ads', { filters: ['DE'] }, 'filters'],
    ['search_ads', { filters: '["DE"]' }, 'filters'],
    ['search_ads', { filters: 'countries=DE' }, 'filters'],
    ['search_ads', { detail: 'everything' }, /detail.*brief.*full/],
    ['search_ads', { cursor: 5 }, 'cursor'],
    ['get_ad', { adId: 5 }, 'adId'],
    ['get_ad', {}, 'adId is required'],
    ['get_page', { pageId: '..' }, 'pageId is not an id'],
    ['list_collection_items', { collectionId: uuidOf('c') }, 'itemType'],
    ['list_collection_items', { collectionId: uuidOf('c'), itemType: 'adverts' }, /itemType.*ads.*pages/],
    ['list_collection_items', { collectionId: uuidOf('c'), itemType: 'ads', limit: 101 }, 'limit'],
    ['add_collection_item', { collectionId: uuidOf('c'), itemType: 'ads', itemId: '' }, 'itemId'],
    ['add_collection_item', { collectionId: uuidOf('c'), itemType: 'pages', itemId: '7'.repeat(301) }, /itemId.*300/],
  ] as const)('of %s that is wrong is refused: %j', ([tool, args, word], { expectRefused }) =>
    expectRefused(tool, args, word),
  );

  test('that should be a UUID and is none is refused', async ({ expectRefused }) => {
    const wrong = (name: string) =>
      new RegExp(`^${name}: must be a UUID .* from (?:a search|list_collections)\\b`, 'm');
    const saving = { collectionId: ad.id, itemType: 'ads', itemId: ad.id };
    const near = [ad.id.slice(1), `${ad.id}0`, ad.id.replaceAll('-', ''), ` ${ad.id}`, `{${ad.id}}`];
    for (const id of ['', 'x', '..', '../..', '4711', ...near]) {
      await expectRefused('get_ad', { adId: id }, wrong('adId'));
      await expectRefused('list_collection_items', { collectionId: id, itemType: 'ads' }, wrong('collectionId'));
      await expectRefused('add_collection_item', { ...saving, collectionId: id }, wrong('collectionId'));
      if (id !== '') await expectRefused('add_collection_item', { ...saving, itemId: id }, wrong('itemId'));
    }
  });

  test('that is a UUID of any version is sent in lower case, one of a page as it is', async ({ upstream, server }) => {
    const id = 'ABCDEF01-2345-0789-FFFF-ABCDEF012345';
    await server.call('get_ad', { adId: id });
    await server.call('list_collection_items', { collectionId: id, itemType: 'pages' });
    await server.call('add_collection_item', { collectionId: id, itemType: 'ads', itemId: id });
    await server.call('add_collection_item', { collectionId: id, itemType: 'pages', itemId: id });
    const lower = id.toLowerCase();
    expect(upstream.requests.map(({ path }) => path)).toEqual([
      `/v1/ads/${lower}`,
      `/v1/collections/${lower}/items?itemType=pages`,
      `/v1/collections/${lower}/items`,
      `/v1/collections/${lower}/items`,
    ]);
    expect(sent(upstream).slice(2)).toEqual([
      { itemType: 'ads', itemId: lower },
      { itemType: 'pages', itemId: id },
    ]);
  });

  test('among several wrong ones is named with the others', ({ expectRefused }) =>
    expectRefused(
      'list_collection_items',
      { collectionId: 7, itemType: 'x', limit: 0, what: 1 },
      /collectionId/,
      /itemType/,
      /limit/,
      /what/,
    ));
});

test('filters are sent as they are, and limit and cursor beside them', async ({ upstream, server }) => {
  const filters = { countries: ['DE'], nested: { deep: [1, null, 'x'] }, 'odd key': '', zero: 0 };
  await server.call('search_pages', { filters, limit: 3, cursor: 'abc' });
  expect(sent(upstream)).toEqual([{ ...filters, limit: 3, cursor: 'abc' }]);
});

test('missing arguments count as an empty object', async ({ server }) => {
  const result = await server.client.callTool({ name: 'whoami' });
  expect(result.isError).toBeUndefined();
  for (const none of [undefined, null]) expect(readArguments(z.strictObject({}), none)).toEqual({});
});

test('an unknown tool is an error that names the known ones', async ({ server }) => {
  const { text, error } = await server.call('search_adverts');
  expect(error).toMatchObject({ kind: 'invalid_request' });
  expect(text).toContain('There is no tool "search_adverts". Tools: search_ads, get_ad');
  expect((await server.call('x'.repeat(1_000_000))).text.length).toBeLessThan(600);
  expect((await server.call('a\u202e"b\nc')).text).toContain(`There is no tool "a'b c". Tools`);
});

test('any JSON as the arguments of any tool gives a result of the right form, and never an internal error', async ({
  server,
}) => {
  const known = 'filters limit cursor detail fresh seen adId pageId collectionId itemType itemId __proto__ constructor';
  const names = fc.constantFrom('', ...known.split(' '));
  const values = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom('ads', 'pages', 'full', 'brief', '@1/-.aaaaaaaa', '[', '{"limit":1}', 1e21, -0),
  );
  const args = fc.oneof(fc.dictionary(names, values), fc.dictionary(fc.string(), fc.jsonValue()));
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...everyTool), args, async ({ tool }, given) => {
      const result = await server.call(tool, given);
      expect(result.text).not.toBe('');
      if (!result.isError) return;
      expect(result.raw.structuredContent).toBeUndefined();
      expect(['invalid_request', 'unexpected_response', 'not_found']).toContain(result.error?.kind);
      expect(result.text.length).toBeLessThan(4000);
    }),
    { numRuns: 200 },
  );
  expect(server.logged.join('')).not.toContain('a tool failed');
});
