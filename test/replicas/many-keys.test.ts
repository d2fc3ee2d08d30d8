import { setTimeout as wait } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { type Behaviour, json, nameOf, paid, startUpstream } from '../support/faulty-upstream.ts';
import { startReplicas } from '../support/replicas.ts';
import { describeEveryServer } from '../support/stores.ts';
import { uuidOf } from '../support/uuid-of.ts';

const adsOfKey = 30;
const sql = 'SELECT headline, count(*) AS ads FROM ads GROUP BY headline';

const identityOf = (name: string) => ({
  authenticated: true,
  authSource: 'api_key',
  user: { userId: uuidOf(name), billingUserId: uuidOf(name), name, emailAddress: null, planId: 'pro' },
  apiKey: { id: uuidOf(name), name, keyPrefix: 'svc' },
  oauthClientId: null,
});

/** A service whose every answer names the key it is for. */
const named: Behaviour = (request, response, body = '') => {
  const name = nameOf((request.headers.authorization ?? '').replace('Bearer ', ''));
  if (!request.url?.includes('search')) return json(identityOf(name))(request, response);
  const { limit = 20, cursor = '0' } = JSON.parse(body || '{}') as { limit?: number; cursor?: string };
  const [start, end] = [Number(cursor), Math.min(Number(cursor) + limit, adsOfKey)];
  const items = Array.from({ length: end - start }, (_, index) => ({
    id: uuidOf(`${name} ${start + index}`),
    headline: name,
  }));
  const more = { cursor: end < adsOfKey ? String(end) : null, hasMore: end < adsOfKey, totalHits: adsOfKey };
  json({ items, ...more }, { headers: paid(1) })(request, response);
};

describeEveryServer('many keys on several replicas', (server) => {
  test('60 keys with 10 calls each get their own answers, and pay for each page once', async () => {
    const upstream = await startUpstream(named);
    onTestFinished(upstream.close);
    const replicas = await startReplicas({ count: 3, baseUrl: upstream.baseUrl, server });
    const keys = Array.from({ length: 60 }, (_, index) => `svc_live_key_${String(index).padStart(2, '0')}`);
    const charged = await Promise.all(
      keys.map(async (key, index) => {
        const name = nameOf(key);
        let sum = 0;
        const call = async (tool: string, args: object) => {
          let result = await replicas.call(tool, args, key);
          // Statements for SQL are bounded in each process.
          for (; result.error?.kind === 'busy'; result = await replicas.call(tool, args, key)) await wait(50);
          expect(result.isError, result.text).toBe(false);
          sum += result.data.receipt.charged ?? 0;
          return result.data;
        };
        const own = (items: readonly Record<string, unknown>[]) =>
          expect(items.map(({ headline }) => headline)).toEqual(items.map(() => name));
        for (let walk = 0; walk < 2; walk++) {
          const first = await call('search_ads', { filters: { query: 'tea' }, limit: 15 });
          own(first.items);
          own((await call('search_ads', { cursor: first.cursor })).items);
        }
        await call('gather_ads', { filters: { query: 'coffee' }, maxCredits: 10 });
        await call('gather_ads', { filters: { query: 'coffee' }, maxCredits: 10 });
        for (const number of [3, 14, 29])
          own([(await call('get_ad', { adId: uuidOf(`${name} ${number}`), seen: true })).ad]);
        expect(JSON.stringify(await call('whoami', {}))).toContain(name);
        // Tables for SQL take long to fill, so that only some keys ask for them.
        if (index % 12 === 0) expect((await call('query_ads', { sql })).rows).toEqual([[name, adsOfKey]]);
        return sum;
      }),
    );
    expect(new Set(charged)).toEqual(new Set([3]));
    expect(upstream.requests.filter(({ path }) => path.includes('search'))).toHaveLength(3 * keys.length);
  }, 120_000);
});
