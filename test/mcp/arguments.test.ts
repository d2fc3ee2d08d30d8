import fc from 'fast-check';
import { describe, expect } from 'vitest';
import * as z from 'zod';
import type { SearchFilter } from '../../src/api/search-filters.ts';
import { validateArguments } from '../../src/mcp/arguments.ts';
import { deriveUuid } from '../support/derive-uuid.ts';
import { singleCallTools } from '../support/every-tool.ts';
import { ad, respondAsDocumented } from '../support/faulty-upstream.ts';
import { upstreamTest } from '../support/fixtures.ts';

const test = upstreamTest({ config: { cacheSeconds: 0 } })
  /** Expects an error that names the argument, and no request to the API. */
  .extend(
    'expectRefused',
    ({ upstream, server }) =>
      async (tool: string, args: Record<string, unknown>, expectedText: string | RegExp) => {
        const { error, text } = await server.call(tool, args);
        expect(error).toEqual({ kind: 'invalid_request', retryable: false });
        expect(text).toMatch(expectedText);
        expect(text).toContain('Nothing was sent, nothing was charged.');
        expect(upstream.requests).toEqual([]);
      },
  );
test.beforeEach(({ upstream }) => upstream.respondWith(respondAsDocumented));

const lists = `/v1/collections/${deriveUuid('c')}/items?itemType=ads`;
const listing = { collectionId: deriveUuid('c'), itemType: 'ads' };
const filters = { countries: ['DE'], nested: { deep: [1, null, 'x'] }, 'odd key': '', zero: 0 };
const upper = 'ABCDEF01-2345-0789-FFFF-ABCDEF012345';
const lower = upper.toLowerCase();
const ofPage = { itemType: 'pages', itemId: upper };
const largeId = '123456789012345678901';
const paged = { limit: 3, cursor: 'abc' };
const nullArgs = { limit: null, cursor: null, filters: null, detail: null, fresh: null };

/** The parameter `sent` is the body of the expected API request, or its path if it has no body. */
test.for<[what: string, tool: string, args: Record<string, unknown>, sent: unknown]>([
  ['a number as its JSON text', 'search_ads', { limit: '7' }, { limit: 7 }],
  ['an object as its JSON text', 'search_ads', { filters: '{"countries":["DE"]}' }, { countries: ['DE'] }],
  ['values with spaces around them', 'search_ads', { limit: ' 7 ', fresh: 'true' }, { limit: 7 }],
  ['a number in the query string', 'list_collection_items', { ...listing, limit: '7' }, `${lists}&limit=7`],
  ['empty optional texts', 'search_ads', { limit: '', cursor: '', filters: '', detail: '', fresh: '' }, {}],
  ['null for what is optional', 'search_ads', nullArgs, {}],
  ['null as its JSON text', 'search_ads', { limit: 'null', filters: 'null' }, {}],
  ['null beside an id', 'get_page', { pageId: '4711', detail: null }, '/v1/pages/4711'],
  ['a text that looks like a number', 'get_page', { pageId: largeId }, `/v1/pages/${largeId}`],
  ['a text that looks like a truth value', 'get_page', { pageId: 'true' }, '/v1/pages/true'],
  ['a text that looks like an object', 'get_page', { pageId: '{"a":1}' }, '/v1/pages/%7B%22a%22%3A1%7D'],
  ['a UUID, in lower case', 'get_ad', { adId: upper }, `/v1/ads/${lower}`],
  [
    'the UUID of a collection',
    'list_collection_items',
    { ...listing, collectionId: upper },
    `${lists.replace(deriveUuid('c'), lower)}&limit=50`,
  ],
  ['the UUID of an item', 'add_collection_item', { ...listing, itemId: upper }, { itemType: 'ads', itemId: lower }],
  ['the id of a page as it is', 'add_collection_item', { ...listing, ...ofPage }, ofPage],
  ['filters as they are', 'search_pages', { filters, ...paged }, { ...filters, ...paged }],
])(
  'the API receives the expected request if a tool argument contains %s (tool %s, arguments %j)',
  async ([_, tool, args, expected], { upstream, server }) => {
    expect((await server.call(tool, args)).isError).toBe(false);
    expect(upstream.requests.map(({ path, body }) => (body === '' ? path : JSON.parse(body)))).toEqual([expected]);
  },
);

