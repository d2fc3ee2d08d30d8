import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { serveLibrary, uuid } from './support/served-library.ts';

const served = await serveLibrary();
afterAll(() => served.close());
const { search, get } = served;

let number = 0;
/** Loads ads of a page of their own, as often as asked. */
async function page(...ads: object[]) {
  const pageId = `page-${number}`;
  const add = async (...more: object[]) => {
    const made = more.map((ad) => ({ id: uuid(number++), pageId, ...ad }));
    await served.importRecords(...made);
    return made;
  };
  return { pageId, add, made: await add(...ads) };
}
const five = Array.from({ length: 5 }, (_, at) => ({ duplicates: at }));

describe('cursors of searches', () => {
  test('hold filters of any length that is taken', async () => {
    const { pageId } = await page({}, {});
    const filters = (length: number) => ({ pageId, not: { ctaType: ['세'.repeat(length)] }, limit: 1 });
    const { cursor } = (await search(filters(15_900))).body;
    expect(await search({ cursor })).toMatchObject({ status: 200, body: { items: [{}], hasMore: false } });
    const message = expect.stringContaining('at most 48000 bytes');
    expect(await search(filters(16_000))).toMatchObject({ status: 422, body: { error: { message } } });
  });

  test('lose and repeat nothing while records are added and replaced', async () => {
    // Numbers that many have, and any others.
    const price = fc.oneof(fc.nat(5), fc.double({ noNaN: true, noDefaultInfinity: true }));
    const value = fc.option(price).map((productPrice) => ({ productPrice, headline: 'Paged' }));
    const step = fc.record({ limit: fc.integer({ min: 1, max: 7 }), added: fc.array(value, { maxLength: 4 }) });
    await fc.assert(
      fc.asyncProperty(
        fc.array(value, { minLength: 1, maxLength: 30 }),
        fc.array(step, { minLength: 1 }),
        fc.constantFrom('asc', 'desc'),
        async (first, steps, order) => {
          const { pageId, add, made } = await page(...first);
          const seen: string[] = [];
          let cursor: string | null = null;
          for (let at = 0; at === 0 || cursor; at++) {
            const { limit, added } = steps[at % steps.length] ?? { limit: 5, added: [] };
            const filters = cursor ? { cursor } : { pageId: [pageId], sort: 'productPrice', order };
            const { body } = await search({ ...filters, limit });
            seen.push(...body.items.map(({ id }: { id: string }) => id));
            expect(body.hasMore).toBe(body.cursor !== null);
            cursor = body.cursor;
            // Enough rounds that adding ends some time.
            if (at < 5) await add(...added);
            await served.importRecords(made[at % made.length]);
          }
          expect(new Set(seen).size).toBe(seen.length);
          expect(seen).toEqual(expect.arrayContaining(made.map(({ id }) => id)));
        },
      ),
      { numRuns: 60 },
    );
  });

  test('are short', async () => {
    const dates = { startedAt: '2026-01-02T03:04:05.000Z', lastSeenAt: '2026-03-15T00:00:00Z' };
    await page(...five.map(() => ({ ...dates, headline: 'Free shipping', countries: ['US'] })));
    const lengthOf = async (body: object) => (await search({ ...body, limit: 2 })).body.cursor.length;
    expect(await lengthOf({})).toBeLessThan(70);
    const filters = { query: '"free shipping"', countries: ['US'], active: true, sort: 'startedAt' };
    expect(await lengthOf(filters)).toBeLessThan(180);
  });

  test('that were altered are refused', async () => {
    const { pageId } = await page(...five);
    const cursor: string = (await search({ pageId, limit: 2 })).body.cursor;
    const statusOf = async (altered: string) => (await search({ cursor: altered })).status;
    await fc.assert(
      fc.asyncProperty(fc.nat(cursor.length - 1), fc.constantFrom(...'AZaz09-_.=% '), async (at, letter) => {
        fc.pre(cursor[at] !== letter);
        expect(await statusOf(cursor.slice(0, at) + letter + cursor.slice(at + 1))).toBe(422);
      }),
    );
    for (const other of [`${cursor}=`, `${cursor}.x`, cursor.slice(0, -1), ` ${cursor}`])
      expect(await statusOf(other)).toBe(422);
  });

  test('work alone or with the same filters; other filters and other lists are refused', async () => {
    const { pageId } = await page(...five);
    const filters = { pageId, duplicatesFrom: 1, not: { ctaType: 'BUY' }, sort: 'duplicates' };
    const { body } = await search({ ...filters, limit: 1 });
    const { cursor } = body;
    expect((await search({ cursor })).body).toMatchObject({
      ...{ items: [{ duplicates: 3 }], totalHits: 4, hasMore: true },
    });
    expect((await search({ cursor, ...filters, limit: 3 })).body.items).toHaveLength(3);
    const other = await search({ cursor, ...filters, duplicatesFrom: 2 });
    expect(other.status).toBe(422);
    expect(other.body.error.details.cursorFilters).toMatchObject({ duplicatesFrom: 1 });
    expect((await search({ cursor }, { kind: 'pages' })).status).toBe(422);
    const [collection] = (await get('/v1/collections')).body.items;
    expect((await get(`/v1/collections/${collection.id}/items?itemType=ads&cursor=${cursor}`)).status).toBe(422);
  });
});

test('cursors of a collection continue from newest to oldest, whatever is added, and are bound to it', async () => {
  const [ads, pages] = (await get('/v1/collections')).body.items;
  const { made } = await page(...Array.from({ length: 13 }, () => ({})));
  const [late, ...ids] = made.map(({ id }) => id);
  const itemsOf = (id: string) => `/v1/collections/${id}/items`;
  const add = (itemId: string | undefined) =>
    served.ask('POST', itemsOf(ads.id), { key: served.richKey, body: { itemType: 'ads', itemId } });
  for (const id of ids) await add(id);
  const list = async (query: string, { id } = ads) => get(`${itemsOf(id)}?itemType=ads${query}`);
  const first = (await list('&limit=5')).body;
  expect(first.hasMore).toBe(true);
  await add(late);
  const rest = (await list(`&cursor=${first.cursor}`)).body;
  expect(rest).toMatchObject({ hasMore: false, cursor: null });
  expect([...first.items, ...rest.items].map(({ id }: { id: string }) => id)).toEqual(ids.toReversed());
  expect((await list(`&cursor=${first.cursor}`, pages)).status).toBe(422);
});
