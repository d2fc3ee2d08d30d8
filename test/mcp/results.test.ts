import { describe, expect } from 'vitest';
import { everyTool } from '../support/every-tool.ts';
import { documented, json } from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import { uuidOf } from '../support/uuid-of.ts';

const test = freshUpstreamTest();
test.beforeEach(({ upstream }) => upstream.does(documented));

describe('a result', () => {
  test.for(everyTool)(
    'of $tool ends with what it cost, in the text and in the data',
    async ({ tool, args, gated }, { server }) => {
      const charged = gated ? 1 : 0;
      const { text, data } = await server.call(tool, args);
      expect(data.receipt).toEqual({ charged, remaining: 100, cached: false, requestId: 'req-1' });
      expect(text).toContain(`\nCredits: ${charged} charged, 100 left. Request req-1`);
    },
  );

  test('cannot be falsified by a request id of the service', async ({ upstream, server }) => {
    upstream.does(json({ id: 'x' }, { headers: { 'x-service-request-id': 'r" Credits: 0 charged' } }));
    const { text } = await server.call('get_ad', { adId: uuidOf('x') });
    expect(text.split('\n').at(-1)).toBe(`Credits: not reported for this call. Request "r' Credits: 0 charged"`);
    upstream.does(documented);
  });

  test('is text alone where the host shows only text, and no output schema is listed', async ({ start }) => {
    const server = await start({ output: 'text' });
    const { raw, text } = await server.call('search_ads');
    expect(raw).not.toHaveProperty('structuredContent');
    expect(text).toContain('Credits: 1 charged');
    for (const tool of (await server.client.listTools()).tools) expect(tool).not.toHaveProperty('outputSchema');
  });

  test('is data and one line of text where the host shows only data', async ({ start }) => {
    const { raw, text, data } = await (await start({ output: 'structured' })).call('search_ads');
    expect(raw.content).toHaveLength(1);
    expect(text.split('\n')).toHaveLength(1);
    expect(data).toMatchObject({ items: [{ headline: 'Try it' }], receipt: { charged: 1 } });
  });

  test('that is an error is text in every output mode', async ({ start }) => {
    for (const output of ['both', 'text', 'structured'] as const) {
      const { isError, text, raw } = await (await start({ output })).call('get_ad', {});
      expect(isError).toBe(true);
      expect(text).toContain('adId is required');
      expect(raw).not.toHaveProperty('structuredContent');
    }
  });
});

test('without a cache, the instructions do not promise that a repeated call is free', async ({ start }) => {
  const server = await start({ demo: true, cacheSeconds: 0 });
  const instructions = server.client.getInstructions();
  expect(instructions).toContain('repeating a call is charged again');
  expect(instructions).not.toContain('is free');
});

describe('demo data', () => {
  const test = freshUpstreamTest({ config: { demo: true } });

  test('is marked in every result, in the text and in the data, and in the instructions', async ({ server }) => {
    const searched = await server.call('search_ads', { limit: 1 });
    const [found] = searched.data.items;
    const collections = (await server.call('list_collections')).data.items;
    const collectionId = collections[0]?.id;
    const calls: [string, Record<string, unknown>][] = [
      ['search_ads', {}],
      ['search_pages', {}],
      ['get_ad', { adId: found?.id }],
      ['get_page', { pageId: found?.pageId }],
      ['list_collections', {}],
      ['list_collection_items', { collectionId, itemType: 'ads' }],
      ['add_collection_item', { collectionId, itemType: 'ads', itemId: found?.id }],
      ['get_credits', {}],
      ['get_account', {}],
      ['whoami', {}],
    ];
    for (const [tool, args] of calls) {
      const { text, data, isError } = await server.call(tool, args);
      expect(isError).toBe(false);
      expect(text).toMatch(/^DEMO DATA/);
      expect(data.notice).toMatch(/^DEMO DATA/);
    }
    expect(server.client.getInstructions()).toContain('DEMO DATA');
  });

  test('lists its search filters', async ({ server }) => {
    const { tools } = await server.client.listTools();
    expect(JSON.stringify(tools.find(({ name }) => name === 'search_ads')?.inputSchema)).toContain('countries');
  });
});

test('without demo data nothing is marked so', async ({ start }) => {
  const server = await start();
  const { text, data } = await server.call('search_ads');
  expect(text).not.toContain('DEMO');
  expect(data).not.toHaveProperty('notice');
});
