import type { ServerResponse } from 'node:http';
import { expect } from 'vitest';
import { createMemoryAcceptedKeys } from '../../../src/storage/keys.ts';
import { createKeyAttemptLimiter } from '../../../src/transports/http/key-attempts.ts';
import { waitUntil } from '../../support/deadline.ts';
import { deriveUuid } from '../../support/derive-uuid.ts';
import {
  type Behaviour,
  respondAsDocumented,
  respondWithError,
  respondWithJson,
} from '../../support/faulty-upstream.ts';
import { httpTest as test } from '../../support/fixtures.ts';
import {
  createToolCall,
  createValidHeaders,
  formatHttpRequest,
  openConnection,
  openRawSocket,
} from '../../support/http.ts';

/** A stopped clock, so that all attempts happen within one minute. */
const stoppedClock = { monotonicNow: () => 1_000_000 };

function createUnansweringService() {
  const openResponses: ServerResponse[] = [];
  const behaviour: Behaviour = (_, response) => void openResponses.push(response);
  return { held: openResponses, behaviour };
}

const acceptGoodKeys: Behaviour = (request, response, body) => {
  const isGood = request.headers.authorization?.includes('good');
  (isGood ? respondAsDocumented : respondWithError(401))(request, response, body);
};

test('an attempt with an unknown API key counts from the moment when the request arrives', async ({ serve }) => {
  const { held, behaviour } = createUnansweringService();
  const { post } = await serve(behaviour, { refusalsPerMinute: 3 }, stoppedClock);
  const guesses = Array.from({ length: 20 }, (_, index) => post(`svc_live_guess.${index}`).catch(() => undefined));
  const refused = await Promise.all(Array.from({ length: 17 }, () => Promise.race(guesses)));
  expect(refused[0]).toMatchObject({ status: 429 });
  await waitUntil(() => held.length === 3);
  for (const response of held) response.writeHead(401).end();
  const statuses = (await Promise.all(guesses)).map((answer) => answer?.status);
  expect(statuses.filter((status) => status === 429)).toHaveLength(17);
  expect(held).toHaveLength(3);
});

test('API keys that the API rejects count toward the attempt limit, and accepted keys have no limit', async ({
  serve,
}) => {
  const { post } = await serve(acceptGoodKeys, { refusalsPerMinute: 2 }, stoppedClock);
  const acceptedKeys = [1, 2, 3, 4].map((number) => `svc_live_good.${number}`);
  for (const key of acceptedKeys) expect((await post(key)).status).toBe(200);
  for (const number of [1, 2]) expect((await post(`svc_live_guess.${number}`)).status).toBe(200);
  const refused = await post('svc_live_guess.3');
  expect(refused).toMatchObject({ status: 429, json: { error: { message: expect.stringContaining('unknown keys') } } });
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
  expect((await post('svc_live_good.5')).status).toBe(429);
  for (const key of acceptedKeys) expect((await post(key)).status).toBe(200);
});

test('a request with an unknown API key counts as an attempt before its body arrives', async ({ serve }) => {
  const { server, post } = await serve(respondAsDocumented, { refusalsPerMinute: 2 }, stoppedClock);
  const { send, close } = openConnection(server.origin);
  const body = JSON.stringify(createToolCall('whoami'));
  for (let time = 0; time < 10; time++) {
    expect((await send({ headers: { 'content-type': 'application/json' }, body })).status).toBe(401);
    expect((await post('wrong')).status).toBe(401);
    expect((await post('svc_live_lists', { jsonrpc: '2.0', id: 1, method: 'tools/list' })).status).toBe(200);
  }
  const sendIncompleteRequest = (key: string) => {
    const { socket, received } = openRawSocket(server.port);
    socket.write(formatHttpRequest(createToolCall('whoami'), createValidHeaders(key)).slice(0, -9));
    return { socket, received };
  };
  const first = sendIncompleteRequest('svc_live_half.1');
  const halves = [1, 2, 3].map((number) => sendIncompleteRequest(`svc_live_half.${number}`));
  await waitUntil(() => halves.filter(({ received }) => received().startsWith('HTTP/1.1 429')).length === 2);
  for (const { socket } of [first, ...halves]) socket.destroy();
  await close();
});

test('a request with an unknown API key counts as an attempt even if the client disconnects early', async ({
  serve,
}) => {
  const { held, behaviour } = createUnansweringService();
  const { server, post } = await serve(behaviour, { refusalsPerMinute: 1 }, stoppedClock);
  const connection = openConnection(server.origin);
  const body = createToolCall('add_collection_item', {
    collectionId: deriveUuid('c'),
    itemType: 'ads',
    itemId: deriveUuid('a'),
  });
  const abortedRequest = connection.send({
    headers: createValidHeaders('svc_live_guess.1'),
    body: JSON.stringify(body),
  });
  abortedRequest.catch(() => {});
  await waitUntil(() => held.length === 1);
  await connection.close();
  held[0]?.writeHead(401).end();
  await waitUntil(() => server.logged.some((line) => /"call"/.test(line)));
  expect((await post('svc_live_guess.2')).status).toBe(429);
});

