import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { json, paid, startUpstream, type Upstream } from '../support/faulty-upstream.ts';
import { type Result, startServer, type TestServer } from '../support/server.ts';
import { startService, type TestService } from '../support/service.ts';

/** Two processes, or one before and after it was started anew, in front of one service. */
let service: TestService;
let before: TestServer;
let after: TestServer;
beforeAll(async () => {
  service = await startService();
  const config = { baseUrl: service.baseUrl, apiKey: service.apiKey };
  before = await startServer({ config });
  after = await startServer({ config });
});
afterAll(async () => {
  await before.close();
  await after.close();
  await service.close();
});

const idsOf = (result: Result) => result.data.items.map(({ id }) => id);

/** Refused in words that say what to do, with nothing sent. */
async function expectRefused(server: Pick<TestServer, 'call'>, tool: string, args: Record<string, unknown>) {
  service.requests.length = 0;
  const { error, text } = await server.call(tool, args);
  expect(error).toEqual({ kind: 'invalid_request', retryable: false });
  expect(text).toContain('Nothing was sent, nothing was charged.');
  expect(text).toContain('together with the same filters');
  expect(service.requests).toEqual([]);
}

const nowhere = '00000000-0000-4000-8000-000000000000';
const germany = { countries: ['DE'] };
/** One that goes on inside a page that was cut, and one that goes on with the next page. */
const kinds = [
  ['cut', { limit: 40, detail: 'full' }],
  ['next', { limit: 4 }],
] as const;

describe.each(kinds)('a cursor of a %s page', (_, args) => {
  test('goes on in another process where the filters come with it, in pages of the same size', async () => {
    const first = await before.call('search_ads', { ...args, filters: germany });
    const { cursor } = first.data;
    const here = await before.call('search_ads', { detail: 'full', filters: germany, cursor });
    const there = await after.call('search_ads', { detail: 'full', filters: germany, cursor });
    expect(idsOf(there)).toEqual(idsOf(here));
    expect(idsOf(there)).not.toEqual(expect.arrayContaining(idsOf(first)));
    expect(there.data.cursor).toBe(here.data.cursor);
  });

  test('asks for the filters where they are left out and not remembered, and takes them', async () => {
    const filters = { countries: ['FR'], ...(args.limit === 4 && { ctaType: ['SHOP_NOW'] }) };
    const { cursor } = (await before.call('search_ads', { ...args, filters })).data;
    await expectRefused(after, 'search_ads', { cursor });
    expect((await after.call('search_ads', { cursor, filters })).isError).toBe(false);
    expect((await before.call('search_ads', { cursor })).isError).toBe(false);
  });

  test('needs none where the search had none', async () => {
    const first = await before.call('search_ads', args);
    const next = await after.call('search_ads', { cursor: first.data.cursor });
    expect(next.isError).toBe(false);
    expect(idsOf(next)).not.toEqual(expect.arrayContaining(idsOf(first)));
  });

  test('of another key, with other filters, changed, or for another tool is refused', async () => {
    const { cursor } = (await before.call('search_ads', { ...args, filters: germany })).data;
    const neighbour = await before.as(service.createKey());
    await expectRefused(neighbour, 'search_ads', { cursor, filters: germany });
    await expectRefused(neighbour, 'search_ads', { cursor });
    await expectRefused(before, 'search_ads', { cursor, filters: { countries: ['US'] } });
    await expectRefused(before, 'search_ads', { cursor: cursor?.replace('@', '@1'), filters: germany });
    await expectRefused(before, 'search_pages', { cursor, filters: germany });
    await expectRefused(before, 'list_collection_items', { cursor, collectionId: nowhere, itemType: 'ads' });
  });
});

test('only the answer that is kept decides whether going on costs again', async () => {
  const first = await before.call('search_ads', { limit: 50, detail: 'full', filters: { countries: ['ES'] } });
  const args = { detail: 'full', filters: { countries: ['ES'] }, cursor: first.data.cursor };
  expect((await before.call('search_ads', args)).data.receipt).toMatchObject({ charged: 0, cached: true });
  expect((await after.call('search_ads', args)).data.receipt).toMatchObject({ charged: 5, cached: false });
  expect((await after.call('search_ads', args)).data.receipt).toMatchObject({ charged: 0, cached: true });
});

test('a page that is not begun may be asked for in another size, one that is cut goes on in its own', async () => {
  const { cursor } = (await before.call('search_ads', { limit: 4 })).data;
  expect((await before.call('search_ads', { cursor })).data.items).toHaveLength(4);
  expect((await before.call('search_ads', { cursor, limit: 7 })).data.items).toHaveLength(7);
  const cut = (await before.call('search_ads', { limit: 40, detail: 'full' })).data;
  const { data } = await before.call('search_ads', { cursor: cut.cursor, limit: 7 });
  expect(data.receipt).toMatchObject({ charged: 0 });
  expect(data.shown).toMatchObject({ from: cut.items.length + 1, of: 40 });
});

describe("a service's cursor too long for a text", () => {
  let upstream: Upstream;
  beforeAll(async () => {
    upstream = await startUpstream();
  });
  afterAll(() => upstream.close());

  test('goes on where it is remembered, and elsewhere says what to do', async () => {
    const config = { baseUrl: upstream.baseUrl, apiKey: 'svc_live_long_cursors' };
    const [one, other] = [await startServer({ config }), await startServer({ config })];
    const long = 'x'.repeat(5000);
    upstream.does(json({ items: [{ id: 'a' }], cursor: long, hasMore: true }, { headers: paid(1) }));
    const { cursor } = (await one.call('search_ads')).data;
    expect(cursor?.length).toBeLessThan(20);
    const { error, text } = await other.call('search_ads', { cursor });
    expect(error?.kind).toBe('invalid_request');
    expect(text).toContain('Repeat the call that gave it');
    expect(upstream.requests).toHaveLength(1);
    await one.call('search_ads', { cursor });
    expect(JSON.parse(upstream.requests.at(-1)?.body ?? '')).toEqual({ cursor: long });
    await one.close();
    await other.close();
  });
});
