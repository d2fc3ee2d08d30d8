import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { json } from '../support/faulty-upstream.ts';
import { serviceTest } from '../support/fixtures.ts';
import { type ResultData, startServer } from '../support/server.ts';
import { uuidOf } from '../support/uuid-of.ts';

const test = serviceTest()
  /** Follows cursors to the end of the service's first page, or of everything. */
  .extend(
    'follow',
    ({ server }) =>
      async (
        tool: string,
        args: Record<string, unknown>,
        rest: Record<string, unknown> = {},
      ): Promise<ResultData[]> => {
        const pages = [(await server.call(tool, args)).data];
        for (let page = pages[0]; page?.cursor && page.shown && page.shown.to < page.shown.of; page = pages.at(-1)) {
          pages.push((await server.call(tool, { ...rest, cursor: page.cursor })).data);
        }
        return pages;
      },
  );

const chargeOf = (pages: ResultData[]) => pages.reduce((sum, { receipt }) => sum + receipt.charged, 0);
const idsOf = (pages: ResultData[], id: 'id' | 'pageId' = 'id') =>
  pages.flatMap(({ items }) => items.map((item) => item[id]));

describe('a listing that is cut to fit', () => {
  test('of 100 ads in full is complete over its cursors, each ad once, with one charge', async ({ follow }) => {
    const pages = await follow('search_ads', { limit: 100, detail: 'full' }, { detail: 'full' });
    expect(pages.length).toBeGreaterThan(3);
    expect(new Set(idsOf(pages)).size).toBe(100);
    expect(idsOf(pages)).toHaveLength(100);
    expect(chargeOf(pages)).toBe(10);
    expect(pages.slice(1).every(({ receipt }) => receipt.charged === 0)).toBe(true);
    expect(pages[0]?.shown).toEqual({ from: 1, to: pages[0]?.items.length, of: 100 });
  });

  test('goes on to the next page of the service where the first ends', async ({ server, follow }) => {
    const pages = await follow(
      'search_ads',
      { limit: 30, detail: 'full', filters: { countries: ['DE'] } },
      { detail: 'full' },
    );
    const next = (await server.call('search_ads', { cursor: pages.at(-1)?.cursor, limit: 5 })).data;
    expect(next.items).toHaveLength(5);
    expect(next.receipt.charged).toBe(1);
    expect(idsOf(pages)).not.toEqual(expect.arrayContaining(idsOf([next])));
  });

  test('of pages or of a collection goes on as well', async ({ server, follow }) => {
    const pages = await follow('search_pages', { limit: 30, detail: 'full' }, { detail: 'full' });
    expect(new Set(idsOf(pages, 'pageId')).size).toBe(30);
    expect(chargeOf(pages)).toBe(3);

    const { data } = await server.call('list_collections');
    const biggest = data.items.toSorted((a, b) => b.adCount - a.adCount)[0];
    const asked = { collectionId: biggest?.id, itemType: 'ads', detail: 'full' };
    const items = await follow('list_collection_items', { ...asked, limit: 50 }, asked);
    expect(items.length).toBeGreaterThan(1);
    expect(new Set(idsOf(items)).size).toBe(50);
    expect(chargeOf(items)).toBe(5);
  });

  test('goes on whether the call repeats its filters or not', async ({ server, follow }) => {
    const filters = { countries: ['FR'] };
    const [first] = await follow('search_ads', { limit: 40, detail: 'full', filters });
    const alone = (await server.call('search_ads', { cursor: first?.cursor })).data;
    const repeated = (await server.call('search_ads', { cursor: first?.cursor, filters })).data;
    expect(alone.items).toEqual(repeated.items);
    expect(alone.receipt.charged + repeated.receipt.charged).toBe(0);
    expect(alone.shown?.from ?? alone.items.length).toBeGreaterThan(1);
  });

  test('says in its text how many of how many are shown, and has the cursor on its own line', async ({ server }) => {
    const result = await server.call('search_ads', { limit: 60, detail: 'full' });
    const { shown, cursor } = result.data;
    expect(result.text).toContain(`${shown?.to} of 60 ads shown`);
    expect(result.text.split('\n')).toContain(cursor);
  });
});

describe('a cursor of ours', () => {
  let cursor = '';
  test.beforeAll(async ({ server }) => {
    cursor = (await server.call('search_ads', { limit: 50, detail: 'full' })).data.cursor ?? '';
    expect(cursor).toMatch(/^@/);
  });

  test('with any one character changed is refused, and nothing is charged', async ({ server }) => {
    const changes = fc.record({
      at: fc.nat(cursor.length - 1),
      to: fc.string({ unit: 'grapheme-ascii', minLength: 0, maxLength: 1 }),
    });
    const spent = async () => (await server.call('get_credits')).data.thisServer.charged;
    const before = await spent();
    await fc.assert(
      fc.asyncProperty(changes, async ({ at, to }) => {
        const changed = cursor.slice(0, at) + to + cursor.slice(at + 1);
        fc.pre(changed !== cursor && changed !== '');
        const { error, text } = await server.call('search_ads', { cursor: changed });
        expect(error?.kind).toBe('invalid_request');
        expect(text).toMatch(/cursor/i);
      }),
      { numRuns: 300 },
    );
    expect(await spent()).toBe(before);
  });

  test('with other filters or for another tool is refused, and nothing is asked', async ({ service, server }) => {
    service.requests.length = 0;
    const { error, text } = await server.call('search_ads', { cursor, filters: { countries: ['DE'] } });
    expect(error).toEqual({ kind: 'invalid_request', retryable: false });
    expect(text).toContain('to start over, leave it out');
    const elsewhere = { collectionId: uuidOf('c'), itemType: 'ads', cursor };
    expect((await server.call('list_collection_items', elsewhere)).error?.kind).toBe('invalid_request');
    expect((await server.call('search_pages', { cursor })).error?.kind).toBe('invalid_request');
    expect((await server.call('list_collections', { cursor })).error?.kind).toBe('invalid_request');
    expect(service.requests).toEqual([]);
  });
});

describe('a list of collections', () => {
  const collections = Array.from({ length: 900 }, (_, index) => ({
    id: `c-${index}`,
    name: `Collection ${index} ${'of ads '.repeat(5)}`,
    adCount: index,
  }));

  test('longer than a result may be is cut, and goes on with its cursor', async ({ upstream }) => {
    const many = await startServer({ config: { baseUrl: upstream.baseUrl, apiKey: 'svc_live_collections' } });
    upstream.does(json({ items: collections }));
    const seen: string[] = [];
    let cursor: string | null | undefined;
    do {
      const { data, text } = await many.call('list_collections', { cursor });
      const page = data;
      expect(text).toContain(' of 900 collections shown');
      seen.push(...page.items.map(({ id }) => id));
      cursor = page.cursor;
    } while (cursor);
    expect(seen).toEqual(collections.map(({ id }) => id));
    await many.close();
  });

  test('takes no cursor that is not its own', async ({ server }) => {
    expect((await server.call('list_collections', { cursor: 'abc' })).error?.kind).toBe('invalid_request');
    expect((await server.call('list_collections', { cursor: '@5.aaaaaaaaaaa' })).error?.kind).toBe('invalid_request');
  });
});
