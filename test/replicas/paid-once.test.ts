import { expect, test } from 'vitest';
import { type Behaviour, documented } from '../support/faulty-upstream.ts';
import { gateOf } from '../support/gate.ts';
import { replicasForAll } from '../support/replicas.ts';
import { describeEveryServer } from '../support/stores.ts';
import { uuidOf } from '../support/uuid-of.ts';

describeEveryServer('two replicas that cache nothing', (server) => {
  const args = ['--cache-seconds', '0', '--credit-budget', '30'];
  const fleet = replicasForAll({ count: 2, server, args });
  const claims = () =>
    server
      .everything()
      .filter(({ name }) => name.includes(':claim:'))
      .map(({ value }) => value)
      .join();

  test.each(['answered', 'broken off'])(
    'share a call that is %s with those who wait for it, and send it once',
    async (how) => {
      const gate = gateOf();
      const behaviour: Behaviour = async (request, response) => {
        await gate.opened;
        if (how === 'answered') documented(request, response);
        else response.destroy();
      };
      const { upstream, replicas } = fleet.tenant(behaviour);
      const [one, other] = replicas.map((replica) => () => replica.call('get_ad', { adId: uuidOf('ad') }));
      const first = one?.();
      await upstream.reached(1);
      const before = claims();
      const second = other?.();
      // It notes in the claim that it waits.
      await expect.poll(claims).not.toBe(before);
      gate.open();
      const results = await Promise.all([first, second]);
      if (how === 'answered') expect(results.map((result) => result?.data.receipt.charged)).toEqual([1, 0]);
      else
        for (const result of results) {
          expect(result?.error).toMatchObject({ kind: 'network', retryable: false });
          expect(result?.text).toContain('It is unknown whether the service charged');
        }
      expect(upstream.requests.filter(({ path }) => path.includes('/ads/'))).toHaveLength(1);
    },
  );

  test('never exceed a budget of 30 under 60 calls at once, and use nearly all of it', async () => {
    let charged = 0;
    const { replicas, call } = fleet.tenant((request, response) => {
      if (/\/ads\//.test(request.url ?? '')) charged++;
      setTimeout(() => documented(request, response), 5);
    });
    const calls = Array.from({ length: 60 }, (_, index) => call('get_ad', { adId: uuidOf(`ad ${index}`) }));
    const kinds = (await Promise.all(calls)).map(({ error }) => error?.kind ?? 'answered');
    expect(new Set(kinds)).toEqual(new Set(['answered', 'credit_budget']));
    expect(charged).toBeLessThanOrEqual(30);
    expect(charged).toBeGreaterThanOrEqual(28);
    for (const replica of replicas)
      expect((await replica.call('get_credits')).data.thisServer).toMatchObject({ charged, budget: 30 });
  });
});
