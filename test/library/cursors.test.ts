import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { createUuid, startLibraryServer } from './support/library-server.ts';

const libraryServer = await startLibraryServer();
afterAll(() => libraryServer.close());
const { search, get } = libraryServer;

let nextNumber = 0;
/**
 * Imports ads of a new advertiser page, so that no other test finds these ads. `addAds` imports more ads of the same
 * page.
 */
async function createPage(...ads: object[]) {
  const pageId = `page-${nextNumber}`;
  const addAds = async (...newAds: object[]) => {
    const storedAds = newAds.map((ad) => ({ id: createUuid(nextNumber++), pageId, ...ad }));
    await libraryServer.importRecords(...storedAds);
    return storedAds;
  };
  return { pageId, addAds, ads: await addAds(...ads) };
}
const fiveAds = Array.from({ length: 5 }, (_, at) => ({ duplicates: at }));

describe('Search cursors from the local library', () => {
  test('a search cursor of the local library works with filters of up to 48,000 bytes', async () => {
    const { pageId } = await createPage({}, {});
    const createFilters = (length: number) => ({ pageId, not: { ctaType: ['세'.repeat(length)] }, limit: 1 });
    const { cursor } = (await search(createFilters(15_900))).body;
    expect(await search({ cursor })).toMatchObject({ status: 200, body: { items: [{}], hasMore: false } });
    const message = expect.stringContaining('at most 48000 bytes');
    expect(await search(createFilters(16_000))).toMatchObject({ status: 422, body: { error: { message } } });
  });

  test('a client that reads all result pages of the local library misses and repeats no record while records are added', async () => {
    // With few different prices, many ads have the same sort value, so that result pages end between ads with equal
    // values.
    const price = fc.oneof(fc.nat(5), fc.double({ noNaN: true, noDefaultInfinity: true }));
    const adFields = fc.option(price).map((productPrice) => ({ productPrice, headline: 'Paged' }));
    const step = fc.record({ limit: fc.integer({ min: 1, max: 7 }), newAds: fc.array(adFields, { maxLength: 4 }) });
    await fc.assert(
      fc.asyncProperty(
        fc.array(adFields, { minLength: 1, maxLength: 30 }),
        fc.array(step, { minLength: 1 }),
        fc.constantFrom('asc', 'desc'),
        async (initialAds, steps, order) => {
          const { pageId, addAds, ads } = await createPage(...initialAds);
          const listedIds: string[] = [];
          let cursor: string | null = null;
          for (let round = 0; round === 0 || cursor; round++) {
            const { limit, newAds } = steps[round % steps.length] ?? { limit: 5, newAds: [] };
            const filters = cursor ? { cursor } : { pageId: [pageId], sort: 'productPrice', order };
            const { body } = await search({ ...filters, limit });
            listedIds.push(...body.items.map(({ id }: { id: string }) => id));
            expect(body.hasMore).toBe(body.cursor !== null);
            cursor = body.cursor;
            // Add ads only in the first five rounds. Otherwise the search would never reach its last page.
            if (round < 5) await addAds(...newAds);
            await libraryServer.importRecords(ads[round % ads.length]);
          }
          expect(new Set(listedIds).size).toBe(listedIds.length);
          expect(listedIds).toEqual(expect.arrayContaining(ads.map(({ id }) => id)));
        },
      ),
      { numRuns: 60 },
    );
  });

  test('a search cursor of the local library has fewer than 180 characters for common filters', async () => {
    const dates = { startedAt: '2026-01-02T03:04:05.000Z', lastSeenAt: '2026-03-15T00:00:00Z' };
    await createPage(...fiveAds.map(() => ({ ...dates, headline: 'Free shipping', countries: ['US'] })));
    const getCursorLength = async (body: object) => (await search({ ...body, limit: 2 })).body.cursor.length;
    expect(await getCursorLength({})).toBeLessThan(70);
    const filters = { query: '"free shipping"', countries: ['US'], active: true, sort: 'startedAt' };
    expect(await getCursorLength(filters)).toBeLessThan(180);
  });

  test('the local library rejects a search cursor in which any character was changed', async () => {
    const { pageId } = await createPage(...fiveAds);
    const cursor: string = (await search({ pageId, limit: 2 })).body.cursor;
    const getStatus = async (altered: string) => (await search({ cursor: altered })).status;
    await fc.assert(
      fc.asyncProperty(fc.nat(cursor.length - 1), fc.constantFrom(...'AZaz09-_.=% '), async (index, letter) => {
        fc.pre(cursor[index] !== letter);
        expect(await getStatus(cursor.slice(0, index) + letter + cursor.slice(index + 1))).toBe(422);
      }),
    );
    for (const altered of [`${cursor}=`, `${cursor}.x`, cursor.slice(0, -1), ` ${cursor}`])
      expect(await getStatus(altered)).toBe(422);
  });

  test('the local library rejects a search cursor that is used with other filters or for another list', async () => {
    const { pageId } = await createPage(...fiveAds);
    const filters = { pageId, duplicatesFrom: 1, not: { ctaType: 'BUY' }, sort: 'duplicates' };
    const { body } = await search({ ...filters, limit: 1 });
    const { cursor } = body;
    expect((await search({ cursor })).body).toMatchObject({
      ...{ items: [{ duplicates: 3 }], totalHits: 4, hasMore: true },
    });
    expect((await search({ cursor, ...filters, limit: 3 })).body.items).toHaveLength(3);
    const answerToOtherFilters = await search({ cursor, ...filters, duplicatesFrom: 2 });
    expect(answerToOtherFilters.status).toBe(422);
    expect(answerToOtherFilters.body.error.details.cursorFilters).toMatchObject({ duplicatesFrom: 1 });
    expect((await search({ cursor }, { kind: 'pages' })).status).toBe(422);
    const [collection] = (await get('/v1/collections')).body.items;
    expect((await get(`/v1/collections/${collection.id}/items?itemType=ads&cursor=${cursor}`)).status).toBe(422);
  });
});

test('the cursor of a collection list continues at the right item after new items were added to the collection', async () => {
  const [savedAds, savedPages] = (await get('/v1/collections')).body.items;
  const { ads } = await createPage(...Array.from({ length: 13 }, () => ({})));
  const [lateId, ...ids] = ads.map(({ id }) => id);
  const getItemsPath = (id: string) => `/v1/collections/${id}/items`;
  const addItem = (itemId: string | undefined) =>
    libraryServer.request('POST', getItemsPath(savedAds.id), {
      key: libraryServer.unlimitedKey,
      body: { itemType: 'ads', itemId },
    });
  for (const id of ids) await addItem(id);
  const listItems = async (query: string, { id } = savedAds) => get(`${getItemsPath(id)}?itemType=ads${query}`);
  const firstPage = (await listItems('&limit=5')).body;
  expect(firstPage.hasMore).toBe(true);
  await addItem(lateId);
  const secondPage = (await listItems(`&cursor=${firstPage.cursor}`)).body;
  expect(secondPage).toMatchObject({ hasMore: false, cursor: null });
  expect([...firstPage.items, ...secondPage.items].map(({ id }: { id: string }) => id)).toEqual(ids.toReversed());
  expect((await listItems(`&cursor=${firstPage.cursor}`, savedPages)).status).toBe(422);
});
