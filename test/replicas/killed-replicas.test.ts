import { setTimeout as wait } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { type Behaviour, documented, paid, startUpstream } from '../support/faulty-upstream.ts';
import { type Replica, startReplicas } from '../support/replicas.ts';
import { describeEveryServer } from '../support/stores.ts';
import { uuidOf } from '../support/uuid-of.ts';

/** Takes a request and never answers it. */
const hangs: Behaviour = () => {};

/** Answers with half of what it announces. */
const breaksOff: Behaviour = (_, response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000', ...paid(1) });
  response.write('{"id":');
};

/** After so many milliseconds it is known that a replica has died. */
const noticedMs = 10_000;

const adId = uuidOf('ad');

describeEveryServer('a replica that is killed', (server) => {
  async function between(behaviour: Behaviour, args: string[] = []) {
    const upstream = await startUpstream(behaviour);
    onTestFinished(upstream.close);
    const { all } = await startReplicas({ count: 2, baseUrl: upstream.baseUrl, server, args });
    return { upstream, one: all[0] as Replica, other: all[1] as Replica };
  }

  test.each([
    ['before an answer', hangs],
    ['in the middle of an answer', breaksOff],
  ])(
    '%s: those who wait hear that it may have been charged, its estimate counts, and nobody asks again',
    async (_, behaviour) => {
      const { upstream, one, other } = await between(documented, ['--credit-budget', '10']);
      await one.call('get_ad', { adId: uuidOf('price') });
      upstream.does(behaviour);
      const dying = one.call('get_ad', { adId }).catch(() => {});
      await upstream.reached(1);
      const waiting = other.call('get_ad', { adId });
      // Until it waits for the other's answer.
      await wait(500);
      await one.kill();
      await dying;
      const killed = performance.now();
      upstream.does(documented);
      const { error, text } = await waiting;
      expect(performance.now() - killed).toBeLessThan(11_000);
      expect(error).toMatchObject({ kind: 'network', retryable: false });
      expect(text).toContain('It is unknown whether the service charged for this call, so it was not sent again.');
      expect(upstream.requests).toEqual([]);
      // What was reserved was reserved after the claim, and may be judged a beat later.
      const spending = async () => (await other.call('get_credits')).data.thisServer;
      await expect.poll(spending, { timeout: 5000 }).toMatchObject({ charged: 1, uncertain: 1 });
      // A person who decides to ask again can.
      expect(await other.call('get_ad', { adId })).toMatchObject({ isError: false, data: { receipt: { charged: 1 } } });
    },
    30_000,
  );

  test('while nobody waits: the first to ask again is told before anything is sent', async () => {
    const { upstream, one, other } = await between(documented);
    await one.call('get_ad', { adId: uuidOf('price') });
    upstream.does(hangs);
    const dying = one.call('get_ad', { adId }).catch(() => {});
    await upstream.reached(1);
    await one.kill();
    await dying;
    await wait(noticedMs);
    upstream.does(documented);
    expect((await other.call('get_ad', { adId })).error).toMatchObject({ kind: 'network', retryable: false });
    expect(upstream.requests).toEqual([]);
    expect((await other.call('get_credits')).data.thisServer).toMatchObject({ charged: 1, uncertain: 1 });
    expect((await other.call('get_ad', { adId })).isError).toBe(false);
  });

  test('whose first call had an unknown price: the rest of the budget counts as spent', async () => {
    const { upstream, one, other } = await between(hangs, ['--credit-budget', '10']);
    upstream.credits = (_, response) => void response.writeHead(500).end();
    const dying = one.call('get_ad', { adId }).catch(() => {});
    await upstream.reached(2);
    await one.kill();
    await dying;
    await wait(noticedMs);
    upstream.does(documented);
    const { error } = await other.call('get_ad', { adId: uuidOf('another') });
    expect(error).toMatchObject({ kind: 'credit_budget' });
    expect(upstream.requests).toEqual([]);
  });

  test('with calls that wait for their turn: only what was sent counts', async () => {
    const { upstream, one, other } = await between(documented, ['--credit-budget', '8']);
    await one.call('get_ad', { adId: uuidOf('price') });
    upstream.does(hangs);
    const ids = Array.from({ length: 6 }, (_, index) => uuidOf(`ad ${index}`));
    const dying = ids.map((id) => one.call('get_ad', { adId: id }).catch(() => {}));
    await upstream.reached(4);
    await one.kill();
    await Promise.all(dying);
    await wait(noticedMs);
    const sent = upstream.requests.length;
    upstream.does(documented);
    const { data } = await other.call('get_credits');
    expect(data.thisServer).toMatchObject({ charged: 1, uncertain: sent });
  });

  test('after its answer was delivered: it is settled, kept and free for the others', async () => {
    const { upstream, one, other } = await between(documented, ['--credit-budget', '10']);
    await one.call('get_ad', { adId });
    await one.kill();
    const { data } = await other.call('get_ad', { adId });
    expect(data.receipt).toMatchObject({ charged: 0, cached: true });
    expect((await other.call('get_credits')).data.thisServer).toMatchObject({ charged: 1, savedCalls: 1 });
    expect((await other.call('get_credits')).data.thisServer).not.toHaveProperty('uncertain');
    expect(upstream.requests.filter(({ path }) => path.includes('/ads/'))).toHaveLength(1);
  });
});
