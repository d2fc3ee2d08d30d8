import { setTimeout as wait } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { type Behaviour, documented, json, paid, startUpstream } from '../support/faulty-upstream.ts';
import { gateOf } from '../support/gate.ts';
import { type Replica, startReplicas } from '../support/replicas.ts';
import type { Result } from '../support/server.ts';
import { describeEveryServer } from '../support/stores.ts';
import { uuidOf } from '../support/uuid-of.ts';

/** A list of ten pages, each of which costs a credit. */
const pages: Behaviour = (request, response, body = '{}') => {
  const { cursor = '0' } = JSON.parse(body) as { cursor?: string };
  const page = Number(cursor);
  const items = Array.from({ length: 10 }, (_, index) => ({ id: uuidOf(`ad ${page} ${index}`) }));
  const next = page < 9 ? String(page + 1) : null;
  json({ items, cursor: next, hasMore: next !== null }, { headers: paid(1) })(request, response);
};

describeEveryServer('over all replicas', (server) => {
  async function between(count: number, behaviour: Behaviour, args: string[] = []) {
    const upstream = await startUpstream(behaviour);
    onTestFinished(upstream.close);
    return { upstream, replicas: await startReplicas({ count, baseUrl: upstream.baseUrl, server, args }) };
  }

  test.each([1, 2, 3, 5])(
    'the same walk costs 10 credits on %i behind round robin, through restarts',
    async (count) => {
      const { upstream, replicas } = await between(count, pages);
      let charged = 0;
      for (let walk = 0; walk < 2; walk++) {
        let cursor: string | null | undefined;
        for (let page = 0; page < 10; page++) {
          const { data, text } = await replicas.call('search_ads', { limit: 10, ...(cursor && { cursor }) });
          expect(data.items, text).toHaveLength(10);
          charged += data.receipt.charged;
          cursor = data.cursor;
        }
        expect(cursor).toBeNull();
        if (walk === 0) await replicas.replace(0);
      }
      expect({ charged, requests: upstream.requests.length }).toEqual({ charged: 10, requests: 10 });
    },
    60_000,
  );

  test('one of many equal calls at once is sent, and the others get its answer at no charge', async () => {
    const gate = gateOf();
    const { upstream, replicas } = await between(3, async (request, response) => {
      await gate.opened;
      documented(request, response);
    });
    const calls = Array.from({ length: 30 }, () => replicas.call('get_ad', { adId: uuidOf('ad') }));
    await upstream.reached(1);
    gate.open();
    const results = await Promise.all(calls);
    expect(results.map(({ isError }) => isError)).not.toContain(true);
    expect(results.reduce((sum, { data }) => sum + data.receipt.charged, 0)).toBe(1);
    expect(upstream.requests).toHaveLength(1);
  });

  test('what is not kept is shared all the same with those who wait, and so is a failure that may be charged', async () => {
    const gate = gateOf();
    const { upstream, replicas } = await between(
      2,
      async (request, response) => {
        await gate.opened;
        if (request.url?.includes(uuidOf('broken'))) return void response.destroy();
        documented(request, response);
      },
      ['--cache-seconds', '0'],
    );
    const both = (adId: string) => replicas.all.map((replica) => replica.call('get_ad', { adId }));
    const answered = both(uuidOf('ad'));
    const failed = both(uuidOf('broken'));
    await upstream.reached(2);
    // Those who wait for another replica are counted at its claim.
    // Until the others wait for its answer.
    await wait(500);
    gate.open();
    expect((await Promise.all(answered)).map(({ data }) => data.receipt.charged).toSorted()).toEqual([0, 1]);
    for (const { error, text } of await Promise.all(failed)) {
      expect(error).toMatchObject({ kind: 'network', retryable: false });
      expect(text).toContain('It is unknown whether the service charged');
    }
    expect(upstream.requests).toHaveLength(2);
  });

  test.each(['900', '0'])(
    'items that are read after a write are not those of a read before it, with %s seconds of cache',
    async (seconds) => {
      const gate = gateOf();
      let isRead = false;
      const { upstream, replicas } = await between(
        2,
        async (request, response) => {
          const isFirst = !isRead && request.method === 'GET' && request.url?.includes('/items');
          if (isFirst) isRead = true;
          if (isFirst) await gate.opened;
          documented(request, response);
        },
        ['--cache-seconds', seconds],
      );
      const [one, other] = replicas.all as [Replica, Replica];
      const collection = { collectionId: uuidOf('collection'), itemType: 'ads' };
      const before = one.call('list_collection_items', collection);
      await upstream.reached(1);
      await other.call('add_collection_item', { ...collection, itemId: uuidOf('ad') });
      expect((await other.call('list_collection_items', collection)).data.receipt.charged).toBe(1);
      gate.open();
      await before;
      expect(upstream.requests).toHaveLength(3);
    },
    30_000,
  );

  test('a budget of 30 under 60 calls at once on two replicas is never exceeded, and nearly all of it is used', async () => {
    let charged = 0;
    const { upstream, replicas } = await between(
      2,
      (request, response) => {
        if (/\/ads\//.test(request.url ?? '')) charged++;
        setTimeout(() => documented(request, response), 5);
      },
      ['--credit-budget', '30', '--timeout-ms', '20000'],
    );
    const calls = Array.from({ length: 60 }, (_, index) => replicas.call('get_ad', { adId: uuidOf(`ad ${index}`) }));
    const results = await Promise.all(calls);
    const kinds = (results as Result[]).map(({ error }) => error?.kind ?? 'answered');
    expect(new Set(kinds)).toEqual(new Set(['answered', 'credit_budget']));
    expect(charged).toBeLessThanOrEqual(30);
    expect(charged).toBeGreaterThanOrEqual(28);
    upstream.does(documented);
    for (const replica of replicas.all) {
      expect((await replica.call('get_credits')).data.thisServer).toMatchObject({ charged, budget: 30 });
    }
  });
});
