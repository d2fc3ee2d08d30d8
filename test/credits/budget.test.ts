import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { documented, json, paid, startUpstream, type Upstream } from '../support/faulty-upstream.ts';
import { gateOf } from '../support/gate.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { startService, type TestService } from '../support/service.ts';
import { uuidOf } from '../support/uuid-of.ts';

let service: TestService;
let upstream: Upstream;
/** Moved on so that no usage window fills up. */
let hours = 0;
let server: TestServer | undefined;
beforeAll(async () => {
  service = await startService({ now: () => Date.now() + hours * 3_600_000 });
  upstream = await startUpstream();
});
afterEach(async () => {
  await server?.close();
  server = undefined;
});
afterAll(async () => {
  await service.close();
  await upstream.close();
});

const withBudget = async (creditBudget: number, apiKey = service.createKey()) => {
  server = await startServer({ config: { baseUrl: service.baseUrl, apiKey, creditBudget, cacheSeconds: 0 } });
  service.requests.length = 0;
  return server;
};
const spentOf = async (of: TestServer) => (await of.call('get_credits')).data.thisServer;

describe('a budget', () => {
  test('refuses a call that would exceed it, with what was spent and how to raise it', async () => {
    const { call } = await withBudget(4);
    expect((await call('search_ads', { limit: 10 })).isError).toBe(false);
    expect((await call('search_ads', { limit: 20 })).isError).toBe(false);
    const { text, error } = await call('search_ads', { limit: 20, filters: { countries: ['DE'] } });
    expect(error).toEqual({ kind: 'credit_budget', retryable: false });
    expect(text).toContain('Budget of 4 credits: 3 spent; this call is expected to cost 2. A smaller limit may fit.');
    expect(text).toContain('AD_LIBRARY_CREDIT_BUDGET');
    expect(text).toContain('Nothing was sent, nothing was charged.');
    expect(service.paid()).toBe(2);
    expect((await call('search_ads', { limit: 10 })).isError).toBe(false);
    expect((await call('search_ads', { limit: 10 })).error?.kind).toBe('credit_budget');
  });

  test('of zero allows free calls only', async () => {
    const { call } = await withBudget(0);
    for (const [tool, args] of [
      ['search_ads', {}],
      ['get_page', { pageId: '1' }],
    ] as const) {
      expect((await call(tool, args)).error?.kind).toBe('credit_budget');
    }
    for (const tool of ['whoami', 'get_account', 'get_credits', 'list_collections']) {
      expect((await call(tool)).isError).toBe(false);
    }
    expect(service.paid()).toBe(0);
  });

  test('does not advise a smaller limit where there is none', async () => {
    upstream.does(json({ id: 'x' }, { headers: paid(2) }));
    server = await startServer({ config: { baseUrl: upstream.baseUrl, apiKey: 'svc_live_budget', creditBudget: 3 } });
    await server.call('get_ad', { adId: uuidOf('x') });
    const { text } = await server.call('get_ad', { adId: uuidOf('y') });
    expect(text).toContain('this call is expected to cost 2.');
    expect(text).not.toContain('smaller limit');
  });

  test('lets the first call of an operation go alone, as its price is unknown', async () => {
    const gate = gateOf();
    let under = 0;
    let most = 0;
    upstream.does((request, response) => {
      if (!request.url?.includes('/ads/')) return documented(request, response);
      most = Math.max(most, ++under);
      void gate.opened.then(() => {
        under--;
        documented(request, response);
      });
    });
    server = await startServer({ config: { baseUrl: upstream.baseUrl, apiKey: 'svc_live_alone', creditBudget: 50 } });
    const calls = [1, 2, 3, 4].map((number) => server?.call('get_ad', { adId: uuidOf(`ad-${number}`) }));
    await upstream.reached(1);
    // What is not held back overtakes it, there and back.
    await server.call('whoami');
    await server.call('whoami');
    expect(most).toBe(1);
    gate.open();
    await Promise.all(calls);
    expect(upstream.requests.filter(({ path }) => path.includes('/ads/'))).toHaveLength(4);
  });

  test('does not hold up free calls while one goes alone', async () => {
    upstream.does((request, response) => {
      if (request.url !== '/v1/ads/search') documented(request, response);
    });
    server = await startServer({
      config: { baseUrl: upstream.baseUrl, apiKey: 'svc_live_free', creditBudget: 5, timeoutMs: 2000 },
    });
    const leave = new AbortController();
    const hanging = server.call('search_ads', {}, { signal: leave.signal }).catch(() => 'left');
    await upstream.reached(1);
    expect((await server.call('whoami')).isError).toBe(false);
    leave.abort();
    expect(await hanging).toBe('left');
  });

  test('holds up no call of an operation that was seen to be free while another hangs', async () => {
    upstream.does(documented, () => {}, documented);
    server = await startServer({
      config: { baseUrl: upstream.baseUrl, apiKey: 'svc_live_hanging', creditBudget: 5, timeoutMs: 2000 },
    });
    await server.call('list_collections');
    const leave = new AbortController();
    const hanging = server.call('list_collections', {}, { signal: leave.signal }).catch(() => 'left');
    await upstream.reached(2);
    expect((await server.call('list_collections')).isError).toBe(false);
    leave.abort();
    expect(await hanging).toBe('left');
  });

  test('holds saves, which may be charged, though saving what was there already was free', async () => {
    const saved = (added: boolean) =>
      json({ itemType: 'ads', itemId: uuidOf('x'), added }, { headers: paid(added ? 3 : 0) });
    upstream.does(saved(false), saved(true));
    server = await startServer({ config: { baseUrl: upstream.baseUrl, apiKey: 'svc_live_saves', creditBudget: 10 } });
    const save = (item: string) =>
      server?.call('add_collection_item', { collectionId: uuidOf('c'), itemType: 'ads', itemId: uuidOf(item) });
    await save('there');
    const results = await Promise.all(Array.from({ length: 10 }, (_, index) => save(`${index}`)));
    expect(results.filter((result) => result?.isError === false)).toHaveLength(3);
  });

  test('waits for a call that goes alone only until the deadline of the waiting call', async () => {
    upstream.does(() => {});
    server = await startServer({
      config: { baseUrl: upstream.baseUrl, apiKey: 'svc_live_wait', creditBudget: 5, timeoutMs: 200 },
    });
    const started = performance.now();
    const results = await Promise.all([1, 2, 3].map((limit) => server?.call('search_ads', { limit })));
    expect(results.map((result) => result?.error?.kind)).toEqual(['timeout', 'timeout', 'timeout']);
    expect(performance.now() - started).toBeLessThan(1000);
  });

  test('belongs to one key: another key has its own', async () => {
    const mine = await withBudget(1);
    const other = await mine.as(service.createKey());
    await mine.call('search_ads', { limit: 5 });
    expect((await mine.call('search_ads', { limit: 4 })).error?.kind).toBe('credit_budget');
    expect((await other.call('search_ads', { limit: 5 })).isError).toBe(false);
  });
});

