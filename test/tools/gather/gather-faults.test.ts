import fc from 'fast-check';
import { expect } from 'vitest';
import type { Dataset, DatasetStore } from '../../../src/storage/dataset.ts';
import { MemoryDatasetStore } from '../../../src/storage/memory-datasets.ts';
import { type AdService, createAd, serveAds } from '../../support/ad-service.ts';
import {
  createCreditHeaders,
  createCreditStatus,
  createUsageLimit,
  delays,
  faults,
  respondWithError,
  respondWithJson,
} from '../../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../../support/fixtures.ts';

const test = freshUpstreamTest();
test.beforeEach(({ upstream }) => {
  upstream.credits = undefined;
});

const noLimits = { maxCredits: 1000, maxAds: 1000 };

const createNextPage = (cursor: unknown) => ({ cursor: cursor === null ? null : `${cursor}`, hasMore: true });
test.for<[string, AdService['modifyResponse']]>([
  ['repeats its cursor forever', (answer) => ({ ...answer, ...createNextPage(100) })],
  [
    'sends empty pages and says there are more',
    (answer, { sequenceNumber }) => ({ ...answer, ...createNextPage(sequenceNumber), items: [] }),
  ],
  [
    'sends the same ad on every page',
    (answer, { sequenceNumber }) => ({ ...answer, ...createNextPage(sequenceNumber), items: [createAd(0)] }),
  ],
  ['announces more without a cursor', (answer) => ({ ...answer, ...createNextPage(null) })],
])('gather_ads stops after at most five pages if the API %s', async ([, change], { upstream, server }) => {
  const service = serveAds(upstream, 1000);
  service.modifyResponse = change;
  const { data, isError, error } = await server.call('gather_ads', noLimits);
  expect(service.searches.length).toBeLessThanOrEqual(5);
  if (isError) expect(error).toMatchObject({ kind: 'unexpected_response' });
  else expect(data).toMatchObject({ complete: false, stopped: 'error', error: 'unexpected_response' });
});

test('gather_ads stops when the API rejects an expired cursor and keeps the ads that it has read', async ({
  upstream,
  server,
}) => {
  const service = serveAds(upstream, 300);
  await server.call('gather_ads', { ...noLimits, maxAds: 100 });
  service.overrideResponse = ({ cursor }) =>
    cursor ? respondWithError(422, { message: 'The cursor has expired.' }) : undefined;
  const { data, text } = await server.call('gather_ads', noLimits);
  expect(data).toMatchObject({ read: 100, complete: false, stopped: 'error', error: 'invalid_request' });
  expect(data.receipt).toMatchObject({ charged: 0 });
  expect(text).toContain('The cursor has expired.');
  expect(text).toContain('fresh: true, which is charged again');
  service.overrideResponse = () => undefined;
  expect((await server.call('gather_ads', { ...noLimits, fresh: true })).data).toMatchObject({
    read: 300,
    complete: true,
  });
});

test('gather_ads tries no smaller page after the API has charged for a rejected page', async ({ upstream, server }) => {
  const service = serveAds(upstream, 300);
  service.overrideResponse = ({ limit }) =>
    limit > 20
      ? respondWithJson(
          { error: { code: 'invalid', message: 'limit is at most 20', requestId: 'req-1' } },
          { status: 422, headers: createCreditHeaders(5) },
        )
      : undefined;
  const { error, text } = await server.call('gather_ads', noLimits);
  expect(error).toMatchObject({ kind: 'invalid_request', retryable: false });
  expect(text).toContain('limit is at most 20');
  expect(text).toContain('The service says it charged 5 credits for this call.');
  expect(service.searches.map(({ limit }) => limit)).toEqual([100]);
  expect((await server.call('gather_ads', { ...noLimits, maxAds: 20 })).data).toMatchObject({ read: 20 });
});

test('ads that have been paid for stay in the dataset even if reading the same result page again fails', async ({
  upstream,
  start,
}) => {
  const service = serveAds(upstream, 1100);
  const server = await start({ resultTokens: 100_000 });
  const args = { filters: { query: 'tea' }, limit: 100 };
  let { data } = await server.call('search_ads', args);
  for (let page = 2; page <= 10; page++) data = (await server.call('search_ads', { cursor: data.cursor })).data;
  const last = { cursor: data.cursor };
  expect((await server.call('search_ads', last)).data.receipt.charged).toBe(10);
  service.overrideResponse = ({ cursor }) => (cursor === '1000' ? respondWithError(500) : undefined);
  const gather = { filters: args.filters, maxCredits: 1000, maxAds: 2000, fresh: true };
  expect((await server.call('gather_ads', gather)).data).toMatchObject({ read: 1000, stopped: 'error' });
  expect((await server.call('search_ads', last)).data.receipt).toMatchObject({ charged: 0, cached: true });
  service.overrideResponse = () => undefined;
  // The older cached copy must not be used after a successful reload either.
  expect((await server.call('gather_ads', gather)).data).toMatchObject({ read: 1100, complete: true });
  expect((await server.call('search_ads', last)).data.receipt).toMatchObject({ charged: 10, cached: false });
});

