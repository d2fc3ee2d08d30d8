import fc from 'fast-check';
import { expect } from 'vitest';
import { type AdService, serveAds } from '../../support/ad-service.ts';
import { creditStatus, delays, faults, json, refusal, usage } from '../../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../../support/fixtures.ts';
import { gateOf } from '../../support/gate.ts';

const test = freshUpstreamTest();
test.beforeEach(({ upstream }) => {
  upstream.credits = undefined;
});

const all = { maxCredits: 1000, maxAds: 1000 };

test.for<[string, (service: AdService) => void]>([
  [
    'repeats its cursor for ever',
    (service) => {
      service.change = (answer) => ({ ...answer, cursor: '100', hasMore: true });
    },
  ],
  [
    'sends empty pages and says there are more',
    (service) => {
      service.change = (answer, { number }) => ({ ...answer, items: [], cursor: `${number}`, hasMore: true });
    },
  ],
  [
    'sends the same ads on every page',
    (service) => {
      service.change = (answer, { number }) => ({
        ...answer,
        items: service.ads.slice(0, 5),
        cursor: `${number}`,
        hasMore: true,
      });
    },
  ],
  [
    'announces more without a cursor',
    (service) => {
      service.change = (answer) => ({ ...answer, cursor: null, hasMore: true });
    },
  ],
] as const)('a service that %s is not paid for long', async ([, spoil], { upstream, server }) => {
  const service = serveAds(upstream, 1000);
  spoil(service);
  const { data, isError, error } = await server.call('gather_ads', all);
  expect(service.searches.length).toBeLessThanOrEqual(5);
  if (isError) expect(error).toMatchObject({ kind: 'unexpected_response' });
  else expect(data).toMatchObject({ complete: false, stopped: 'error', error: 'unexpected_response' });
});

test('an old cursor that the service no longer takes stops it, and nothing is lost or paid', async ({
  upstream,
  server,
}) => {
  const service = serveAds(upstream, 300);
  await server.call('gather_ads', { ...all, maxAds: 100 });
  service.instead = ({ cursor }) => (cursor ? refusal(422, { message: 'The cursor has expired.' }) : undefined);
  const { data, text } = await server.call('gather_ads', all);
  expect(data).toMatchObject({
    read: 100,
    complete: false,
    stopped: 'error',
    error: 'invalid_request',
    receipt: { charged: 0 },
  });
  expect(text).toContain('The cursor has expired.');
  expect(text).toContain('fresh: true, which is charged again');
  service.instead = () => undefined;
  expect((await server.call('gather_ads', { ...all, fresh: true })).data).toMatchObject({ read: 300, complete: true });
});

test('a full usage window stops it with what was read; later it goes on at no double charge', async ({
  upstream,
  server,
}) => {
  const service = serveAds(upstream, 300);
  upstream.credits = json(creditStatus(usage(400)));
  service.instead = ({ number }) => (number === 3 ? refusal(429) : undefined);
  const { data, text } = await server.call('gather_ads', all);
  expect(data).toMatchObject({
    read: 200,
    stopped: 'usage_limit',
    complete: false,
    receipt: { charged: 20, calls: 3 },
  });
  expect(text).toContain('hourly window 400 of 400');
  upstream.credits = json(creditStatus(usage(1)));
  await server.call('get_credits');
  expect((await server.call('gather_ads', all)).data).toMatchObject({
    read: 300,
    complete: true,
    receipt: { charged: 10 },
  });
  expect(service.charged).toBe(30);
});

test.for([
  ['payment_required', refusal(402)],
  ['unavailable', refusal(500)],
  ['network', faults.resets],
  ['unexpected_response', faults['sends a web page']],
] as const)(
  'what was read stays after %s, and is an error only where nothing was',
  async ([kind, fault], { upstream, server }) => {
    const service = serveAds(upstream, 300);
    service.instead = ({ number }) => (number === 2 ? fault : undefined);
    const { data, text } = await server.call('gather_ads', all);
    expect(data).toMatchObject({ read: 100, stopped: 'error', error: kind });
    const isUnknown = kind !== 'payment_required';
    expect(data.receipt).toMatchObject({ charged: isUnknown ? null : 10, calls: 2 });
    if (isUnknown) expect(text).toContain('at least 10 charged for 2 calls');
    service.instead = () => fault;
    const nothing = await server.call('gather_ads', { ...all, filters: { a: 1 } });
    expect(nothing.error).toMatchObject({ kind });
  },
);

test('is back before its deadline with what was read, which is not paid again', async ({ upstream, start }) => {
  const server = await start({ timeoutMs: 4000 });
  const service = serveAds(upstream, 300);
  service.instead = ({ number }) => (number === 2 ? delays.hangs : undefined);
  const { data } = await server.call('gather_ads', all);
  expect(data).toMatchObject({ read: 100, stopped: 'deadline', complete: false, receipt: { charged: null, calls: 2 } });
  // The next call may still join the one that hangs.
  await server.call('gather_ads', all);
  expect((await server.call('gather_ads', all)).data).toMatchObject({ read: 300, complete: true });
  expect(service.charged).toBe(30);
});