const paidTools = ['search_ads', 'search_pages', 'get_ad', 'get_page', 'list_collection_items'] as const;

/** What a session does: calls of several prices, some at once, some cancelled. */
const step = fc.record({
  tool: fc.constantFrom(...paidTools),
  limit: fc.integer({ min: 1, max: 100 }),
  pick: fc.nat(40),
  cancel: fc.boolean(),
});
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

test('once prices are known, concurrent calls never exceed the budget, and the ledger agrees', async () => {
  const browse = await startServer({ config: { baseUrl: service.baseUrl, apiKey: service.apiKey } });
  const idsOf = async (tool: string, field: string) =>
    (await browse.call(tool, { limit: 41, detail: 'full' })).data.items.map((item) => item[field]);
  const ads = await idsOf('search_ads', 'id');
  const pages = await idsOf('search_pages', 'pageId');
  const collections = (await browse.call('list_collections')).data.items;
  await browse.close();
  const demoKey = service.library.keys.list().find(({ name }) => name === 'Demo key')?.id ?? '';
  const collectionId = collections.find(({ adCount }) => adCount >= 20)?.id;
  const argsOf = ({ tool, limit, pick }: Step) =>
    tool === 'get_ad'
      ? { adId: ads[pick % ads.length] }
      : tool === 'get_page'
        ? { pageId: pages[pick % pages.length] }
        : tool === 'list_collection_items'
          ? { collectionId, itemType: 'ads', limit }
          : { limit };

  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(step, { maxLength: 8 }), { maxLength: 4 }),
      fc.integer({ min: 5, max: 30 }),
      async (rounds, more) => {
        // Two sizes of each list, and one of each item, teach the prices: 11 credits.
        const budget = 11 + more;
        // Its own account, but the collections are those of the demo's.
        hours++;
        const key = service.library.keys.create({ accountOf: demoKey }).key;
        const before = await creditsOf(key);
        const own = await startServer({
          config: { baseUrl: service.baseUrl, apiKey: key, creditBudget: budget, cacheSeconds: 0 },
        });
        for (const tool of paidTools)
          for (const limit of tool.startsWith('get') ? [1] : [10, 20]) {
            const taught = await own.call(tool, argsOf({ tool, limit, pick: 0, cancel: false }));
            expect(taught.isError).toBe(false);
          }
        for (const round of rounds) {
          await Promise.allSettled(
            round.map(({ cancel, ...asked }) => {
              const caller = new AbortController();
              const call = own.call(asked.tool, argsOf({ ...asked, cancel }), { signal: caller.signal });
              if (cancel) setImmediate(() => caller.abort());
              return call;
            }),
          );
        }
        const { charged, uncertain = 0 } = await spentOf(own);
        const really = before - (await creditsOf(key));
        await own.close();
        expect(really).toBeLessThanOrEqual(budget);
        expect(charged).toBeLessThanOrEqual(really);
        expect(charged + uncertain).toBeGreaterThanOrEqual(really);
      },
    ),
    { numRuns: 25 },
  );
});

/** The library's own books. */
async function creditsOf(key: string): Promise<number> {
  const answer = await fetch(`${service.baseUrl}/v1/credits`, { headers: { authorization: `Bearer ${key}` } });
  return ((await answer.json()) as { credits: number }).credits;
}
