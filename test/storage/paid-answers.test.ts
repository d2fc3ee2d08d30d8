import { existsSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { openFolderState } from '../../src/storage/folder.ts';
import { freshServiceTest } from '../support/fixtures.ts';
import { createFolderSequence } from '../support/temporary-folder.ts';

let clock = Date.now();
const test = freshServiceTest({ now: () => clock });
test.beforeEach(({ service }) => {
  service.requests.length = 0;
});

const newFolder = createFolderSequence();

/** Reads an account's dataset from a folder. */
async function readStoredContents(folder: string, { baseUrl, userId }: { baseUrl: string; userId: string }) {
  const userIdOf = async () => userId;
  const clocks = { now: Date.now, monotonicNow: Date.now };
  const { datasets } = openFolderState({
    folder,
    baseUrl,
    apiKey: 'k',
    ttlMs: 0,
    ...clocks,
    fetchUserId: userIdOf,
    warn: () => {},
  });
  return (await datasets.open({ tenantId: 't', apiKey: 'other' })).readContents();
}

describe('Storing the responses of paid calls', () => {
  test('every paid tool adds the ads and advertiser pages in its response to the stored dataset', async ({
    service,
    start,
  }) => {
    const files = newFolder();
    const server = await start({ files });
    const { items } = (await server.call('search_ads', { limit: 3 })).data;
    const otherAd = (await server.call('search_ads', { limit: 4 })).data.items[3];
    clock += 1000;
    await server.call('get_ad', { adId: otherAd?.id });
    await server.call('search_pages', { limit: 2 });
    await server.call('get_page', { pageId: items[0]?.pageId });
    const collections = (await server.call('list_collections')).data.items;
    const listed = [];
    for (const { id: collectionId } of collections) {
      const args = { collectionId, limit: 5 };
      listed.push(...(await server.call('list_collection_items', { ...args, itemType: 'ads' })).data.items);
      await server.call('list_collection_items', { ...args, itemType: 'pages' });
    }
    const readAt = clock;
    clock += 60_000;
    await server.call('search_ads', { limit: 3 });
    const { userId } = (await server.call('get_account')).data as unknown as { userId: string };
    const { ads, pages } = await readStoredContents(files, { baseUrl: service.baseUrl, userId });
    const ids = [...items, ...listed].map(({ id }) => id);
    expect(new Set(ads.map(({ id }) => id))).toEqual(new Set([...ids, otherAd?.id]));
    expect(ads.find(({ id }) => id === otherAd?.id)).toMatchObject({ listedBy: 'getAd', at: readAt });
    expect(ads.every(({ at }) => at <= readAt)).toBe(true);
    expect(pages.map(({ id }) => id)).toContain(items[0]?.pageId);
    expect(pages.length).toBeGreaterThan(1);
  });

  test('a paid ad can be read again at no charge even if the cache is turned off', async ({ service, start }) => {
    const server = await start({ cacheSeconds: 0 });
    const adId = (await server.call('search_ads', { limit: 1 })).data.items[0]?.id;
    expect((await server.call('get_ad', { adId, seen: true })).data.receipt.charged).toBe(0);
    expect(service.countPaidRequests()).toBe(1);
  });

  test('the server returns a paid result to the client even if it cannot store the result', async ({ start }) => {
    const server = await start({ files: '/dev/null/none' });
    expect((await server.call('search_ads', { limit: 1 })).data.items).toHaveLength(1);
    expect(server.logLines.join()).toMatch(
      /not added to the dataset.*\/dev\/null\/none.*cannot be read: a file is in the way/,
    );
    for (const [tool, args] of [
      ['gather_ads', { maxCredits: 5 }],
      ['query_ads', { sql: 'SELECT 1' }],
    ] as const) {
      const { error, text } = await server.call(tool, args);
      expect(error, tool).toMatchObject({ kind: 'unavailable' });
      expect(text).toContain('/dev/null/none');
    }
  });
});

test('free calls do not request the id of the account, and demo data is never stored in files', async ({
  service,
  start,
}) => {
  const files = newFolder();
  const server = await start({ files });
  await server.call('get_credits');
  await server.call('list_collections');
  expect(service.requests.join()).not.toContain('whoami');
  await (await start({ files, demo: true })).call('search_ads', { limit: 1 });
  expect(existsSync(files)).toBe(false);
});
