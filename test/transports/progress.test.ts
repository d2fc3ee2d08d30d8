import { afterAll, expect, test } from 'vitest';
import { clientKinds, connectHttp } from '../support/clients.ts';
import { waitUntil } from '../support/deadline.ts';
import { createToolCall, formatHttpRequest, openConnection, openRawSocket, startHttp } from '../support/http.ts';
import { expectProgress } from './expect-progress.ts';

const server = await startHttp({ demo: true });
afterAll(() => server.close(0));

const countries = { v1: ['DE'], 'v2 auto': ['US'], 'v2 pinned to 2026-07-28': ['GB', 'FR'] };
const noLimits = { maxCredits: 1000, maxAds: 10_000 };

test.for(clientKinds)(
  'gather_ads over HTTP reports progress after each page until the client cancels it (client: %s)',
  async (kind) => {
    const client = await connectHttp(kind, server.url);
    await expectProgress(client, countries[kind]);
    server.logged.length = 0;
    const controller = new AbortController();
    const question = { filters: { query: kind.split(' ').at(-1) === 'v1' ? '-one' : `-${kind.length}` }, ...noLimits };
    const options = { signal: controller.signal, onprogress: () => controller.abort() };
    await expect(client.callWithProgress('gather_ads', question, options)).rejects.toThrow();
    await waitUntil(() => server.logged.some((line) => line.includes('cancelled')));
    await client.close();
  },
);

const callWithProgressToken = (name: string, args: object) => {
  const { params, ...message } = createToolCall(name, args);
  return { ...message, params: { ...params, _meta: { progressToken: 'p' } } };
};

test('only a gather_ads call that asks for progress notifications gets an event stream', async () => {
  const connection = openConnection(server.origin);
  const typeOf = async (body: object) =>
    (await connection.send({ body: JSON.stringify(body) })).headers['content-type'];
  const question = { filters: { countries: ['DE'] }, maxCredits: 1 };
  expect(await typeOf(callWithProgressToken('gather_ads', question))).toBe('text/event-stream');
  expect(await typeOf(createToolCall('gather_ads', question))).toContain('application/json');
  expect(await typeOf(callWithProgressToken('search_ads', { limit: 1 }))).toContain('application/json');
  expect(await typeOf(callWithProgressToken('no_such_tool', {}))).toContain('application/json');
  await connection.close();
});

test('a running gather_ads call is cancelled when the HTTP client disconnects', async () => {
  server.logged.length = 0;
  const { socket, received, closed } = openRawSocket(server.port);
  socket.write(formatHttpRequest(callWithProgressToken('gather_ads', { filters: {}, ...noLimits })));
  await waitUntil(() => received().includes('notifications/progress'));
  socket.destroy();
  await closed;
  await waitUntil(() => server.logged.some((line) => line.includes('cancelled')));
  const client = await connectHttp('v1', server.url);
  const { data } = await client.call('gather_ads', { filters: {}, maxCredits: 1 });
  expect(data.read).toBeGreaterThan(0);
  expect(data.read).toBeLessThan(2380);
  await client.close();
});
