import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { searchAll, serveLibrary, serveRich, uuid } from './support/served-library.ts';

const { served, key } = await serveRich();
afterAll(() => served.close());

describe('cursors', () => {
  test('hold filters of any length that is taken', async () => {
    await served.load({ id: uuid(1), pageId: 'long' }, { id: uuid(2), pageId: 'long' });
    const ask = (body: object) => served.ask('POST', '/v1/ads/search', { key, body });
    const filters = (length: number) => ({ pageId: 'long', not: { ctaType: ['세'.repeat(length)] }, limit: 1 });
    const { body: first } = await ask(filters(15_900));
    expect(await ask({ cursor: first.cursor })).toMatchObject({ status: 200, body: { items: [{}], hasMore: false } });
    const message = expect.stringContaining('at most 48000 bytes');
    expect(await ask(filters(16_000))).toMatchObject({ status: 422, body: { error: { message } } });
  });

  test('lose and repeat nothing while records are added and replaced', async () => {
    const step = fc.record({
      limit: fc.integer({ min: 1, max: 7 }),
      added: fc.array(fc.option(fc.nat(5)), { maxLength: 4 }),
    });
    const start = fc.array(fc.option(fc.nat(5)), { minLength: 1, maxLength: 30 });
    let number = 100_000;
    await fc.assert(
      fc.asyncProperty(
        start,
        fc.array(step, { minLength: 1 }),
        fc.constantFrom('asc', 'desc'),
        async (first, steps, order) => {
          const pageId = `cursor-${number}`;
          const put = async (values: (number | null)[]) => {
            const made = values.map((duplicates) => ({ id: uuid(number++), pageId, duplicates, headline: 'Paged' }));
            await served.load(...made);
            return made;
          };
          const begun = await put(first);
          const seen: string[] = [];
          let cursor: string | null = null;
          for (let at = 0; at === 0 || cursor; at++) {
            const { limit, added } = steps[at % steps.length] ?? { limit: 5, added: [] };
            const filters = { pageId: [pageId], sort: 'duplicates', order };
            const { body } = await served.ask('POST', '/v1/ads/search', {
              key,
              body: cursor ? { cursor, limit } : { ...filters, limit },
            });
            seen.push(...body.items.map((item: { id: string }) => item.id));
            expect(body.hasMore).toBe(body.cursor !== null);
            cursor = body.cursor;
            // Enough rounds that adding ends some time.
            if (at < 5) await put(added);
            await served.load(begun[at % begun.length]);
          }
          expect(new Set(seen).size).toBe(seen.length);
          expect(seen).toEqual(expect.arrayContaining(begun.map(({ id }) => id)));
        },
      ),
      { numRuns: 60 },
    );
  });

  test('are short: every page of results carries one', async () => {
    const own = await serveLibrary();
    const startedAt = '2026-01-02T03:04:05.000Z';
    const dates = { startedAt, lastSeenAt: '2026-03-15T00:00:00Z' };
    const row = (at: number) => ({ id: uuid(6000 + at), ...dates, headline: 'Free shipping', countries: ['US'] });
    await own.load(...Array.from({ length: 5 }, (_, at) => row(at)));
    const by = own.key();
    const cursorOf = async (body: Record<string, unknown>): Promise<string> =>
      (await own.ask('POST', '/v1/ads/search', { key: by, body: { ...body, limit: 2 } })).body.cursor;
    expect((await cursorOf({})).length).toBeLessThan(70);
    const filters = { query: '"free shipping"', countries: ['US'], active: true, sort: 'startedAt' };
    expect((await cursorOf(filters)).length).toBeLessThan(180);
    await own.close();
  });

  test('hold any position exactly', async () => {
    const number = fc.double({ noNaN: true, noDefaultInfinity: true });
    let id = 8_000;
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(number, { minLength: 2, maxLength: 6 }), async (numbers) => {
        const pageId = `position-${id}`;
        await served.load(...numbers.map((productPrice) => ({ id: uuid(id++), pageId, productPrice })));
        const { items } = await searchAll(served, '/v1/ads/search', key, { pageId, sort: 'productPrice', limit: 1 });
        expect(items).toHaveLength(numbers.length);
      }),
      { numRuns: 50 },
    );
  });

  test('that were altered are refused', async () => {
    await served.load(...Array.from({ length: 5 }, (_, at) => ({ id: uuid(7000 + at), pageId: 'altered' })));
    const first = await served.ask('POST', '/v1/ads/search', { key, body: { pageId: 'altered', limit: 2 } });
    const cursor: string = first.body.cursor;
    await fc.assert(
      fc.asyncProperty(fc.nat(cursor.length - 1), fc.constantFrom(...'AZaz09-_.=% '), async (at, letter) => {
        fc.pre(cursor[at] !== letter);
        const altered = cursor.slice(0, at) + letter + cursor.slice(at + 1);
        const { status } = await served.ask('POST', '/v1/ads/search', { key, body: { cursor: altered } });
        expect(status).toBe(422);
      }),
    );
    for (const other of [`${cursor}=`, `${cursor}.x`, cursor.slice(0, -1), ` ${cursor}`]) {
      expect((await served.ask('POST', '/v1/ads/search', { key, body: { cursor: other } })).status).toBe(422);
    }
  });

  test('work alone or with the same filters; other filters and other lists are refused', async () => {
    await served.load(
      ...Array.from({ length: 5 }, (_, at) => ({ id: uuid(7100 + at), pageId: 'alone', duplicates: at })),
    );
    const filters = { pageId: 'alone', duplicatesFrom: 1, sort: 'duplicates' };
    const first = await served.ask('POST', '/v1/ads/search', { key, body: { ...filters, limit: 1 } });
    expect(first.body.totalHits).toBe(4);
    const { cursor } = first.body;
    const next = (body: unknown, path = '/v1/ads/search') => served.ask('POST', path, { key, body });
    const alone = await next({ cursor });
    expect(alone.body).toMatchObject({ items: [{ duplicates: 3 }], totalHits: 4, hasMore: true });
    expect((await next({ cursor, ...filters, limit: 3 })).body.items).toHaveLength(3);
    const other = await next({ cursor, ...filters, duplicatesFrom: 2 });
    expect(other.status).toBe(422);
    expect(other.body.error.details.cursorFilters).toMatchObject({ duplicatesFrom: 1 });
    expect((await next({ cursor }, '/v1/pages/search')).status).toBe(422);
    const { body } = await served.ask('GET', '/v1/collections', { key });
    const items = await served.ask('GET', `/v1/collections/${body.items[0].id}/items?itemType=ads&cursor=${cursor}`, {
      key,
    });
    expect(items.status).toBe(422);
  });

  test('of a collection continue from newest to oldest, and are bound to it', async () => {
    const own = served.key();
    await served.load(...Array.from({ length: 130 }, (_, at) => ({ id: uuid(7200 + at) })));
    const { body } = await served.ask('GET', '/v1/collections', { key: own });
    const [ads, pages] = body.items;
    const add = (at: number) =>
      served.ask('POST', `/v1/collections/${ads.id}/items`, {
        key: own,
        body: { itemType: 'ads', itemId: uuid(7200 + at) },
      });
    for (let at = 0; at < 120; at++) await add(at);
    const list = (query: string, id = ads.id) =>
      served.ask('GET', `/v1/collections/${id}/items?itemType=ads${query}`, { key: own });
    const first = await list('');
    expect(first.body.items).toHaveLength(50);
    expect(first.body.items[0].id).toBe(uuid(7319));
    await add(125);
    const rest = await list(`&limit=100&cursor=${first.body.cursor}`);
    expect(rest.body).toMatchObject({ hasMore: false, cursor: null });
    const ids = [...first.body.items, ...rest.body.items].map((item: { id: string }) => item.id);
    expect(ids).toEqual(Array.from({ length: 120 }, (_, at) => uuid(7319 - at)));
    expect((await list(`&cursor=${first.body.cursor}`, pages.id)).status).toBe(422);
  });
});
