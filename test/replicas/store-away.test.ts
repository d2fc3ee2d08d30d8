import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import {
  creditStatus,
  documented,
  json,
  refusal,
  startUpstream,
  type Upstream,
  usage,
} from '../support/faulty-upstream.ts';
import { type Replica, startReplicas } from '../support/replicas.ts';
import { describeEveryServer } from '../support/stores.ts';
import { uuidOf } from '../support/uuid-of.ts';

const ad = (name: string) => ({ adId: uuidOf(name) });
const readiness = async (replica: Replica) => JSON.parse((await replica.get('/readyz')).text).status;

describeEveryServer('replicas', (server) => {
  let upstream: Upstream;
  beforeEach(async () => {
    upstream = await startUpstream(documented);
    onTestFinished(upstream.close);
  });
  afterEach(() => server.restart());
  const startTwo = async (args: string[] = []) => {
    const { all } = await startReplicas({ count: 2, baseUrl: upstream.baseUrl, server, args });
    return [all[0], all[1]] as [Replica, Replica];
  };
  const adsAsked = () => upstream.requests.filter(({ path }) => path.includes('/ads/')).length;

  test('with a budget refuse paid calls while the store is away, say so, and heal by themselves', async () => {
    const [one, other] = await startTwo(['--credit-budget', '10', '--metrics']);
    for (const name of ['a', 'b', 'c']) await one.call('get_ad', ad(name));
    await server.kill();
    const refused = await one.call('get_ad', ad('d'));
    expect(refused.error).toEqual({ kind: 'unavailable', retryable: true });
    expect(refused.text).toContain('Nothing was sent, nothing was charged.');
    expect(refused.text).not.toMatch(/redis|postgres|127\.0\.0\.1|:\d{4}/i);
    expect((await other.call('get_credits')).error).toMatchObject({ kind: 'unavailable' });
    expect((await other.call('whoami')).isError).toBe(false);
    await expect.poll(() => readiness(one)).toBe('state unavailable');
    expect((await one.get('/readyz')).status).toBe(503);
    expect((await one.get('/healthz')).status).toBe(200);
    expect((await one.get('/metrics')).text).toContain('ad_library_state_up 0');

    await server.restart();
    await expect
      .poll(async () => [await readiness(one), await readiness(other)], { timeout: 10_000 })
      .toEqual(['ready', 'ready']);
    expect((await one.get('/metrics')).text).toContain('ad_library_state_up 1');
    expect((await other.call('get_credits')).data.thisServer).toMatchObject({ charged: 3, budget: 10 });
    const { data } = await other.call('get_ad', ad('d'));
    expect(data.receipt.charged).toBe(1);
    expect(adsAsked()).toBe(4);
    for (const { process } of [one, other]) {
      expect(process.stderr()).toContain('the shared state cannot be reached');
      expect(process.stderr()).not.toContain('svc_live');
    }
  });

  test('without a budget go on without it, and count what was charged once it is back', async () => {
    const [one, other] = await startTwo();
    await one.call('get_ad', ad('a'));
    server.pause();
    for (const name of ['a', 'b', 'c']) expect((await one.call('get_ad', ad(name))).data.receipt.charged).toBe(1);
    server.resume();
    await expect
      .poll(async () => (await other.call('get_credits')).data.thisServer, { timeout: 15_000 })
      .toMatchObject({ charged: 4 });
  });

  test('start without the store, and share everything once it comes', async () => {
    await server.kill();
    const [one, other] = await startTwo(['--credit-budget', '10']);
    expect(await readiness(one)).toBe('state unavailable');
    expect((await one.call('get_ad', ad('a'))).error).toMatchObject({ kind: 'unavailable' });
    await server.restart();
    await expect
      .poll(async () => [await readiness(one), await readiness(other)], { timeout: 10_000 })
      .toEqual(['ready', 'ready']);
    await one.call('get_ad', ad('a'));
    expect((await other.call('get_ad', ad('a'))).data.receipt).toMatchObject({ charged: 0, cached: true });
  });

  test('say that a key was rejected while the store is away', async () => {
    const [one] = await startTwo();
    await server.kill();
    upstream.does(refusal(401));
    expect((await one.call('whoami')).error).toMatchObject({ kind: 'unauthorized' });
    expect((await one.call('get_ad', ad('a'))).error).toMatchObject({ kind: 'unauthorized' });
  });

  test('know of a full usage window that another has met', async () => {
    const [one, other] = await startTwo();
    upstream.does(refusal(429));
    upstream.credits = json(creditStatus({ ...usage(400), isLimitReached: true, limitType: 'hourly' }));
    expect((await one.call('get_ad', ad('a'))).error).toMatchObject({ kind: 'usage_limit' });
    const sent = upstream.requests.length;
    const { error, text } = await other.call('get_ad', ad('b'));
    expect(error).toMatchObject({ kind: 'usage_limit' });
    expect(text).toContain('Nothing was sent');
    expect(upstream.requests).toHaveLength(sent);
  });

  test('count unknown keys of an address together', async () => {
    const [one, other] = await startTwo(['--refusals-per-minute', '2']);
    upstream.does(refusal(401));
    for (const [index, replica] of [one, other].entries())
      expect((await replica.call('whoami', {}, `svc_live_guess${index}`)).error).toMatchObject({
        kind: 'unauthorized',
      });
    await expect(other.call('whoami', {}, 'svc_live_third')).rejects.toThrow();
    upstream.does(documented);
  });

  test('keep nothing in clear, and nothing without an end', async () => {
    const [one] = await startTwo();
    await one.call('get_ad', ad('a'));
    const everything = server.everything();
    expect(everything.length).toBeGreaterThan(1);
    for (const { name, value, left } of everything) {
      expect(name).toMatch(/^ad-library:(2:)?(probe$|\{[\w-]{22}\}(:[\w-]{22}|:[\w-]{36}|:[a-z-]+)+( [\w-]+)?$)/);
      expect(`${name} ${value}`).not.toMatch(/svc_live|6a1f7e0c|headline|Try it/);
      expect(left, name).toBeGreaterThan(0);
    }
  });
});
