import { expect } from 'vitest';
import { deriveUuid } from '../support/derive-uuid.ts';
import { createCreditHeaders, respondWithJson } from '../support/faulty-upstream.ts';
import { freshUpstreamTest, serviceTest } from '../support/fixtures.ts';
import type { ResultItem } from '../support/server.ts';

const test = serviceTest().extend('call', ({ server }) => async (tool: string, args: Record<string, unknown> = {}) => {
  const { data, text, isError } = await server.call(tool, args);
  expect(isError).toBe(false);
  return { data, text, items: data.items };
});
const upstreamTest = freshUpstreamTest();

test('search_ads returns the most important facts about each ad', async ({ call }) => {
  const { items, data } = await call('search_ads', { filters: { countries: ['DE'] }, limit: 10 });
  expect(items).toHaveLength(10);
  expect(data).toMatchObject({ hasMore: true, cursor: expect.any(String), totalHits: expect.any(Number) });
  for (const ad of items)
    for (const field of ['id', 'pageName', 'startedAt', 'duplicates', 'displayFormat', 'landingDomain'])
      expect(ad).toHaveProperty(field);
});

test('search_ads shows the date of its result in both the text and the data', async ({ call }) => {
  for (const detail of ['brief', 'full']) {
    const { text, data } = await call('search_ads', { detail, limit: 3 });
    expect(data.asOf).toMatch(/^\d{4}-\d\d-\d\d$/);
    if (detail === 'brief') expect(text).toContain(`As of ${data.asOf}.`);
  }
});

test('get_ad returns the cards and pictures of a carousel ad', async ({ call }) => {
  const { items } = await call('search_ads', { filters: { displayFormat: ['CAROUSEL'] }, limit: 50 });
  const { text } = await call('get_ad', { adId: items.find(({ creative }) => creative === '5 cards')?.id });
  expect(text.match(/^\d+\. /gm)).toEqual(['1. ', '2. ', '3. ', '4. ', '5. ']);
  expect(new Set([...text.matchAll(/^ {3}picture: "(.*)"/gm)].map(([, url]) => url)).size).toBe(5);
});

test('an error about an unknown filter, ad or collection names the filter or the kind of id', async ({ server }) => {
  const unknownId = '00000000-0000-4000-8000-000000000000';
  const items = { collectionId: unknownId, itemType: 'ads' };
  for (const [tool, args, kind, expectedText] of [
    ['search_ads', { filters: { colour: 'red' } }, 'invalid_request', 'colour'],
    ['get_ad', { adId: unknownId }, 'not_found', 'ad ids for get_ad'],
    ['list_collection_items', items, 'not_found', 'collection'],
    ['add_collection_item', { ...items, itemId: unknownId }, 'not_found', 'collection'],
  ] as const) {
    const { error, text } = await server.call(tool, args);
    expect(error?.kind).toBe(kind);
    expect(text).toContain(expectedText);
  }
});

test('search_pages and get_page return the same facts about an advertiser page', async ({ call }) => {
  const { items } = await call('search_pages', { limit: 5 });
  const expectedFields = { pageId: expect.any(String), pageName: expect.any(String), adsAmount: expect.any(Number) };
  expect(items).toEqual(Array(5).fill(expect.objectContaining(expectedFields)));
  const { pageId, pageName, adsAmount, countries } = items[0] as ResultItem;
  const { data } = await call('get_page', { pageId });
  expect(data.page).toMatchObject({ pageId, pageName, adsAmount, countries });
});

test('a collection lists an ad that was added to it twice, and counts the ad once', async ({ call }) => {
  const [saved] = (await call('list_collections')).items;
  const [ad] = (await call('search_ads', { limit: 1 })).items;
  const saving = { collectionId: saved?.id, itemType: 'ads', itemId: ad?.id };
  const adCount = (saved?.adCount ?? 0) + 1;
  for (const added of [true, false]) {
    const { data, text } = await call('add_collection_item', saving);
    expect(data).toMatchObject({ added, itemType: 'ads', itemId: ad?.id, collection: { id: saved?.id, adCount } });
    expect(text).toContain(added ? 'added to the collection' : 'was already in the collection');
  }
  const { items, data, text } = await call('list_collection_items', { collectionId: saved?.id, itemType: 'ads' });
  expect(items[0]).toMatchObject({ id: ad?.id });
  expect(data).toMatchObject({ itemType: 'ads', collection: { id: saved?.id }, hasMore: false, cursor: null });
  expect(text).toContain(saved?.name);
});

test('a collection can store advertiser pages', async ({ call }) => {
  const [, saved] = (await call('list_collections')).items;
  const [page] = (await call('search_pages', { limit: 1 })).items;
  await call('add_collection_item', { collectionId: saved?.id, itemType: 'pages', itemId: page?.pageId });
  const { items, text } = await call('list_collection_items', { collectionId: saved?.id, itemType: 'pages' });
  expect(items[0]).toMatchObject({ pageId: page?.pageId });
  expect(text).toContain(String(page?.pageName));
});

upstreamTest(
  'list_collection_items returns an error with the charge if the API sends items of the wrong type',
  async ({ upstream, server }) => {
    const answer = { itemType: 'pages', items: [{ name: 'neither' }], cursor: null, hasMore: false };
    upstream.respondWith(respondWithJson(answer, { headers: createCreditHeaders(3) }));
    for (const itemType of ['ads', 'pages']) {
      const { error, text } = await server.call('list_collection_items', { collectionId: deriveUuid('c'), itemType });
      expect(error).toMatchObject({ kind: 'unexpected_response', status: 200, requestId: 'req-1' });
      expect(text).toContain('charged 3 credits');
    }
  },
);

test('get_account, get_credits and whoami return information about the account of the API key', async ({
  service,
  call,
}) => {
  const { data: account } = await call('get_account');
  const { data: credits, text } = await call('get_credits');
  const { data: identity } = await call('whoami');
  expect(account).toMatchObject({ planId: 'library', subscriptionStatus: 'active', isTeamMember: false });
  const { billingUserId } = account;
  expect(credits).toMatchObject({ billingUserId, creditsMax: 10_000, usageLimit: { hourlyLimit: 1000 } });
  expect(text).toMatch(/hourly: \d+ of 1,?000 used, \d+ left/);
  expect(identity).toMatchObject({ authenticated: true, authSource: 'api_key', user: { userId: account.userId } });
  expect(JSON.stringify(identity)).not.toContain(service.apiKey);
});
