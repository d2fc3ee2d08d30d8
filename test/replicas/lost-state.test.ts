import { expect, onTestFinished, test } from 'vitest';
import { documented, startUpstream } from '../support/faulty-upstream.ts';
import { run } from '../support/process.ts';
import { type Replica, replicaSecret, startReplicas } from '../support/replicas.ts';
import { describeEveryServer } from '../support/stores.ts';
import { uuidOf } from '../support/uuid-of.ts';

const ad = (name: string) => ({ adId: uuidOf(name) });
const readiness = async (replica: Replica) => JSON.parse((await replica.get('/readyz')).text).status;
const wentBack = 'state went back in time';

describeEveryServer('a state that was lost', (server) => {
  const accept = () => {
    const env = { AD_LIBRARY_STATE_SECRET: replicaSecret };
    return run(['state', 'accept', '--state-url', server.url], { env });
  };

  async function between(count: number) {
    const upstream = await startUpstream(documented);
    onTestFinished(upstream.close);
    const start = async (number: number) =>
      (await startReplicas({ count: number, baseUrl: upstream.baseUrl, server, args: ['--credit-budget', '3'] })).all;
    const paid = () => upstream.requests.filter(({ path }) => path.includes('/ads/')).length;
    return { replicas: await start(count), start, paid };
  }

  const assertClosed = async (replica: Replica | undefined) => {
    const { error, text } = (await replica?.call('get_ad', ad('another'))) ?? {};
    expect(error).toMatchObject({ kind: 'unavailable' });
    expect(text).toContain('ad-library-mcp state accept');
    expect(text).toContain('Nothing was sent, nothing was charged.');
  };

  test.each(['everything', 'what came since a copy'])(
    'after %s is lost, no replica pays, also after a restart of all, until it is accepted',
    async (lost) => {
      const { replicas, start, paid } = await between(2);
      const [one, other] = replicas as [Replica, Replica];
      await one.call('get_ad', ad('before'));
      const restore = server.copy();
      for (const name of ['a', 'b']) await one.call('get_ad', ad(name));
      expect((await other.call('get_ad', ad('c'))).error).toMatchObject({ kind: 'credit_budget' });
      if (lost === 'everything') server.clear();
      else restore();
      await assertClosed(one);
      await assertClosed(other);
      expect((await other.call('whoami')).isError).toBe(false);
      expect(await readiness(other)).toBe(wentBack);
      expect((await one.get('/readyz')).status).toBe(503);
      expect(one.process.stderr()).toMatch(/"level":"error".*the shared state went back in time/);

      await Promise.all([one.kill(), other.kill()]);
      const [next] = await start(1);
      await assertClosed(next);
      expect(await readiness(next as Replica)).toBe(wentBack);
      expect(paid()).toBe(3);

      const { code, stdout } = await accept();
      expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining('Budgets are open again.') });
      expect(stdout).toContain(lost === 'everything' ? 'was found empty' : 'was found to be an earlier copy');
      await expect.poll(() => readiness(next as Replica), { timeout: 5000 }).toBe('ready');
      expect((await next?.call('get_ad', ad('another')))?.data.receipt).toMatchObject({ charged: 1 });
      expect((await accept()).stdout).toContain('It did not go back in time');
    },
    60_000,
  );

  test('in the middle of paid calls lets a budget be exceeded by nobody', async () => {
    const upstream = await startUpstream((request, response) => {
      setTimeout(() => documented(request, response), 20);
    });
    onTestFinished(upstream.close);
    const args = ['--credit-budget', '30', '--timeout-ms', '20000'];
    const replicas = await startReplicas({ count: 2, baseUrl: upstream.baseUrl, server, args });
    const paid = () => upstream.requests.filter(({ path }) => path.includes('/ads/')).length;
    const calls = Array.from({ length: 60 }, (_, index) => replicas.call('get_ad', ad(`ad ${index}`)));
    await expect.poll(paid, { timeout: 20_000, interval: 5 }).toBeGreaterThan(14);
    server.clear();
    const results = await Promise.all(calls);
    expect(paid()).toBeLessThanOrEqual(30);
    expect(results.filter(({ error }) => error?.kind === 'unavailable').length).toBeGreaterThan(0);
    for (const replica of replicas.all) await assertClosed(replica);
    await accept();
  }, 60_000);

  test('is no state for a replica that starts while another one lives that knew more', async () => {
    const { replicas, start, paid } = await between(1);
    await replicas[0]?.call('get_ad', ad('before'));
    server.clear();
    const [late] = await start(1);
    await assertClosed(late);
    expect(paid()).toBe(1);
    await accept();
  }, 60_000);

  test('can only be accepted where it can be reached, and is named', async () => {
    const nothing = await run(['state', 'accept']);
    expect(nothing).toMatchObject({ code: 2, stdout: '' });
    expect(nothing.stderr).toContain('AD_LIBRARY_STATE_URL must be set');
    expect(nothing.stderr).toContain('AD_LIBRARY_STATE_SECRET must be set');
    const env = { AD_LIBRARY_STATE_URL: server.url, AD_LIBRARY_STATE_SECRET: 'another secret of 32 characters…' };
    expect((await run(['state', 'accept'], { env })).stdout).toContain('there is nothing to accept');
    const closed = server.url.replace(/:\d+(?=\/|$)/, ':1');
    const away = await run(['state', 'accept'], { env: { ...env, AD_LIBRARY_STATE_URL: closed } });
    expect(away).toMatchObject({ code: 1, stdout: '' });
    expect(away.stderr).toContain('cannot be reached');
  });
});