const manyArgs = Object.fromEntries(Array.from({ length: 10_000 }, (_, nr) => [`name ${nr}`, 1]));
type Refused = [tool: string, args: Record<string, unknown>, words: string | RegExp];
const long = ['x', 'x ', '\u202e', '®', '"', '\n'].map((piece) => ({ [piece.repeat(1_000_000)]: 1 }));
/** JSON values that would change on their way to the API, with the reason that the error must contain. */
const unsendable = [
  ['{"from":1e400}', 'holds a number too large to be sent unchanged'],
  ['{"any":[1,[-1e999]]}', 'holds a number too large to be sent unchanged'],
  [
    '{"pageId":12345678901234567}',
    'holds a number too large to be sent unchanged, at most 9007199254740991 is allowed. Pass a longer id as a text in quotes.',
  ],
  ['{"any":[{"pageId":-9007199254740993}]}', 'holds a number too large to be sent unchanged'],
  ['{"__proto__":{"a":1},"countries":["DE"]}', 'the key __proto__ cannot be sent'],
  ['{"not":{"__proto__":1}}', 'the key __proto__ cannot be sent'],
] as const;

describe('Invalid tool arguments', () => {
  test.for<Refused>([
    ['search_ads', { filter: {} }, 'Unknown argument: filter. The tool takes: filters, limit, cursor, detail, fresh'],
    ['whoami', { verbose: true }, 'Unknown argument: verbose. This tool takes no arguments'],
    ...[...long, manyArgs].map((args): Refused => ['whoami', args, /^.{0,1500}$/s]),
    ...unsendable.flatMap(([json, expectedText]) =>
      [json, JSON.parse(json)].map((filters): Refused => ['search_ads', { filters }, `filters: ${expectedText}`]),
    ),
    ['search_ads', { limit: 'many' }, 'limit: Invalid input: expected number, received string.'],
    ['search_ads', { limit: 0 }, 'limit: Too small: expected number to be >=1.'],
    ['search_ads', { limit: 2.5 }, 'limit: Invalid input: expected int, received number.'],
    ...['search_ads', 'search_pages'].flatMap((tool) =>
      [{ limit: 1001 }, { filters: { limit: 1001 } }, { filters: { limit: '1001' } }].map(
        (args): Refused => [tool, args, 'limit: this server reads at most 1000 items on one page.'],
      ),
    ),
    ['search_ads', { limit: [5] }, 'limit: Invalid input: expected number, received array.'],
    ['search_ads', { filters: ['DE'] }, 'filters: Invalid input: expected object, received array.'],
    ['search_ads', { filters: 'countries=DE' }, 'filters'],
    ['search_ads', { detail: 'everything' }, 'detail: Invalid option: expected one of "brief"|"full".'],
    ['get_ad', { adId: 5 }, 'adId'],
    ['get_ad', {}, 'adId is required'],
    ['view_ads', { adIds: [] }, 'adIds: Too small: expected array to have >=1 items.'],
    [
      'label_ads',
      { labels: [{ adId: 'a', label: 'b', vlue: 'c' }] },
      'Unknown argument: labels.0.vlue. The tool takes',
    ],
    ['get_page', { pageId: '..' }, 'pageId is not an id'],
    [
      'list_collection_items',
      { collectionId: deriveUuid('c') },
      'itemType: Invalid option: expected one of "ads"|"pages"',
    ],
    ['list_collection_items', { ...listing, itemType: 'adverts' }, /itemType.*ads.*pages/],
    ['list_collection_items', { ...listing, limit: 101 }, 'limit'],
    ['add_collection_item', { ...listing, itemId: '' }, 'itemId'],
    ['add_collection_item', { ...listing, itemType: 'pages', itemId: '7'.repeat(301) }, /itemId.*300/],
    [
      'list_collection_items',
      { collectionId: 7, itemType: 'x', limit: 0, what: 1 },
      /(?=.*collectionId)(?=.*itemType)(?=.*limit).*what/s,
    ],
  ])(
    'the tool %s rejects invalid arguments and names them in its error (case %#)',
    ([tool, args, expectedText], { expectRefused }) => expectRefused(tool, args, expectedText),
  );

  test('an id that is not a UUID is rejected before any request is sent to the API', async ({ expectRefused }) => {
    const expectRefusal = (name: string) =>
      new RegExp(`^${name}: must be a UUID .* from (?:a search|list_collections)\\b`, 'm');
    const saving = { collectionId: ad.id, itemType: 'ads', itemId: ad.id };
    const near = [ad.id.slice(1), `${ad.id}0`, ad.id.replaceAll('-', ''), ` ${ad.id}`, `{${ad.id}}`];
    for (const id of ['', 'x', '..', '../..', '4711', ...near]) {
      await expectRefused('get_ad', { adId: id }, expectRefusal('adId'));
      await expectRefused(
        'list_collection_items',
        { collectionId: id, itemType: 'ads' },
        expectRefusal('collectionId'),
      );
      await expectRefused('add_collection_item', { ...saving, collectionId: id }, expectRefusal('collectionId'));
      if (id !== '') await expectRefused('add_collection_item', { ...saving, itemId: id }, expectRefusal('itemId'));
    }
  });
});

