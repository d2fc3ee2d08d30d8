import { Hono } from 'hono';
import { expect, onTestFinished, test as plainTest } from 'vitest';
import { createLargeBodyReader } from '../../../src/transports/http/body-limit.ts';
import { listen } from '../../../src/transports/http/server.ts';
import { waitUntil } from '../../support/deadline.ts';
import { respondAsDocumented, respondWhenOpen } from '../../support/faulty-upstream.ts';
import { httpTest as test } from '../../support/fixtures.ts';
import { createGate } from '../../support/gate.ts';
import {
  createToolCall,
  createValidHeaders,
  formatHttpRequest,
  openConnection,
  openRawSocket,
} from '../../support/http.ts';

/**
 * Returns a call with a body of more than 64 KB. Different numbers give different calls, because the server merges
 * identical ones.
 */
const createLargeCall = (number: number) =>
  createToolCall('search_ads', { filters: { number, any: 'x'.repeat(100_000) }, fresh: true });
const largeCall = createLargeCall(0);
const keys = ['svc_live_a', 'svc_live_b', 'svc_live_c', 'svc_live_d'];
const otherKey = 'svc_live_other';

test('slow uploads with other API keys do not block a large request with one API key', async ({ serve }) => {
  const { server, post } = await serve(respondAsDocumented);
  for (const key of [...keys, otherKey]) await post(key);
  for (const key of keys)
    for (let connection = 0; connection < 4; connection++) {
      const { socket } = openRawSocket(server.port);
      onTestFinished(() => void socket.destroy());
      socket.write(formatHttpRequest(largeCall, createValidHeaders(key)).slice(0, 70_000));
    }
  const answers = await Promise.all(Array.from({ length: 8 }, () => post(otherKey, largeCall)));
  for (const { json } of answers) expect(json).toMatchObject({ result: { structuredContent: { receipt: {} } } });
});

test('a large request is rejected as busy if all upload slots are in use', {
  timeout: 60_000,
}, async ({ serve, upstream }) => {
  const gate = createGate();
  const { post } = await serve(respondAsDocumented);
  for (const key of [...keys, otherKey]) await post(key);
  upstream.respondWith(respondWhenOpen(gate));
  const running = keys.flatMap((key) => [post(key, createLargeCall(1)), post(key, createLargeCall(2))]);
  await waitUntil(() => upstream.requests.filter(({ path }) => path !== '/v1/whoami').length === 8);
  const { status, headers, json } = await post(otherKey, largeCall);
  expect([status, Number(headers['retry-after']) > 0]).toEqual([503, true]);
  expect(json).toMatchObject({
    jsonrpc: '2.0',
    id: null,
    error: {
      code: -32_000,
      message: expect.stringContaining('large requests'),
      data: { kind: 'busy', retryable: true },
    },
  });
  gate.open();
  for (const { status } of await Promise.all(running)) expect(status).toBe(200);
  expect((await post(otherKey, largeCall)).status).toBe(200);
});

/** Starts a handler of large bodies with a limit of 400 KB for all bodies that are being received. */
async function serveBodies() {
  const bodies = createLargeBodyReader({ maxBytes: 400_000, waitMs: 200 });
  const gate = createGate();
  const limit = { requiredMediaType: 'application/json', maxBytes: 1024 * 1024 };
  const app = new Hono();
  app.post('/mcp', async (context) => {
    const key = context.req.header('authorization') ?? '';
    const read = await bodies.read(context, key, limit, gate.opened);
    return context.json('text' in read ? read.text.length : read);
  });
  app.onError((error, context) => context.text(error.message, 503));
  const listener = await listen(app.fetch, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => listener.close(0));
  onTestFinished(gate.open);
  const port = Number(new URL(listener.url).port);
  const sendPartOfBody = (key: string, bytes: number) => {
    const socket = openRawSocket(port);
    onTestFinished(() => void socket.socket.destroy());
    const text = formatHttpRequest({ text: 'x'.repeat(500_000) }, createValidHeaders(key));
    socket.socket.write(text.slice(0, bytes));
    return socket;
  };
  const send = (key: string, bytes: number) =>
    openConnection(listener.url).send({ headers: createValidHeaders(key), body: JSON.stringify('x'.repeat(bytes)) });
  return { trickle: sendPartOfBody, send };
}

plainTest(
  'if too many bytes arrive at once, the server rejects the largest request of the API key that sends the most bytes',
  async () => {
    const { trickle, send } = await serveBodies();
    const [small, large] = [trickle('svc_live_a', 100_000), trickle('svc_live_a', 250_000)];
    const spared = trickle('svc_live_b', 60_000);
    const { status, text } = await send('svc_live_c', 120_000);
    expect([status, text]).toEqual([200, '120002']);
    expect(await large.closed).toMatch(/^HTTP\/1\.1 503 .*Too many large requests are arriving at once/s);
    for (const { received, socket } of [small, spared]) expect([received(), socket.destroyed]).toEqual(['', false]);
  },
);

plainTest(
  'an API key can have two large requests at once, and a third is rejected after the maximum waiting time',
  async () => {
    const { send } = await serveBodies();
    for (let message = 0; message < 2; message++) expect((await send('svc_live_a', 70_000)).status).toBe(200);
    expect((await send('svc_live_a', 70_000)).status).toBe(503);
    expect((await send('svc_live_b', 70_000)).status).toBe(200);
  },
);
