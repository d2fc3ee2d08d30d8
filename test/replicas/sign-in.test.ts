import { afterEach, expect, onTestFinished, test } from 'vitest';
import { AdService } from '../support/ad-service.ts';
import { startUpstream } from '../support/faulty-upstream.ts';
import { startReplicas } from '../support/replicas.ts';
import { goodKey, signInAt, signInSecret } from '../support/sign-in.ts';
import { describeEveryServer } from '../support/stores.ts';

const publicUrl = 'http://127.0.0.1:9';

describeEveryServer('replicas behind one sign-in', (server) => {
  afterEach(() => server.restart());

  async function startTwo() {
    const service = new AdService(50);
    service.price = () => 2;
    const { baseUrl, close } = await startUpstream(service.behaviour);
    onTestFinished(close);
    const environment = { AD_LIBRARY_PUBLIC_URL: publicUrl, AD_LIBRARY_SIGN_IN_SECRET: signInSecret };
    const { all } = await startReplicas({ count: 2, baseUrl, server, environment, args: ['--cache-seconds', '0'] });
    const [one, other] = all.map((replica) => signInAt(replica, publicUrl));
    if (!one || !other) throw new Error('There are no two replicas.');
    return { one, other, service };
  }

  test('share connections and their budgets; what was used at one ends the connection when it comes to the other', async () => {
    const { one, other, service } = await startTwo();
    const { clientId, access, refresh } = await one.connect('9');
    const search = (at: typeof one, token: string, words: string) =>
      at.call(token, 'search_ads', { filters: { query: words }, limit: 5 });
    expect((await search(other, access, 'first')).result.isError).toBe(false);
    const burst = Array.from({ length: 12 }, (_, number) => search(number % 2 ? one : other, access, `${number}`));
    const passed = (await Promise.all(burst)).filter(({ result }) => !result.isError);
    expect([passed.length, service.charged]).toEqual([3, 8]);
    const credits = (await other.call(access, 'get_credits')).result.data.thisServer;
    expect(credits).toMatchObject({ connection: { charged: 8, budget: 9 } });
    const renew = (at: typeof one) => at.renew(refresh, clientId);
    const renewed = await renew(other);
    expect(renewed.status).toBe(200);
    expect((await search(one, renewed.body.access_token ?? '', 'more')).result.error?.kind).toBe('credit_budget');
    expect((await renew(one)).body.error).toBe('invalid_grant');
    for (const at of [one, other]) expect((await at.call(renewed.body.access_token ?? '', 'whoami')).status).toBe(401);
  });

  test('end a connection everywhere once a revocation is confirmed, however often the state was away before', async () => {
    const { one, other } = await startTwo();
    const { access, refresh, clientId } = await one.connect();
    const revoke = async () => {
      const body = new URLSearchParams({ token: refresh, client_id: clientId });
      return (await one.send('/revoke', { method: 'POST', body })).status;
    };
    await server.kill();
    expect(await revoke()).toBe(503);
    await server.restart();
    await expect.poll(revoke, { timeout: 10_000 }).toBe(200);
    await expect.poll(async () => (await other.call(access, 'whoami')).status, { timeout: 10_000 }).not.toBe(503);
    expect((await other.call(access, 'whoami')).status).toBe(401);
  });

  test('renew a connection after all when a renewal was carried out too late to be answered', async () => {
    const { one, other } = await startTwo();
    const { refresh, clientId } = await one.connect();
    const renew = () => one.renew(refresh, clientId);
    server.pause();
    expect((await renew()).status).toBe(503);
    server.resume();
    let renewed = await renew();
    for (let time = 0; renewed.status === 503 && time < 50; time++) {
      await new Promise((resolve) => setTimeout(resolve, 200));
      renewed = await renew();
    }
    expect(renewed.status).toBe(200);
    const called = async () => (await other.call(renewed.body.access_token ?? '', 'whoami')).status;
    await expect.poll(called, { timeout: 10_000 }).toBe(200);
  });

  test('take no token while their state is away, and keys as before', async () => {
    const { one, other } = await startTwo();
    const { access, refresh, clientId } = await one.connect();
    await server.kill();
    for (const at of [one, other]) {
      expect((await at.call(access, 'whoami')).status).toBe(503);
      const renewed = await at.renew(refresh, clientId);
      expect([renewed.status, renewed.body.error]).toEqual([503, 'temporarily_unavailable']);
      expect((await at.call(goodKey, 'whoami')).status).toBe(200);
    }
  });
});
