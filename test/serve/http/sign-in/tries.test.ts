import { expect, test } from 'vitest';
import { createCallerKeys } from '../../../../src/serve/http/access.ts';
import { callOf, goodHeaders, keepAlive } from '../../../support/http.ts';
import { goodKey, requestOf, type SignInServer, startKeyed, startSignIn } from '../../../support/sign-in.ts';

async function serve(config: object) {
  const upstream = await startKeyed();
  const server = await startSignIn({ baseUrl: upstream.baseUrl, ...config });
  return { upstream, server, request: requestOf(await server.register()).request };
}

/** Enters a key on the page, from an address that a proxy names. */
const enter = (server: SignInServer, request: Record<string, string>, key: string, forwarded?: string) =>
  server.send('/authorize', {
    method: 'POST',
    headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
    body: new URLSearchParams({ ...request, api_key: key }),
  });

test('tries on the page have a count of their own, and ask the service no more than that', async () => {
  const { upstream, server, request } = await serve({ authFailuresPerMinute: 5 });
  const guesses = [];
  for (let number = 0; number < 40; number++) guesses.push(await enter(server, request, `svc_live_guess.${number}`));
  expect(guesses.map(({ status }) => status)).toEqual([...Array(5).fill(400), ...Array(35).fill(429)]);
  expect(upstream.requests).toHaveLength(5);
  const refused = await enter(server, request, goodKey);
  expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(60);
  expect(await refused.text()).toMatch(/Too many keys were tried from your address\. Try again in \d+ s/);
  // Calls with keys are counted elsewhere, and one that the service has accepted is let in everywhere.
  const client = keepAlive(server.origin);
  const call = (key: string) => client.send({ headers: goodHeaders(key), body: JSON.stringify(callOf('whoami')) });
  expect((await call(goodKey)).status).toBe(200);
  expect((await enter(server, request, goodKey)).status).toBe(303);
  for (let number = 0; number < 5; number++) expect((await call(`svc_live_other.${number}`)).status).toBe(200);
  expect((await call('svc_live_other.5')).status).toBe(429);
  client.close();
});

test('what a trusted proxy says last of where a try comes from counts, and what anybody else says does not', async () => {
  const trustedProxy = { address: '127.0.0.0', prefix: 8, family: 'ipv4' } as const;
  const { server, request } = await serve({ authFailuresPerMinute: 1, trustedProxy });
  const from = async (forwarded: string | undefined, number: number) =>
    (await enter(server, request, `svc_live_guess.${number}`, forwarded)).status;
  let number = 0;
  for (const address of ['203.0.113.1', '1.1.1.1, 203.0.113.2', '203.0.113.3:4711', '[2001:db8::1]:443', undefined])
    expect(await from(address, number++)).toBe(400);
  for (const address of ['9.9.9.9, 203.0.113.1', '::ffff:203.0.113.2', '203.0.113.3', '2001:db8::1', 'unknown', ''])
    expect(await from(address, number++)).toBe(429);
  const plain = await serve({ authFailuresPerMinute: 1 });
  expect((await enter(plain.server, plain.request, 'svc_live_a', '203.0.113.1')).status).toBe(400);
  expect((await enter(plain.server, plain.request, 'svc_live_b', '203.0.113.2')).status).toBe(429);
});

test('a correct key is let in a minute after it was refused, however many wrong ones are tried meanwhile', async () => {
  let now = 0;
  const keys = createCallerKeys({ perMinute: 300, now: () => now });
  const wrong = { tool: 'sign_in', ms: 1, kind: 'unauthorized', status: 401, requestId: 'r' };
  let guesses = 0;
  const attack = async (count: number) => {
    for (let number = 0; number < count; number++) {
      const tenantId = `guess ${guesses++}`;
      if ((await keys.admit(tenantId, 'page')) === undefined) keys.onCall({ ...wrong, tenantId });
    }
  };
  await attack(10_000);
  const seconds = (await keys.admit('good', 'page')) ?? 0;
  expect(seconds).toBeGreaterThan(0);
  for (let second = 0; second < 60; second++) {
    now += 1000;
    await attack(160);
  }
  expect(await keys.admit('good', 'page')).toBeUndefined();
});

test('a service that does not answer keeps nobody out and lets nobody in', async () => {
  const { upstream, server, request } = await serve({ authFailuresPerMinute: 2 });
  upstream.does((_, response) => void response.writeHead(500).end());
  for (let time = 0; time < 4; time++) {
    const answer = await enter(server, request, goodKey);
    expect([answer.status, answer.headers.get('location')]).toEqual([503, null]);
    expect(await answer.text()).toContain('could not be checked');
  }
});