test.for([
  ['a wrong argument', createToolCall('whoami', { wrong: true })],
  ['a tool that does not exist', createToolCall('no_such_tool')],
] as const)(
  'an attempt with an unknown API key stays counted if another call with the key fails because of %s',
  async ([_, failingCall], { serve }) => {
    const { held, behaviour } = createUnansweringService();
    const { post } = await serve(behaviour, { refusalsPerMinute: 1 }, stoppedClock);
    const guess = post('svc_live_guess.1');
    await waitUntil(() => held.length === 1);
    expect((await post('svc_live_guess.1', failingCall)).json).toMatchObject({ result: { isError: true } });
    held[0]?.writeHead(401).end();
    await guess;
    expect((await post('svc_live_guess.2')).status).toBe(429);
  },
);

test.for([402, 403, 404, 422, 429])(
  'an API key counts as accepted after an HTTP error %i from the API, but not after the same error from a gateway',
  async (status, { serve, upstream }) => {
    const { post } = await serve(respondWithError(status), { refusalsPerMinute: 1 }, stoppedClock);
    expect((await post('svc_live_service')).json).toMatchObject({ result: { isError: true } });
    upstream.respondWith((_, response) => void response.writeHead(status).end('<h1>Gateway</h1>'));
    expect((await post('svc_live_gateway')).json).toMatchObject({ result: { isError: true } });
    upstream.respondWith(respondWithError(401));
    await post('svc_live_guess.1');
    upstream.respondWith(respondWithJson({ authenticated: true, authSource: 'api_key' }));
    expect((await post('svc_live_gateway')).status).toBe(429);
    expect((await post('svc_live_service')).status).toBe(200);
  },
);

test('a tool that needs no API request, such as query_ads, works only with an accepted API key', async ({
  serve,
  upstream,
}) => {
  const { post } = await serve(acceptGoodKeys, { refusalsPerMinute: 60 }, stoppedClock);
  const query = createToolCall('query_ads', { sql: 'SELECT count(*) AS ads FROM ads' });
  for (const body of [query, createToolCall('view_ads', { adIds: ['x'] })])
    expect((await post('svc_live_made_up', body)).json).toMatchObject({
      result: { isError: true, _meta: { 'ad-library/error': { kind: 'unauthorized' } } },
    });
  const before = upstream.requests.length;
  for (const _ of [1, 2])
    expect((await post('svc_live_good', query)).json).toMatchObject({
      result: { structuredContent: { rows: [[0]], receipt: { charged: 0 } } },
    });
  expect(upstream.requests.slice(before).map(({ path }) => path)).toEqual(['/v1/whoami']);
});

test('reading the page of the ad board with an unknown API key counts as an attempt', async ({ serve }) => {
  const { post } = await serve(createUnansweringService().behaviour, { refusalsPerMinute: 5 }, stoppedClock);
  const readBoard = { jsonrpc: '2.0', id: 1, method: 'resources/read', params: { uri: 'ui://ad-library/board' } };
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, index) => post(`svc_live_guess.${index}`, readBoard)),
  );
  const statuses = answers.map(({ status }) => status).toSorted();
  expect(statuses).toEqual([...Array(5).fill(200), ...Array(7).fill(429)]);
  expect((await post('svc_live_guess.99')).status).toBe(429);
});

test('the server remembers for 15 minutes that the API has accepted an API key', async ({ serve }) => {
  const clock = { now: 1_000_000 };
  const { post } = await serve(acceptGoodKeys, { refusalsPerMinute: 1 }, { monotonicNow: () => clock.now });
  const statuses = async (...keys: string[]) => {
    const all = [];
    for (const key of keys) all.push((await post(`svc_live_${key}`)).status);
    return all;
  };
  expect(await statuses('good', 'guess.1', 'guess.2', 'good')).toEqual([200, 200, 429, 200]);
  clock.now += 60_001;
  expect(await statuses('guess.3', 'guess.4', 'good')).toEqual([200, 429, 200]);
  clock.now += 15 * 60_001;
  expect(await statuses('guess.5', 'good')).toEqual([200, 429]);
});

test('the server remembers at most 10,000 IP addresses and 10,000 API keys for its attempt limit', async () => {
  const now = () => 1_000_000;
  const { add, has } = createMemoryAcceptedKeys(now);
  const keys = createKeyAttemptLimiter({ maxKeysPerMinute: 1, monotonicNow: now, isKnownKey: has });
  await add('first');
  await keys.checkAttemptLimit('guess', 'first');
  expect(await keys.checkAttemptLimit('another', 'first')).toBeGreaterThan(0);
  for (let other = 0; other < 10_000; other++) {
    await add(`tenant ${other}`);
    await keys.checkAttemptLimit(`guess ${other}`, `address ${other}`);
  }
  expect(await has('first')).toBe(false);
  expect(await keys.checkAttemptLimit('another', 'first')).toBeUndefined();
});
