import { describe, expect } from 'vitest';
import { json, paid } from '../support/faulty-upstream.ts';
import { serviceTest } from '../support/fixtures.ts';
import { type Result, startServer, type TestServer } from '../support/server.ts';

/** Two processes, or one before and after it was started anew, in front of one service. */
const test = serviceTest()
  .extend('other', { scope: 'file' }, async ({ service: { baseUrl, apiKey } }, { onCleanup }) => {
    const other = await startServer({ config: { baseUrl, apiKey } });
    onCleanup(other.close);
    return other;
  })
  /** Refused in words that say what to do, with nothing sent. */
  .extend(
    'expectRefused',
    ({ service }) =>
      async (server: Pick<TestServer, 'call'>, tool: string, args: Record<string, unknown>) => {
        service.requests.length = 0;
        const { error, text } = await server.call(tool, args);
        expect(error).toEqual({ kind: 'invalid_request', retryable: false });
        expect(text).toContain('Nothing was sent, nothing was charged.');
        expect(text).toContain('with the same filters');
        expect(service.requests).toEqual([]);
      },
  );

const idsOf = (result: Result) => result.data.items.map(({ id }) => id);

const nowhere = '00000000-0000-4000-8000-000000000000';
const germany = { countries: ['DE'] };
/** One that goes on inside a page that was cut, and one that goes on with the next page. */
const kinds = [
  ['cut', { limit: 40, detail: 'full' }],
  ['next', { limit: 4 }],
] as const;

describe.each(kinds)('a cursor of a %s page', (_, args) => {
  test('works in another process where the filters come with it, in pages of the same size', async ({
    server,
    other,
  }) => {
    const first = await server.call('search_ads', { ...args, filters: germany });
    const { cursor } = first.data;
    const here = await server.call('search_ads', { detail: 'full', filters: germany, cursor });
    const there = await other.call('search_ads', { detail: 'full', filters: germany, cursor });
    expect(idsOf(there)).toEqual(idsOf(here));
    expect(idsOf(there)).not.toEqual(expect.arrayContaining(idsOf(first)));
    expect(there.data.cursor).toBe(here.data.cursor);
  });

  test('asks for the filters where they are missing and not remembered', async ({ server, other, expectRefused }) => {
    const filters = { countries: ['FR'], ...(args.limit === 4 && { ctaType: ['SHOP_NOW'] }) };
    const { cursor } = (await server.call('search_ads', { ...args, filters })).data;
    await expectRefused(other, 'search_ads', { cursor });
    expect((await other.call('search_ads', { cursor, filters })).isError).toBe(false);
    expect((await server.call('search_ads', { cursor })).isError).toBe(false);
  });

  test('needs no filters where the search had none', async ({ server, other }) => {
    const first = await server.call('search_ads', args);
    const next = await other.call('search_ads', { cursor: first.data.cursor });
    expect(next.isError).toBe(false);
    expect(idsOf(next)).not.toEqual(expect.arrayContaining(idsOf(first)));
  });

  test('of another key, with other filters, changed, or for another tool is refused', async ({
    service,
    server,
    expectRefused,
  }) => {
    const { cursor } = (await server.call('search_ads', { ...args, filters: germany })).data;
    const neighbour = await server.as(service.createKey());
    await expectRefused(neighbour, 'search_ads', { cursor, filters: germany });
    await expectRefused(neighbour, 'search_ads', { cursor });
    await expectRefused(server, 'search_ads', { cursor, filters: { countries: ['US'] } });
    await expectRefused(server, 'search_ads', { cursor: cursor?.replace('@', '@1'), filters: germany });
    await expectRefused(server, 'search_pages', { cursor, filters: germany });
    await expectRefused(server, 'list_collection_items', { cursor, collectionId: nowhere, itemType: 'ads' });
  });
});

test('only the cache decides whether the next page is charged', async ({ server, other }) => {
  const first = await server.call('search_ads', { limit: 50, detail: 'full', filters: { countries: ['ES'] } });
  const args = { detail: 'full', filters: { countries: ['ES'] }, cursor: first.data.cursor };
  expect((await server.call('search_ads', args)).data.receipt).toMatchObject({ charged: 0, cached: true });
  expect((await other.call('search_ads', args)).data.receipt).toMatchObject({ charged: 5, cached: false });
  expect((await other.call('search_ads', args)).data.receipt).toMatchObject({ charged: 0, cached: true });
});

test('the next page may have another size, the rest of a cut page keeps its own', async ({ server }) => {
  const { cursor } = (await server.call('search_ads', { limit: 4 })).data;
  expect((await server.call('search_ads', { cursor })).data.items).toHaveLength(4);
  expect((await server.call('search_ads', { cursor, limit: 7 })).data.items).toHaveLength(7);
  const cut = (await server.call('search_ads', { limit: 40, detail: 'full' })).data;
  const { data } = await server.call('search_ads', { cursor: cut.cursor, limit: 7 });
  expect(data.receipt).toMatchObject({ charged: 0 });
  expect(data.shown).toMatchObject({ from: cut.items.length + 1, of: 40 });
});

describe("a service's cursor too long for a text", () => {
  test('works where it is remembered, and elsewhere the error says what to do', async ({ upstream, other }) => {
    const config = { baseUrl: upstream.baseUrl, apiKey: 'svc_live_long_cursors' };
    const [one, another] = [await startServer({ config }), await startServer({ config })];
    const long = 'x'.repeat(5000);
    upstream.does(json({ items: [{ id: 'a' }], cursor: long, hasMore: true }, { headers: paid(1) }));
    const { cursor } = (await one.call('search_ads')).data;
    expect(cursor?.length).toBeLessThan(20);
    const { error, text } = await another.call('search_ads', { cursor });
    expect(error?.kind).toBe('invalid_request');
    expect(text).toContain('Repeat the call that returned it');
    expect(upstream.requests).toHaveLength(1);
    await one.call('search_ads', { cursor });
    expect(JSON.parse(upstream.requests.at(-1)?.body ?? '')).toEqual({ cursor: long });
    await one.close();
    await other.close();
  });
});
