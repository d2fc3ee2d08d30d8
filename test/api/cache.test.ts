import { describe, expect } from 'vitest';
import { freshServiceTest } from '../support/fixtures.ts';
import { gateOf } from '../support/gate.ts';
import type { TestServer } from '../support/server.ts';

let clock = Date.now();
/** A key of its own for every test: no ledger disturbs another. */
const test = freshServiceTest({ now: () => clock });
test.beforeEach(({ service }) => {
  service.requests.length = 0;
});

describe('the same question', () => {
  test('asked sixteen times in a row goes out once and is charged once', async ({ service, server }) => {
    const results = [];
    for (let time = 0; time < 16; time++)
      results.push(await server.call('search_ads', { filters: { countries: ['DE'] } }));
    expect(service.paid()).toBe(1);
    const charges = results.map((result) => result.data.receipt.charged);
    expect(charges).toEqual([2, ...Array(15).fill(0)]);
    expect(results[15]?.data.items).toEqual(results[0]?.data.items);
    expect(results[15]?.data.receipt).toMatchObject({ cached: true, remaining: 9998 });
  });

  test('asked twelve times at once goes out once and is charged once', async ({ service, server }) => {
    const results = await Promise.all(Array.from({ length: 12 }, () => server.call('search_ads', { limit: 5 })));
    expect(service.paid()).toBe(1);
    expect(results.reduce((sum, result) => sum + result.data.receipt.charged, 0)).toBe(1);
    expect(results.filter(({ text }) => text.includes('shared with an identical call'))).toHaveLength(11);
    expect((await server.call('get_credits')).data.thisServer).toMatchObject({
      charged: 1,
      paidCalls: 1,
      savedCalls: 11,
      savedCredits: 11,
    });
  });

  test('is the same whatever the order of its keys and whether a number came as text', async ({ service, server }) => {
    await server.call('search_ads', { filters: { countries: ['DE'], query: 'tea' }, limit: 5 });
    await server.call('search_ads', { limit: '5', filters: '{"query":"tea","countries":["DE"]}' });
    expect(service.paid()).toBe(1);
  });

  test('in another detail is answered from what is kept', async ({ server }) => {
    await server.call('search_ads', { limit: 2 });
    const full = await server.call('search_ads', { limit: 2, detail: 'full' });
    expect(full.data.receipt.charged).toBe(0);
    expect(full.data.items[0]).toHaveProperty('media');
  });

  test('with another limit, filter or kind is another question', async ({ service, server }) => {
    for (const args of [{ limit: 2 }, { limit: 3 }, { limit: 2, filters: { countries: ['DE'] } }])
      await server.call('search_ads', args);
    await server.call('search_pages', { limit: 2 });
    expect(service.paid()).toBe(4);
  });

  test('of another key is charged to that key', async ({ service, server }) => {
    const other = await server.as(service.createKey());
    await server.call('search_ads', { limit: 2 });
    const { data } = await other.call('search_ads', { limit: 2 });
    expect(data.receipt).toMatchObject({ charged: 1, cached: false });
    expect(service.paid()).toBe(2);
    expect((await other.call('get_credits')).data.thisServer).toMatchObject({
      charged: 1,
      paidCalls: 1,
      savedCalls: 0,
    });
  });
});

test('a session that repeats its calls pays for them once', async ({ server }) => {
  const found = await server.call('search_ads', { limit: 10 });
  const ids = found.data.items.map(({ id }) => id);
  for (const adId of ids.slice(0, 5)) await server.call('get_ad', { adId });
  const half = (await server.call('get_credits')).data.thisServer;
  await server.call('search_ads', { limit: 10 });
  for (const adId of ids.slice(0, 2)) await server.call('get_ad', { adId });
  expect((await server.call('get_credits')).data.thisServer).toMatchObject({
    charged: half.charged,
    savedCalls: 3,
    savedCredits: 3,
  });
  expect(half.charged).toBe(6);
});

describe('a kept answer', () => {
  test('says its age and the current balance', async ({ server }) => {
    await server.call('search_ads', { limit: 2 });
    clock += 180_000;
    await server.call('search_pages', { limit: 2 });
    const again = await server.call('search_ads', { limit: 2 });
    expect(again.text).toContain('nothing charged (cached 3 min ago), 9,998 left');
    expect(again.data.receipt.remaining).toBe(9998);
  });

  test('is not used once it has expired', async ({ server }) => {
    await server.call('search_ads', { limit: 2 });
    clock += 900_000 - 1;
    expect((await server.call('search_ads', { limit: 2 })).data.receipt.charged).toBe(0);
    clock += 1;
    expect((await server.call('search_ads', { limit: 2 })).data.receipt.charged).toBe(1);
  });

  test('is replaced by a fresh one where the caller asks for it', async ({ server }) => {
    await server.call('search_ads', { limit: 2 });
    clock += 60_000;
    expect((await server.call('search_ads', { limit: 2, fresh: true })).data.receipt.charged).toBe(1);
    expect((await server.call('search_ads', { limit: 2 })).text).toContain('cached just now');
  });

  test('is never an error', async ({ service, server }) => {
    expect((await server.call('get_ad', { adId: '00000000-0000-4000-8000-000000000000' })).isError).toBe(true);
    await server.call('get_ad', { adId: '00000000-0000-4000-8000-000000000000' });
    expect(service.paid()).toBe(2);
  });

  test('does not exist where the cache is turned off', async ({ start }) => {
    const forgetful = await start({ cacheSeconds: 0 });
    await forgetful.call('search_ads', { limit: 2 });
    expect((await forgetful.call('search_ads', { limit: 2 })).data.receipt.charged).toBe(1);
  });

  test('does not exist for free operations: account and collections are always requested', async ({
    service,
    server,
  }) => {
    for (const tool of ['whoami', 'get_account', 'get_credits', 'list_collections']) {
      service.requests.length = 0;
      await server.call(tool);
      await server.call(tool);
      expect(service.requests).toHaveLength(2);
    }
  });
});