test('begins no page that may not be back in time', async ({ upstream, start }) => {
  let clock = 0;
  const server = await start({ timeoutMs: 45_000 }, { now: () => clock });
  const service = serveAds(upstream, 1000);
  service.instead = () => {
    clock += 10_000;
    return undefined;
  };
  const { data, text } = await server.call('gather_ads', all);
  expect(data).toMatchObject({ read: 300, stopped: 'deadline', receipt: { charged: 30 } });
  expect(text).toContain('Time was short');
});

test('a service that hangs from the start is an error', async ({ upstream, start }) => {
  const server = await start({ timeoutMs: 500 });
  serveAds(upstream, 10).instead = () => delays.hangs;
  expect((await server.call('gather_ads', all)).error).toMatchObject({ kind: 'timeout' });
});

test('a page size that the service refuses is made smaller', async ({ upstream, server }) => {
  const service = serveAds(upstream, 70);
  service.instead = ({ limit }) =>
    limit > 20 ? refusal(422, { message: 'limit must be between 1 and 20' }) : undefined;
  expect((await server.call('gather_ads', all)).data).toMatchObject({
    read: 70,
    complete: true,
    receipt: { charged: 7 },
  });
  expect(service.searches.map(({ limit }) => limit)).toEqual([100, 50, 20, 20, 20, 10]);
});

test('a key that is rejected in the middle ends it, and the error names what was charged', async ({
  upstream,
  server,
}) => {
  const service = serveAds(upstream, 300);
  service.before = () => (service.searches.length < 2 ? undefined : refusal(401));
  const { error, text } = await server.call('gather_ads', { maxCredits: 100 });
  expect(error).toMatchObject({ kind: 'unauthorized', status: 401 });
  expect(service.charged).toBe(20);
  expect(text).toContain('Credits: 20 charged for 3 calls');
});

test('an answer that was asked for before the key was rejected does not accept it again', async ({
  upstream,
  server,
}) => {
  const service = serveAds(upstream, 30);
  await server.call('search_ads', { limit: 3 });
  const gate = gateOf();
  upstream.does(async (request, response, body) => {
    const isEarly = body?.includes('"limit":1') === true;
    if (isEarly) await gate.opened;
    service.before = () => (isEarly ? undefined : refusal(401));
    service.behaviour(request, response, body);
  });
  const early = server.call('search_ads', { limit: 1 });
  await upstream.reached(1);
  expect((await server.call('search_ads', { limit: 2 })).error).toMatchObject({ kind: 'unauthorized' });
  gate.open();
  expect((await early).isError).toBe(false);
  expect((await server.call('search_ads', { limit: 3 })).error).toMatchObject({ kind: 'unauthorized' });
});

const aFault = fc.record({
  ads: fc.integer({ min: 1, max: 330 }),
  /** What the service says there is, with the ads that it has listed by then. */
  found: fc.constantFrom<((ads: number, listed: number) => number)[]>(
    (_, listed) => listed,
    (_, listed) => listed + 1,
    (ads) => Math.ceil(ads / 2),
    (ads) => ads + 30,
    (ads) => ads,
    () => 0,
  ),
  smallest: fc.constantFrom(1, 1, 25),
  largest: fc.constantFrom(100, 100, 40),
  cacheSeconds: fc.constantFrom(0, 900),
});

test('whatever a service says there is, all ads are read, and a last page is asked for no more', {
  timeout: 120_000,
}, async ({ upstream, start }) => {
  await fc.assert(
    fc.asyncProperty(aFault, async ({ ads, found, smallest, largest, cacheSeconds }) => {
      const server = await start({ cacheSeconds });
      const service = serveAds(upstream, ads);
      service.instead = ({ limit }) =>
        limit < smallest && limit > 1 ? refusal(422, { message: `limit must be at least ${smallest}` }) : undefined;
      const serve = service.answer.bind(service);
      service.answer = (body) => {
        const { limit = 20, ...search } = JSON.parse(body || '{}') as { limit?: number };
        return serve(JSON.stringify({ ...search, limit: Math.min(limit, largest) }));
      };
      service.change = (answer, { cursor = '0' }) => ({
        ...answer,
        totalHits: found(ads, Number(cursor) + answer.items.length),
      });
      await server.call('gather_ads', { ...all, maxCredits: 0 });
      const before = service.searches.length;
      expect((await server.call('gather_ads', all)).data).toMatchObject({ read: ads, complete: true });
      const pages = service.searches.slice(before);
      // One page more for a total that is not true, and one for a size that is refused.
      expect(pages.length).toBeLessThanOrEqual(Math.ceil(ads / largest) + 3);
      const isTrue = found(ads, 0) === ads && found(ads, 1) === ads && smallest === 1;
      if (isTrue && cacheSeconds > 0)
        for (const { limit, cursor = '0' } of pages) expect(limit).toBeLessThanOrEqual(ads - Number(cursor));
      await server.close();
    }),
    { numRuns: 40 },
  );
});
