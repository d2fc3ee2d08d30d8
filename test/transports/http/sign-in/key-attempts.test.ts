import { expect } from 'vitest';
import { createKeyAttemptLimiter } from '../../../../src/transports/http/key-attempts.ts';
import { waitUntil } from '../../../support/deadline.ts';
import { respondAsDocumented } from '../../../support/faulty-upstream.ts';
import { createToolCall, createValidHeaders, openConnection } from '../../../support/http.ts';
import {
  createAuthorizationRequest,
  goodKey,
  type SignInServer,
  startSignInServer,
  signInTest as withUpstream,
} from '../../../support/sign-in.ts';

/** Starts servers with a stopped clock, so that all attempts happen within one minute. */
const test = withUpstream.extend('serve', ({ upstream }) => async (config: object) => {
  const server = await startSignInServer({ baseUrl: upstream.baseUrl, ...config }, { monotonicNow: () => 1_000_000 });
  return { upstream, server, request: createAuthorizationRequest(await server.register()).request };
});

const submitKey = (server: SignInServer, request: Record<string, string>, key: string, forwarded?: string) =>
  server.send('/authorize', {
    method: 'POST',
    headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
    body: new URLSearchParams({ ...request, api_key: key }),
  });

test('attempts with API keys on the sign-in page are counted separately from attempts in tool calls', async ({
  serve,
}) => {
  const { upstream, server, request } = await serve({ refusalsPerMinute: 5 });
  const guesses = [];
  for (let number = 0; number < 40; number++)
    guesses.push(await submitKey(server, request, `svc_live_guess.${number}`));
  expect(guesses.map(({ status }) => status)).toEqual([...Array(5).fill(400), ...Array(35).fill(429)]);
  expect(upstream.requests).toHaveLength(5);
  const refused = await submitKey(server, request, goodKey);
  expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(60);
  expect(await refused.text()).toMatch(/Too many keys were tried from your address\. Try again in \d+ s/);
  // Keys in headers are counted separately. After the API has accepted a key there, the sign-in page admits it.
  const client = openConnection(server.origin);
  const call = (key: string) =>
    client.send({ headers: createValidHeaders(key), body: JSON.stringify(createToolCall('whoami')) });
  expect((await call(goodKey)).status).toBe(200);
  expect((await submitKey(server, request, goodKey)).status).toBe(303);
  for (let number = 0; number < 5; number++) expect((await call(`svc_live_other.${number}`)).status).toBe(200);
  expect((await call('svc_live_other.5')).status).toBe(429);
  client.close();
});

test('behind a trusted proxy, a tried API key is counted for the IP address that the proxy reports', async ({
  serve,
}) => {
  const trustedProxy = { address: '127.0.0.0', prefixLength: 8, family: 'ipv4' } as const;
  const { server, request } = await serve({ refusalsPerMinute: 1, trustedProxy });
  const from = async (forwarded: string | undefined, number: number) =>
    (await submitKey(server, request, `svc_live_guess.${number}`, forwarded)).status;
  let number = 0;
  const first = ['203.0.113.1', '1.1.1.1, 203.0.113.2', '203.0.113.3:4711', '[2001:db8::1]:443', '2001:db8:0:1::1'];
  for (const address of [...first, undefined]) expect(await from(address, number++)).toBe(400);
  const knownAddresses = [
    '9.9.9.9, 203.0.113.1',
    '::ffff:203.0.113.2',
    '203.0.113.3',
    '2001:db8::abcd:1',
    '2001:DB8:0:1:8::',
  ];
  for (const address of [...knownAddresses, 'unknown', '']) expect(await from(address, number++)).toBe(429);
  const plain = await serve({ refusalsPerMinute: 1 });
  expect((await submitKey(plain.server, plain.request, 'svc_live_a', '203.0.113.1')).status).toBe(400);
  expect((await submitKey(plain.server, plain.request, 'svc_live_b', '203.0.113.2')).status).toBe(429);
});

test('checks of the same API key at the same time count as one attempt', async () => {
  const keys = createKeyAttemptLimiter({
    maxKeysPerMinute: 1,
    monotonicNow: () => 1_000_000,
    isKnownKey: async () => false,
  });
  expect(await Promise.all([keys.checkAttemptLimit('good', 'page'), keys.checkAttemptLimit('good', 'page')])).toEqual([
    undefined,
    undefined,
  ]);
  expect(await keys.checkAttemptLimit('other', 'page')).toBe(60);
  keys.onCall({ tool: 'sign_in', tenantId: 'good', ms: 1, kind: 'busy' });
  expect(await keys.checkAttemptLimit('other', 'page')).toBe(60);
  keys.onCall({ tool: 'sign_in', tenantId: 'good', ms: 1, kind: 'unavailable', status: 503 });
  expect(await keys.checkAttemptLimit('other', 'page')).toBeUndefined();
});

test('API keys tried from one IP address cannot occupy all slots for key checks', async ({ serve }) => {
  const trustedProxy = { address: '127.0.0.0', prefixLength: 8, family: 'ipv4' } as const;
  const { upstream, server, request } = await serve({ trustedProxy });
  const answerFunctions: (() => void)[] = [];
  upstream.respondWith((_, response) => void answerFunctions.push(() => response.writeHead(401).end()));
  const guesses = Array.from({ length: 20 }, (_, number) =>
    submitKey(server, request, `svc_live_guess.${number}`, '203.0.113.1'),
  );
  await waitUntil(() => upstream.requests.length === 4);
  const otherAttempt = submitKey(server, request, 'svc_live_other', '203.0.113.2');
  await waitUntil(() => upstream.requests.length === 5);
  upstream.respondWith((_, response) => void response.writeHead(401).end());
  for (const answer of answerFunctions) answer();
  for (const { status } of await Promise.all([...guesses, otherAttempt])) expect(status).toBe(400);
});

test('a check of an API key does not count as an attempt if the check fails for technical reasons', async ({
  serve,
}) => {
  const { upstream, server, request } = await serve({ refusalsPerMinute: 2 });
  upstream.respondWith((_, response) => void response.writeHead(500).end());
  for (let time = 0; time < 4; time++) {
    const answer = await submitKey(server, request, goodKey);
    expect([answer.status, answer.headers.get('location')]).toEqual([503, null]);
    expect(await answer.text()).toContain('could not be checked');
  }
});

test('GET /readyz shows whether the API responded to the latest check of an API key', async ({ serve }) => {
  const { upstream, server, request } = await serve({});
  const readServiceState = async () => (await (await server.send('/readyz')).json()) as object;
  upstream.respondWith((_, response) => void response.writeHead(500).end());
  await submitKey(server, request, goodKey);
  expect(await readServiceState()).toEqual({ status: 'ready', service: 'away' });
  upstream.respondWith(respondAsDocumented);
  await submitKey(server, request, goodKey);
  expect(await readServiceState()).toEqual({ status: 'ready', service: 'up' });
});
