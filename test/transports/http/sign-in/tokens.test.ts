import { expect } from 'vitest';
import { type SignInServer, startSignInServer, signInTest as withUpstream } from '../../../support/sign-in.ts';

const minute = 60_000;
const day = 24 * 60 * minute;

/** Starts a server whose clock the test can set. */
const test = withUpstream.extend('timed', async ({ upstream }) => {
  const clock = { now: 1_000_000 };
  return { clock, server: await startSignInServer({ baseUrl: upstream.baseUrl }, { monotonicNow: () => clock.now }) };
});

const statusOf = async (server: SignInServer, access = '') => (await server.call(access, 'whoami')).status;

test('authorization codes expire after a minute, access tokens after an hour and refresh tokens after 30 days', async ({
  timed: { clock, server },
}) => {
  const late = await server.withCode();
  clock.now += minute;
  expect((await server.token(late)).status).toBe(400);
  let { access, refresh, clientId } = await server.signIn('7');
  expect(await statusOf(server, access)).toBe(200);
  clock.now += 60 * minute;
  expect(await statusOf(server, access)).toBe(401);
  for (let time = 0; time < 4; time++) {
    clock.now += 30 * day - 61 * minute;
    ({ access_token: access = '', refresh_token: refresh = '' } = (await server.refreshTokens(refresh, clientId)).body);
    expect((await server.call(access, 'get_credits')).result.text).toContain('this connection: 0 charged; budget 7');
  }
  clock.now += 30 * day;
  expect((await server.refreshTokens(refresh, clientId)).status).toBe(400);
});

test('using an authorization code or refresh token again ends its connection, even after the token has expired', async ({
  timed: { clock, server },
}) => {
  const validGrant = await server.withCode();
  const first = await server.token(validGrant);
  const second = await server.refreshTokens(first.body.refresh_token ?? '', validGrant.client_id);
  clock.now += 2 * minute;
  expect(await statusOf(server, second.body.access_token)).toBe(200);
  expect((await server.token(validGrant)).status).toBe(400);
  expect(await statusOf(server, second.body.access_token)).toBe(401);
  const { refresh, clientId } = await server.signIn();
  const next = await server.refreshTokens(refresh, clientId);
  clock.now += 20 * day;
  const last = await server.refreshTokens(next.body.refresh_token ?? '', clientId);
  clock.now += 20 * day;
  expect((await server.refreshTokens(refresh, clientId)).status).toBe(400);
  expect((await server.refreshTokens(last.body.refresh_token ?? '', clientId)).status).toBe(400);
});

test('a server rejects sign-in tokens that a server with a different secret or URL has issued', async ({
  upstream,
  timed,
}) => {
  const { server } = timed;
  const { port, origin: publicUrl } = server;
  const { access, refresh, clientId } = await server.signIn();
  const { baseUrl } = upstream;
  const signInSecret = 'another secret, at least 32 characters';
  const otherServers = [
    await startSignInServer({ baseUrl }),
    await startSignInServer({ baseUrl, publicUrl, signInSecret }),
  ];
  await server.close(0);
  for (const otherServer of [...otherServers, await startSignInServer({ baseUrl, publicUrl, port })]) {
    expect(await statusOf(otherServer, access)).toBe(401);
    expect((await otherServer.refreshTokens(refresh, clientId)).body.error).toMatch(/^invalid_(grant|client)$/);
  }
});

test('the 65th sign-in connection of an API key ends the oldest connection of the key', async ({
  timed: { clock, server },
}) => {
  const all = [];
  for (let number = 0; number < 66; number++) {
    clock.now += 1000;
    all.push(await server.signIn());
  }
  expect(await statusOf(server, all[1]?.access)).toBe(401);
  expect(await statusOf(server, all[2]?.access)).toBe(200);
  clock.now += 1000;
  const { access } = await server.signIn();
  clock.now += 1000;
  for (let number = 0; number < 63; number++) await server.withCode();
  clock.now += 2 * minute;
  await server.signIn();
  expect(await statusOf(server, access)).toBe(200);
});