const describedFilters: SearchFilter[] = [
  { key: 'active', type: 'boolean' },
  { key: 'daysRunningFrom', type: 'integer' },
  { key: 'adSpendFrom', type: 'number' },
  { key: 'countries', type: 'strings' },
  { key: 'query', type: 'query' },
  { key: 'domain', type: 'string' },
  { key: 'startedFrom', type: 'date' },
  { key: 'not', type: 'filters' },
  { key: 'kind' },
];
const describedTest = upstreamTest({
  config: { cacheSeconds: 0, searchFilters: { ads: describedFilters, pages: [{ key: 'adsFrom', type: 'integer' }] } },
});

describe('Text values inside search filters', () => {
  describedTest.beforeEach(({ upstream }) => upstream.respondWith(respondAsDocumented));

  describedTest.for<[what: string, given: object, sent: object]>([
    ['a truth value', { active: 'true' }, { active: true }],
    ['an integer', { daysRunningFrom: '30' }, { daysRunningFrom: 30 }],
    ['an integer with spaces', { daysRunningFrom: ' -5 ' }, { daysRunningFrom: -5 }],
    ['a number', { adSpendFrom: '2.5' }, { adSpendFrom: 2.5 }],
    ['a list', { countries: '["DE","AT"]' }, { countries: ['DE', 'AT'] }],
    ['a value inside an object of filters', { not: { active: 'false' } }, { not: { active: false } }],
  ])(
    'a filter value that is sent as text is converted to the type of its filter key (%s)',
    async ([_, givenValue, sentValue], { upstream, server }) => {
      for (const filters of [givenValue, JSON.stringify(givenValue)]) {
        upstream.requests.length = 0;
        expect((await server.call('search_ads', { filters })).isError).toBe(false);
        expect(JSON.parse(upstream.requests[0]?.body ?? '')).toEqual(sentValue);
      }
    },
  );

  describedTest(
    'filter values that are sent as text are also converted inside the argument split',
    async ({ upstream, server }) => {
      const split = [{ countries: '["DE"]' }, { daysRunningFrom: '7' }];
      await server.call('count_ads', { filters: { active: 'true' }, split: JSON.stringify(split) });
      const sentBodies = upstream.requests
        .filter(({ path }) => path.includes('search'))
        .map(({ body }) => JSON.parse(body));
      for (const part of [{ countries: ['DE'] }, { daysRunningFrom: 7 }])
        expect(sentBodies).toContainEqual({ active: true, ...part, limit: 1 });
    },
  );

  describedTest(
    'search_pages converts filter values that are sent as text by the filter types for pages, not for ads',
    async ({ upstream, server }) => {
      await server.call('search_pages', { filters: { adsFrom: '3', active: 'true' } });
      expect(JSON.parse(upstream.requests[0]?.body ?? '')).toEqual({ adsFrom: 3, active: 'true' });
    },
  );

  const texts = fc.oneof(
    fc.string(),
    fc.jsonValue().map((value) => JSON.stringify(value)),
    fc.constantFrom('30', '030', '1e3', '1.50', '2.5', '12345678901234567890', '0.1234567890123456789', '-0', 'NaN'),
    fc.constantFrom('true', 'TRUE', 'false', '1', 'null', '""', 'DE', 'DE,AT', '["DE",1]', '[]', '{"a":1}', '+5'),
  );

  describedTest(
    'no information is lost when the server converts a filter value from text to another type',
    async ({ upstream, server }) => {
      const types: Record<string, string> = {
        boolean: 'boolean',
        integer: 'number',
        number: 'number',
        strings: 'object',
      };
      await fc.assert(
        fc.asyncProperty(fc.constantFrom(...describedFilters), texts, async ({ key, type }, text) => {
          upstream.requests.length = 0;
          await server.call('search_ads', { filters: { [key]: text } });
          const { [key]: sentValue } = JSON.parse(upstream.requests[0]?.body ?? '{}');
          if (sentValue === text) return;
          expect([key, typeof sentValue]).toEqual([key, types[type ?? '']]);
          // Serializing the sent value gives the original text, except for white space.
          expect(JSON.stringify(sentValue)).toBe(
            Array.isArray(sentValue) ? JSON.stringify(JSON.parse(text)) : text.trim(),
          );
        }),
        { numRuns: 300 },
      );
    },
  );

  test('filter values that are sent as text stay unchanged if the filter keys are unknown', async ({
    upstream,
    server,
  }) => {
    const filters = { active: 'true', daysRunningFrom: '30', countries: '["DE"]' };
    await server.call('search_ads', { filters });
    expect(upstream.requests.map(({ body }) => body && JSON.parse(body))).toContainEqual(filters);
  });
});

