import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { AdService } from '../support/ad-service.ts';
import { documented, json, paid } from '../support/faulty-upstream.ts';
import { gateOf } from '../support/gate.ts';
import { run } from '../support/process.ts';
import { type Replica, replicaSecret, replicasForAll } from '../support/replicas.ts';
import type { Result } from '../support/server.ts';
import { describeEveryServer } from '../support/stores.ts';
import { uuidOf } from '../support/uuid-of.ts';

const ad = (name: string) => ({ adId: uuidOf(name) });
const wentBack = 'state went back in time';

const idsOf = async (replica: Replica) =>
  ((await replica.call('query_ads', { sql: 'SELECT id FROM ads' })).data.rows as string[][]).flat().toSorted();

async function assertClosed(replica: Pick<Replica, 'call'>): Promise<void> {
  const answers: Result[] = [];
  const told = async () => {
    answers.push(await replica.call('get_ad', ad('another')));
    return answers.at(-1)?.text;
  };
  // On a busy machine, the store may at first be too slow to show what became of it.
  await expect.poll(told).toContain('ad-library-mcp state accept');
  for (const { error, text } of answers) {
    expect(error).toMatchObject({ kind: 'unavailable' });
    expect(text).toContain('Nothing was sent, nothing was charged.');
  }
}

describeEveryServer('a state that was lost', (server) => {
  const fleet = replicasForAll({ count: 2, server, args: ['--credit-budget', '30'] });
  const accept = () => {
    const env = { AD_LIBRARY_STATE_SECRET: replicaSecret };
    return run(['state', 'accept', '--state-url', server.url], { env });
  };

  test('in the middle of paid calls lets nobody exceed a budget', async () => {
    const gate = gateOf();
    let asked = 0;
    const { upstream, replicas, call } = fleet.tenant(async (request, response) => {
      if (request.url?.includes('/ads/') && asked++ >= 14) await gate.opened;
      documented(request, response);
    });
    const calls = Array.from({ length: 60 }, (_, index) => call('get_ad', ad(`ad ${index}`)));
    await upstream.reached(15);
    server.clear();
    gate.open();
    const results = await Promise.all(calls);
    expect(asked).toBeLessThanOrEqual(30);
    expect(results.filter(({ error }) => error?.kind === 'unavailable').length).toBeGreaterThan(0);
    for (const replica of replicas.slice(0, 2)) await assertClosed(replica);
    await accept();
    await fleet.ready();
  });

  test.each([
    ['everything', 'was found empty'],
    ['what came since a copy', 'was found to be an earlier copy'],
  ])('after %s is lost, no replica pays, also after a restart of all, until it is accepted', async (lost, found) => {
    const { upstream, replicas, call } = fleet.tenant((request, response) => {
      const isAd = request.url?.includes('/ads/');
      (isAd ? json({ id: 'ad' }, { headers: paid(10) }) : documented)(request, response);
    });
    const [one, other] = replicas;
    await one.call('get_ad', ad('before'));
    const restore = server.copy();
    // What is lost within two seconds, between two heartbeats, is not noticed.
    await wait(2500);
    for (const name of ['a', 'b']) await one.call('get_ad', ad(name));
    expect((await other.call('get_ad', ad('c'))).error).toMatchObject({ kind: 'credit_budget' });
    if (lost === 'everything') server.clear();
    else restore();
    for (const replica of [one, other]) {
      await assertClosed(replica);
      expect((await replica.call('whoami')).isError).toBe(false);
      expect(await replica.readiness()).toBe(wentBack);
      expect((await replica.get('/readyz')).status).toBe(503);
    }
    expect(one.process.stderr()).toMatch(/"level":"error".*the shared state went back in time/);

    for (const at of [0, 1]) await fleet.replace(at);
    for (const replica of fleet.all) {
      await assertClosed({ call });
      expect(await replica.readiness()).toBe(wentBack);
    }
    expect(upstream.requests.filter(({ path }) => path.includes('/ads/'))).toHaveLength(3);

    const { code, stdout } = await accept();
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining('Budgets are open again.') });
    expect(stdout).toContain(found);
    await fleet.ready();
    expect((await call('get_ad', ad('another'))).data.receipt).toMatchObject({ charged: 10 });
    expect((await accept()).stdout).toContain('It did not go back in time');
  });

  test('is what every replica reads from then on, once it was accepted', async () => {
    const service = new AdService(4);
    const { replicas } = fleet.tenant(service.behaviour);
    const both = replicas.slice(0, 2);
    const [before, lost, lostToo, after] = service.ads.map(({ id }) => id);
    const read = (adId: string | undefined) => replicas[0].call('get_ad', { adId });
    await read(before);
    const restore = server.copy();
    await wait(2500);
    for (const id of [lost, lostToo]) await read(id);
    for (const replica of both) expect(await idsOf(replica)).toHaveLength(3);
    restore();
    for (const replica of both) await assertClosed(replica);
    await accept();
    await fleet.ready();
    await read(after);
    for (const replica of both) expect(await idsOf(replica)).toEqual([before, after].toSorted());
  });

  test('of which a dataset lost its last items, unnoticed otherwise, shows every replica what comes later', async () => {
    const service = new AdService(4);
    const { replicas } = fleet.tenant(service.behaviour);
    const [one, other] = replicas;
    const [before, lost, after] = service.ads.map(({ id }) => id);
    const read = (replica: Replica, adId: string | undefined) => replica.call('get_ad', { adId });
    await read(one, before);
    const restore = server.copyItems();
    await read(one, lost);
    expect(await idsOf(one)).toHaveLength(2);
    restore();
    await read(other, after);
    expect(await idsOf(one)).toEqual([before, lost, after].toSorted());
    expect(await idsOf(other)).toEqual([before, after].toSorted());
  });

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