test('if a gather_ads call with split and fresh is cancelled just before it returns, the next call does not pay again', async ({
  upstream,
  start,
}) => {
  const service = serveAds(upstream, 60);
  service.selectAds = ({ part }) => service.ads.filter((_, index) => index % 2 === part);
  const memory = new MemoryDatasetStore({ maxBytesEach: 8 * 2 ** 20 });
  const caller = new AbortController();
  // Each part and the whole search are marked as returned. Cancel the call while the first mark is being stored.
  const open: DatasetStore['open'] = async (key) => {
    const dataset = await memory.open(key);
    const saveGathering: Dataset['saveGathering'] = async (step) => {
      await dataset.saveGathering(step);
      if (step.isFresh || caller.signal.aborted) return;
      caller.abort();
      // The ping returns after the server has received the cancellation.
      await client.ping();
    };
    return { ...dataset, saveGathering };
  };
  const { client, call } = await start({ cacheSeconds: 0 }, { datasets: { open, close: () => memory.close() } });
  const question = { split: [{ part: 0 }, { part: 1 }], maxCredits: 100, fresh: true };
  await expect(call('gather_ads', question, { signal: caller.signal })).rejects.toThrow();
  const searchCount = service.searches.length;
  expect((await call('gather_ads', question)).data).toMatchObject({ read: 60, complete: true });
  expect(service.searches.length).toBe(searchCount);
  // This result was returned, so the next call with `fresh` reads all ads again.
  expect((await call('gather_ads', question)).data).toMatchObject({ read: 60, complete: true });
  expect(service.searches.length).toBe(2 * searchCount);
});

test('gather_ads stops when a usage limit is reached and continues in a later call', async ({ upstream, server }) => {
  const service = serveAds(upstream, 300);
  upstream.credits = respondWithJson(createCreditStatus({ ...createUsageLimit(395), isLimitReached: false }));
  service.overrideResponse = ({ sequenceNumber }) => (sequenceNumber === 2 ? respondWithError(429) : undefined);
  const little = await server.call('gather_ads', noLimits);
  expect(little.data).toMatchObject({ read: 100, stopped: 'usage_limit' });
  expect(little.text).toContain('Ask for less now, or repeat the call');
  upstream.credits = respondWithJson(createCreditStatus(createUsageLimit(1)));
  await server.call('get_credits');
  upstream.credits = respondWithJson(createCreditStatus(createUsageLimit(400)));
  service.overrideResponse = ({ sequenceNumber }) => (sequenceNumber === 4 ? respondWithError(429) : undefined);
  const { data, text } = await server.call('gather_ads', noLimits);
  expect(data).toMatchObject({ read: 200, stopped: 'usage_limit', receipt: { charged: 10, calls: 2 } });
  expect(text).toContain('hourly window 400 of 400');
  upstream.credits = respondWithJson(createCreditStatus(createUsageLimit(1)));
  await server.call('get_credits');
  expect((await server.call('gather_ads', noLimits)).data).toMatchObject({ read: 300, complete: true });
  expect(service.chargedCredits).toBe(30);
});

test.for([
  ['payment_required', respondWithError(402)],
  ['unavailable', respondWithError(500)],
  ['network', faults.resets],
  ['unexpected_response', faults['sends a web page']],
] as const)(
  'gather_ads keeps the ads that it has read before the API error %s',
  async ([kind, fault], { upstream, server }) => {
    const service = serveAds(upstream, 300);
    service.overrideResponse = ({ sequenceNumber }) => (sequenceNumber === 2 ? fault : undefined);
    const { data, text } = await server.call('gather_ads', noLimits);
    expect(data).toMatchObject({ read: 100, stopped: 'error', error: kind });
    expect(data.next).toContain(
      'Subtract the charge of this call from maxCredits. If nothing remains, or if the charge is unknown, ask the user.',
    );
    const isUnknown = kind !== 'payment_required';
    const condition = isUnknown ? '' : ' when the account has credits or a subscription again';
    expect(data.next).toContain(`To continue${condition}, call again with the same question.`);
    expect(data.receipt).toMatchObject({ charged: isUnknown ? null : 10, calls: 2 });
    if (isUnknown) expect(text).toContain('at least 10 charged for 2 calls');
    service.overrideResponse = () => fault;
    const nothing = await server.call('gather_ads', { ...noLimits, filters: { a: 1 } });
    expect(nothing.error).toMatchObject({ kind });
  },
);

