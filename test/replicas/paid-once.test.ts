import { expect, test } from 'vitest';
import { documented } from '../support/faulty-upstream.ts';
import { replicasForAll } from '../support/replicas.ts';
import { describeEveryServer } from '../support/stores.ts';
import { uuidOf } from '../support/uuid-of.ts';

describeEveryServer('two replicas that cache nothing', (server) => {
  const args = ['--cache-seconds', '0', '--credit-budget', '30'];
  const fleet = replicasForAll({ count: 2, server, args });

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
