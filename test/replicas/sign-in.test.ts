import { afterEach, expect, test } from 'vitest';
import { AdService } from '../support/ad-service.ts';
import { startReplicasBeforeAll } from '../support/replicas.ts';
import { createSignInClient, goodKey, signInSecret } from '../support/sign-in.ts';
import { describeEveryServer } from '../support/stores.ts';

const publicUrl = 'http://127.0.0.1:9';

describeEveryServer('Replicas with sign-in', (server) => {
  const environment = { AD_LIBRARY_PUBLIC_URL: publicUrl, AD_LIBRARY_SIGN_IN_SECRET: signInSecret };
  const fleet = startReplicasBeforeAll({ count: 2, server, environment, args: ['--cache-seconds', '0'] });
  afterEach(async () => {
    await server.restart();
    await fleet.waitUntilReady();
  });
  const signIn = () => {
    const [one, other] = fleet.createTenant().replicas;
    return { one: createSignInClient(one, publicUrl), other: createSignInClient(other, publicUrl) };
  };

  test('a signed-in user has the same connection and credit budget on all replicas', async () => {
    const { one, other } = signIn();
    const service = new AdService(50);
    service.priceSearch = () => 2;
    fleet.upstream.respondWith(service.respond);
    const { clientId, access, refresh } = await one.signIn('9');
    const search = (at: typeof one, token: string, query: string) =>
      at.call(token, 'search_ads', { filters: { query }, limit: 5 });
    expect((await search(other, access, 'first')).result.isError).toBe(false);
    const burst = Array.from({ length: 12 }, (_, number) => search(number % 2 ? one : other, access, `${number}`));
    const passed = (await Promise.all(burst)).filter(({ result }) => !result.isError);
    expect([passed.length, service.chargedCredits]).toEqual([3, 8]);
    const credits = (await other.call(access, 'get_credits')).result.data.thisServer;
    expect(credits).toMatchObject({ connection: { charged: 8, budget: 9 } });
    const renew = (at: typeof one) => at.refreshTokens(refresh, clientId);
    const renewed = await renew(other);
    expect(renewed.status).toBe(200);
    expect((await search(one, renewed.body.access_token ?? '', 'more')).result.error?.kind).toBe('credit_budget');
    expect((await renew(one)).body.error).toBe('invalid_grant');
    for (const at of [one, other]) expect((await at.call(renewed.body.access_token ?? '', 'whoami')).status).toBe(401);
  });

  test('after one replica has confirmed that a sign-in connection is revoked, all replicas reject the tokens of the connection', async () => {
    const { one, other } = signIn();
    const { access, refresh, clientId } = await one.signIn();
    const revoke = async () => {
      const body = new URLSearchParams({ token: refresh, client_id: clientId });
      return (await one.send('/revoke', { method: 'POST', body })).status;
    };
    await server.kill();
    expect(await revoke()).toBe(503);
    await server.restart();
    await expect.poll(revoke).toBe(200);
    await expect.poll(async () => (await other.call(access, 'whoami')).status).not.toBe(503);
    expect((await other.call(access, 'whoami')).status).toBe(401);
  });

  test('a client can repeat a token renewal if it did not receive the first response', async () => {
    const { one, other } = signIn();
    const { refresh, clientId } = await one.signIn();
    const renew = () => one.refreshTokens(refresh, clientId);
    server.pause();
    expect((await renew()).status).toBe(503);
    server.resume();
    let renewed = await renew();
    await expect
      .poll(async () => {
        if (renewed.status === 503) renewed = await renew();
        return renewed.status;
      })
      .toBe(200);
    await expect.poll(async () => (await other.call(renewed.body.access_token ?? '', 'whoami')).status).toBe(200);
  });

  test('while the shared store is unreachable, replicas reject access tokens but accept API keys', async () => {
    const { one, other } = signIn();
    const { access, refresh, clientId } = await one.signIn();
    await server.kill();
    for (const at of [one, other]) {
      expect((await at.call(access, 'whoami')).status).toBe(503);
      const renewed = await at.refreshTokens(refresh, clientId);
      expect([renewed.status, renewed.body.error]).toEqual([503, 'temporarily_unavailable']);
      expect((await at.call(goodKey, 'whoami')).status).toBe(200);
    }
  });
});