test('gather_ads returns the ads that it has read when its deadline passes', async ({ upstream, start }) => {
  const server = await start({ timeoutMs: 4000 });
  const service = serveAds(upstream, 300);
  service.overrideResponse = ({ filters, sequenceNumber }) =>
    sequenceNumber === 2 || filters.hangs ? delays.hangs : undefined;
  const [partialResult, emptyResult] = await Promise.all([
    server.call('gather_ads', noLimits),
    upstream.waitForRequests(2).then(() => server.call('gather_ads', { ...noLimits, filters: { hangs: true } })),
  ]);
  expect(partialResult.data).toMatchObject({ read: 100, stopped: 'deadline', complete: false });
  expect(partialResult.data.receipt).toMatchObject({ charged: null, calls: 2 });
  expect(emptyResult.error).toMatchObject({ kind: 'timeout' });
});

test('gather_ads does not request a page whose response could arrive after the deadline of the call', async ({
  upstream,
  start,
}) => {
  let clock = 0;
  const server = await start({ timeoutMs: 45_000 }, { now: () => clock });
  serveAds(upstream, 1000).overrideResponse = () => {
    clock += 10_000;
    return undefined;
  };
  const { data, text } = await server.call('gather_ads', noLimits);
  expect(data).toMatchObject({ read: 300, stopped: 'deadline', receipt: { charged: 30 } });
  expect(text).toContain('Time was short. To continue, call again with the same question.');
  expect(text).toContain(
    'Subtract the charge of this call from maxCredits. If nothing remains, or if the charge is unknown, ask the user.',
  );
});

test('gather_ads says nothing about maxCredits at its deadline if the call had no maxCredits', async ({
  upstream,
  start,
}) => {
  let clock = 0;
  const server = await start({ timeoutMs: 45_000 }, { now: () => clock });
  const service = serveAds(upstream, 1000, () => 0);
  await server.call('search_ads', {});
  service.overrideResponse = () => {
    clock += 10_000;
    return undefined;
  };
  const { data } = await server.call('gather_ads', {});
  expect(data).toMatchObject({ stopped: 'deadline', next: expect.not.stringContaining('maxCredits') });
});

test('gather_ads fails and reports its charge if the API rejects the API key', async ({ upstream, server }) => {
  const service = serveAds(upstream, 300);
  service.interceptRequest = () => (service.searches.length < 2 ? undefined : respondWithError(401));
  const { error, text } = await server.call('gather_ads', { maxCredits: 100 });
  expect(error).toMatchObject({ kind: 'unauthorized', status: 401 });
  expect(service.chargedCredits).toBe(20);
  expect(text).toContain('Credits: 20 charged for 3 calls');
  const first = await (await server.connectAs('svc_live_other')).call('gather_ads', { maxCredits: 100 });
  expect(first.error).toMatchObject({ kind: 'unauthorized', status: 401 });
  expect(first.text).not.toContain('Credits:');
});

const serviceArbitrary = fc.record({
  ads: fc.integer({ min: 1, max: 330 }),
  /** Computes the total that the API states from the number of its ads and the number of listed ads. */
  found: fc.constantFrom<((ads: number, listed: number) => number)[]>(
    (_, listed) => listed,
    (_, listed) => listed + 1,
    (ads) => Math.ceil(ads / 2),
    (ads) => ads + 30,
    () => 0,
    ...Array(4).fill((ads: number) => ads),
  ),
  /** The API rejects limits below `smallest` or above `most`, and sends at most `largest` ads per page. */
  sizes: fc.constantFrom(
    { smallest: 1, most: 100, largest: 100 },
    { smallest: 1, most: 100, largest: 40 },
    { smallest: 25, most: 100, largest: 100 },
    { smallest: 25, most: 100, largest: 40 },
    { smallest: 1, most: 40, largest: 40 },
  ),
  cacheSeconds: fc.constantFrom(0, 900),
});