test('a tool call without arguments is treated like a call with an empty object', async ({ server }) => {
  const result = await server.client.callTool({ name: 'whoami' });
  expect(result.isError).toBeUndefined();
  for (const missingArgs of [undefined, null]) expect(validateArguments(z.strictObject({}), missingArgs)).toEqual({});
});

test('calling an unknown tool returns an error that lists the available tools', async ({ server }) => {
  const { text, error } = await server.call('search_adverts');
  expect(error).toMatchObject({ kind: 'invalid_request' });
  expect(text).toContain('There is no tool "search_adverts". Tools: search_ads, get_ad');
  expect((await server.call('x'.repeat(1_000_000))).text.length).toBeLessThan(600);
  expect((await server.call('a\u202e"b\nc')).text).toContain(`There is no tool "a'b c". Tools`);
});

test('a tool call with random JSON values as arguments returns a valid result or a clear error', async ({ server }) => {
  const knownNames =
    'filters limit cursor detail fresh seen adId pageId collectionId itemType itemId __proto__ constructor';
  const names = fc.constantFrom('', ...knownNames.split(' '));
  const values = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom('ads', 'pages', 'full', 'brief', '@1/-.aaaaaaaa', '[', '{"limit":1}', 1e21, -0),
  );
  const args = fc.oneof(fc.dictionary(names, values), fc.dictionary(fc.string(), fc.jsonValue()));
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...singleCallTools), args, async ({ tool }, givenArgs) => {
      const result = await server.call(tool, givenArgs);
      expect(result.text).not.toBe('');
      if (!result.isError) return;
      expect(result.raw.structuredContent).toBeUndefined();
      expect(['invalid_request', 'unexpected_response', 'not_found']).toContain(result.error?.kind);
      expect(result.text.length).toBeLessThan(4000);
    }),
    { numRuns: 200 },
  );
  expect(server.logLines.join('')).not.toContain('a tool failed');
});