describe('saving to a collection', () => {
  const items = async (server: TestServer, collectionId: string | undefined) =>
    server.call('list_collection_items', { collectionId, itemType: 'ads' });

  test('shows in its items at once, and leaves other answers as they are', async ({ service, server }) => {
    const [first, second] = (await server.call('list_collections')).data.items;
    const ad = (await server.call('search_ads', { limit: 1 })).data.items[0]?.id;
    await items(server, first?.id);
    await items(server, second?.id);
    await server.call('add_collection_item', { collectionId: first?.id.toUpperCase(), itemType: 'ads', itemId: ad });
    service.requests.length = 0;
    expect((await items(server, first?.id)).data.items.map(({ id }) => id)).toEqual([ad]);
    await items(server, second?.id);
    await server.call('search_ads', { limit: 1 });
    expect(service.paid()).toBe(1);
  });

  test('while its items are being read does not leave a stale answer in the cache', async ({ service, server }) => {
    const collectionId = (await server.call('list_collections')).data.items[0]?.id;
    const ad = (await server.call('search_ads', { limit: 1 })).data.items[0]?.id;
    const { fetch } = service.library;
    const [read, gate] = [gateOf(), gateOf()];
    service.library.fetch = async (request) => {
      const answer = await fetch(request);
      if (request.method !== 'GET' || !request.url.includes('/items')) return answer;
      read.open();
      await gate.opened;
      return answer;
    };
    const reading = items(server, collectionId);
    await read.opened;
    await server.call('add_collection_item', { collectionId, itemType: 'ads', itemId: ad });
    service.library.fetch = fetch;
    gate.open();
    expect((await reading).data.items).toEqual([]);
    expect((await items(server, collectionId)).data.items.map(({ id }) => id)).toEqual([ad]);
  });
});

describe('an ad that a list showed', () => {
  test('is opened at no charge where the caller accepts the listed copy, with its age and source', async ({
    service,
    server,
  }) => {
    const ad = (await server.call('search_ads', { limit: 2 })).data.items[1]?.id ?? '';
    clock += 40_000;
    const opened = await server.call('get_ad', { adId: ad.toUpperCase(), seen: true });
    expect(opened.data).toMatchObject({
      ad: { id: ad },
      seenIn: 'search_ads',
      receipt: { charged: 0, cached: true, remaining: 9999 },
    });
    expect(opened.text).toContain('Copy from search_ads; get_ad without seen may show more.');
    expect(opened.text).toContain('cached 40 s ago');
    expect(service.paid()).toBe(1);
  });

  test('is as old as the list that was paid for, not as the last cached look at it', async ({ server }) => {
    const adId = (await server.call('search_ads', { limit: 1 })).data.items[0]?.id;
    clock += 60_000;
    await server.call('search_ads', { limit: 1 });
    expect((await server.call('get_ad', { adId, seen: true })).text).toContain('cached 60 s ago');
  });

  test('is requested where the caller does not accept the listed copy, or wants it fresh', async ({ server }) => {
    const adId = (await server.call('search_ads', { limit: 1 })).data.items[0]?.id;
    const asked = await server.call('get_ad', { adId });
    expect(asked.data).toMatchObject({ receipt: { charged: 1, cached: false } });
    expect(asked.data.seenIn).toBeUndefined();
    expect((await server.call('get_ad', { adId, seen: true, fresh: true })).data.receipt.charged).toBe(1);
  });

  test('is kept longer than answers are', async ({ service, server }) => {
    const adId = (await server.call('search_ads', { limit: 1 })).data.items[0]?.id;
    clock += 3 * 86_400_000;
    const opened = await server.call('get_ad', { adId, seen: true });
    expect(opened.text).toContain('cached 3 days ago');
    expect(service.paid()).toBe(1);
  });

  test('is asked for where no list showed it, or another key saw it', async ({ service, server }) => {
    const adId = (await server.call('search_ads', { limit: 1 })).data.items[0]?.id;
    const other = await server.as(service.createKey());
    expect((await other.call('get_ad', { adId, seen: true })).data.receipt.charged).toBe(1);
    const unseen = (await other.call('search_ads', { limit: 2 })).data.items[1]?.id;
    expect((await server.call('get_ad', { adId: unseen, seen: true })).data.receipt.charged).toBe(1);
  });
});