test('gather_ads reads all ads even if the API reports a wrong total', async ({ upstream, start }) => {
  await fc.assert(
    fc.asyncProperty(serviceArbitrary, async ({ ads, found, sizes: { smallest, most, largest }, cacheSeconds }) => {
      const server = await start({ cacheSeconds });
      const service = serveAds(upstream, ads);
      service.overrideResponse = ({ limit }) => {
        if (limit > most) return respondWithError(422, { message: `limit must be at most ${most}` });
        if (limit > 1 && limit < smallest)
          return respondWithError(422, { message: `limit must be at least ${smallest}` });
        return undefined;
      };
      const serve = service.answerSearch.bind(service);
      service.answerSearch = (body) => {
        const { limit = 20, ...search } = JSON.parse(body || '{}') as { limit?: number };
        return serve(JSON.stringify({ ...search, limit: limit > most ? limit : Math.min(limit, largest) }));
      };
      service.modifyResponse = (answer, { cursor = '0' }) => ({
        ...answer,
        totalHits: found(ads, Number(cursor) + answer.items.length),
      });
      await server.call('gather_ads', { ...noLimits, maxCredits: 0 });
      const before = service.searches.length;
      expect((await server.call('gather_ads', noLimits)).data).toMatchObject({ read: ads, complete: true });
      const pages = service.searches.slice(before);
      // A wrong total costs one extra page, and rejected page sizes cost up to three extra requests.
      const pageSize = most < 100 ? 25 : largest;
      expect(pages.length).toBeLessThanOrEqual(Math.ceil(ads / pageSize) + 3 + (most < 100 ? 3 : 0));
      const isTrue = found(ads, 0) === ads && found(ads, 1) === ads && smallest === 1;
      if (isTrue && cacheSeconds > 0)
        for (const { limit, cursor = '0' } of pages) expect(limit).toBeLessThanOrEqual(ads - Number(cursor));
      await server.close();
    }),
    { numRuns: 30 },
  );
});

test('gather_ads stops at the memory limit for the ads of one search', async ({ upstream, start }) => {
  const service = serveAds(upstream, 0);
  const server = await start({ cacheSeconds: 0 }, { datasets: new MemoryDatasetStore({ maxBytesEach: 8 * 2 ** 20 }) });
  // A single letter outside Latin-1 doubles the memory of the whole text.
  const unlisted = `ж${'x'.repeat(30_000)}`;
  service.ads = Array.from({ length: 260 }, (_, index) => createAd(index, { unlisted }));
  service.overrideResponse = ({ limit }) =>
    limit > 10 ? respondWithError(422, { message: 'limit is at most 10' }) : undefined;
  const { data, text } = await server.call('gather_ads', { maxCredits: 1000 });
  expect(data).toMatchObject({ stopped: 'maxAds', complete: false });
  expect(data).not.toHaveProperty('missing');
  expect(text).toMatch(/The dataset has room for 2\d\d ads of this gathering/);
  const storedCounts = await server.queryRows("SELECT count(*), count(json ->> 'unlisted') FROM ads");
  expect(storedCounts).toEqual([[data.read, data.read]]);
});

test('gather_ads stops when the searches of its argument split have listed 100,000 ads', async ({
  upstream,
  start,
}) => {
  const service = serveAds(upstream, 0);
  const server = await start({ cacheSeconds: 0, timeoutMs: 200_000 });
  service.ads = Array.from({ length: 3900 }, (_, index) => ({ id: createAd(index).id }));
  // Send pages ten times larger than requested, so that the test needs fewer calls.
  const serve = service.answerSearch.bind(service);
  service.answerSearch = (body) => {
    const { limit = 20, ...search } = JSON.parse(body) as { limit?: number };
    return serve(JSON.stringify({ ...search, limit: 10 * limit }));
  };
  const split = Array.from({ length: 30 }, (_, one) => ({ one }));
  const request = { split, maxAds: 10_000, maxCredits: 100_000 };
  const { data, text } = await server.call('gather_ads', request);
  expect(data).toMatchObject({ read: 3900, complete: false, stopped: 'maxAds' });
  expect(text).toContain('The dataset has room for 100,000 ads of this gathering, counting each part.');
  const { servedAdCount } = service;
  await server.call('gather_ads', request);
  expect(service.servedAdCount).toBe(servedAdCount);
  const completeGatherings = await server.queryRows('SELECT count(*) FROM gatherings WHERE read = 3900 AND complete');
  expect(completeGatherings).toEqual([[Math.floor(servedAdCount / 3900)]]);
});
