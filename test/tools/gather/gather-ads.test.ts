import { describe, expect } from 'vitest';
import { clearFiles } from '../../../src/cli/files.ts';
import { readConfig } from '../../../src/config/read-config.ts';
import { freshServiceTest } from '../../support/fixtures.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const test = freshServiceTest();
const files = temporaryFolder();
const german = { filters: { countries: ['DE'] } };

describe('with the local library', () => {
  test('spends maxCredits to the last one, then goes on, and costs nothing once it is complete', async ({ server }) => {
    const { call } = server;
    const first = await call('gather_ads', { ...german, maxCredits: 15 });
    expect(first.data).toMatchObject({ found: 267, read: 150, added: 150, updated: 0, gone: null, complete: false });
    expect(first.data).toMatchObject({
      stopped: 'maxCredits',
      receipt: { charged: 15, remaining: 9985, cached: false },
    });
    const rest = await call('gather_ads', { ...german, maxCredits: 100 });
    expect(rest.data).toMatchObject({ gathering: first.data.gathering, read: 267, added: 117, complete: true });
    expect(rest.data).toMatchObject({ stopped: 'end', receipt: { charged: 12, calls: 2 } });
    expect(rest.text).toContain('12 charged for 2 calls');
    const again = await call('gather_ads', { ...german, maxCredits: 0 });
    expect(again.data).toMatchObject({ read: 267, added: 0, complete: true, stopped: 'end' });
    expect(again.data.receipt).toEqual({ charged: 0, remaining: null, cached: true, requestId: null, calls: 0 });
    expect(again.text).toMatch(/complete, last read \d{4}-\d\d-\d\d \d\d:\d\d UTC/);
  });

  test('summarizes what it read, and nothing else', async ({ server }) => {
    await server.call('search_ads', { filters: { displayFormat: ['IMAGE'] }, limit: 10 });
    const video = { countries: ['DE'], displayFormat: ['VIDEO'] };
    const { data, text } = await server.call('gather_ads', { filters: video, maxCredits: 20 });
    expect(data.summary).toContain('Formats (1): VIDEO 59\n');
    expect(text).toContain(data.summary);
  });

  test('gathers several questions under one limit, and counts an ad once that answers two of them', async ({
    server,
  }) => {
    const split = [{ displayFormat: ['VIDEO'] }, { displayFormat: ['IMAGE'] }, { countries: ['DE'] }];
    const { data } = await server.call('gather_ads', { ...german, split, maxCredits: 60 });
    expect(data).toMatchObject({ found: 59 + 109 + 267, read: 267, complete: true, stopped: 'end' });
    const part = await server.call('gather_ads', { filters: { ...german.filters, ...split[0] }, maxCredits: 1 });
    expect(part.data).toMatchObject({ read: 59, complete: true, receipt: { calls: 0 } });
  });

  test('goes on with the part in which a limit stopped it', async ({ server }) => {
    const split = [{ displayFormat: ['VIDEO'] }, { displayFormat: ['IMAGE'] }];
    const first = await server.call('gather_ads', { ...german, split, maxCredits: 7 });
    expect(first.data).toMatchObject({ complete: false, stopped: 'maxCredits', receipt: { charged: 7 } });
    const one = await server.call('gather_ads', { ...german, split: [split[1], { query: 'none' }], maxCredits: 1 });
    expect(one.data).toMatchObject({ found: null, foundInParts: '109 found in 1 of 2 parts' });
    expect(one.text).toMatch(/\d+ ads read, of 109 found in 1 of 2 parts; not complete/);
    const { text } = await server.call('query_ads', { sql: 'SELECT 1' });
    expect(text).toMatch(/\(gathered \d+ of 109 found in 1 of 2 parts, /);
    const rest = await server.call('gather_ads', { ...german, split, maxCredits: 60 });
    expect(rest.data).toMatchObject({ read: 168, complete: true, gathering: first.data.gathering });
    expect(rest.data.receipt.charged).toBeLessThanOrEqual(12);
  });

  test('gathers a collection', async ({ service, start }) => {
    const server = await start({ apiKey: service.apiKey });
    const { items } = (await server.call('list_collections')).data;
    const { id, adCount = 0 } = items.find((collection) => collection.adCount > 0) ?? {};
    const estimate = await server.call('gather_ads', { collectionId: id, maxCredits: 0 });
    expect(estimate.data).toMatchObject({
      estimate: { ads: adCount, pages: 1, credits: null },
      receipt: { charged: 0 },
    });
    const none = await server.call('gather_ads', { collectionId: `${id?.slice(0, -4)}0000`, maxCredits: 0 });
    expect(none.error).toMatchObject({ kind: 'not_found', retryable: false });
    expect(none.text).toContain('There is no collection with this id');
    const { data } = await server.call('gather_ads', { collectionId: id, maxCredits: 20 });
    expect(data).toMatchObject({ found: adCount, read: adCount, complete: true });
  });

  test('stops at maxAds, and goes on with more', async ({ server }) => {
    const first = await server.call('gather_ads', { ...german, maxCredits: 50, maxAds: 130 });
    expect(first.data).toMatchObject({ read: 130, stopped: 'maxAds', receipt: { charged: 13 } });
    const same = await server.call('gather_ads', { ...german, maxCredits: 50, maxAds: 130 });
    expect(same.data).toMatchObject({ read: 130, stopped: 'maxAds', receipt: { calls: 0 } });
    const more = await server.call('gather_ads', { ...german, maxCredits: 50, maxAds: 200 });
    expect(more.data).toMatchObject({ read: 200, receipt: { charged: 7 } });
  });

  test('estimates with one paid search, at a price that it has seen', async ({ server }) => {
    const unknown = await server.call('gather_ads', { ...german, maxCredits: 0 });
    expect(unknown.data).toMatchObject({
      gathering: null,
      read: 0,
      stopped: 'estimate',
      receipt: { charged: 1, calls: 1 },
    });
    expect(unknown.data.estimate).toEqual({ ads: 267, pages: 3, credits: null, atMost: 267 });
    expect(unknown.text).toContain('267 ads in 3 pages, for at most about 267 credits');
    for (const limit of [40, 100]) await server.call('search_ads', { limit });
    const known = await server.call('gather_ads', { filters: { countries: ['AT'] }, split: [{}, {}], maxCredits: 0 });
    const { ads, pages, credits } = known.data.estimate as { ads: number; pages: number; credits: number };
    expect(credits).toBe(Math.ceil(ads / 10));
    expect(pages).toBe(Math.ceil(ads / 100));
    expect(known.text).toContain('It took one search.');
    const parts = { filters: { countries: ['AT'] }, split: [{ displayFormat: ['IMAGE'] }], maxCredits: 0 };
    const guessed = await server.call('gather_ads', parts);
    expect(guessed.data).toMatchObject({ estimate: { ads, pages, credits: null }, receipt: { calls: 0 } });
    expect(guessed.text).toContain(`each may have all ${ads} that match filters. count_ads with the same split`);
  });

  test('refuses what contradicts itself, before anything is sent', async ({ server, service }) => {
    const sent = service.requests.length;
    const refusalOf = async (args: object) => (await server.call('gather_ads', { maxCredits: 5, ...args })).text;
    const collectionId = '6a1f7e0c-0000-4000-8000-00000000c011';
    expect(await refusalOf({ collectionId, split: [{}] })).toContain('collectionId and split cannot be combined');
    expect(await refusalOf({ collectionId, filters: {} })).toContain('collectionId and filters cannot be combined');
    expect(await refusalOf({ filters: { cursor: 'x' } })).toContain('must not hold "cursor"');
    expect(await refusalOf({ split: [{ limit: 3 }] })).toContain('must not hold "limit"');
    expect(await refusalOf({ maxCredits: undefined })).toContain('maxCredits is required');
    expect(await refusalOf({ maxCredits: -1 })).toContain('maxCredits');
    expect(await refusalOf({ maxAds: 20_000 })).toContain('maxAds');
    expect(service.requests).toHaveLength(sent);
  });
});

test('pages that come from the cache fill a dataset that was cleared', async ({ start }) => {
  let clock = Date.parse('2026-11-20T10:00:00Z');
  const server = await start({ files }, { now: () => clock++ });
  const question = { filters: { countries: ['DE'], displayFormat: ['VIDEO'] }, maxCredits: 100 };
  await server.call('gather_ads', question);
  await clearFiles({ ...readConfig({}), files }, () => {});
  clock += 60_000;
  const { data, text } = await server.call('gather_ads', question);
  expect(data).toMatchObject({ read: 59, complete: true, receipt: { charged: 0 } });
  expect(data).not.toHaveProperty('missing');
  expect(text).toContain('Formats (1): VIDEO 59\n');
  const sql = "SELECT count(*), min(gatheredAt) < '2026-11-20T10:01:00Z' FROM ads";
  expect((await server.call('query_ads', { sql })).data.rows).toEqual([[59, 1]]);
});

test('pages that a search has brought are not asked for again, whatever is left to read', async ({ server }) => {
  let { data } = await server.call('search_ads', { limit: 100 });
  while (data.cursor !== null) ({ data } = await server.call('search_ads', { cursor: data.cursor }));
  const gathered = await server.call('gather_ads', { maxAds: 10_000, maxCredits: 100 });
  expect(gathered.data).toMatchObject({ complete: true, receipt: { charged: 0 } });
});
