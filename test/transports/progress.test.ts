import { afterAll, expect, test } from 'vitest';
import { clientKinds, connectHttp } from '../support/clients.ts';
import { waitUntil } from '../support/deadline.ts';
import { formatHttpRequest, openConnection, openRawSocket, startHttp, toolCall } from '../support/http.ts';
import { follows } from './follows.ts';

const server = await startHttp({ demo: true });
afterAll(() => server.close(0));

const countries = { v1: ['DE'], 'v2 auto': ['US'], 'v2 pinned to 2026-07-28': ['GB', 'FR'] };
const everything = { maxCredits: 1000, maxAds: 10_000 };

test.for(clientKinds)('over HTTP, a client hears of each page, until it cancels the gathering (%s)', async (kind) => {
  const client = await connectHttp(kind, server.url);
  await follows(client, countries[kind]);
  server.logged.length = 0;
  const host = new AbortController();
  const asked = { filters: { query: kind.split(' ').at(-1) === 'v1' ? '-one' : `-${kind.length}` }, ...everything };
  const options = { signal: host.signal, onprogress: () => host.abort() };
  await expect(client.callWithProgress('gather_ads', asked, options)).rejects.toThrow();
  await waitUntil(() => server.logged.some((line) => line.includes('cancelled')));
  await client.close();
});

const withToken = (name: string, args: object) => {
  const { params, ...rest } = toolCall(name, args);
  return { ...rest, params: { ...params, _meta: { progressToken: 'p' } } };
};

test('only a call that asks for progress and can report it gets a stream of events', async () => {
  const connection = openConnection(server.origin);
  const typeOf = async (body: object) =>
    (await connection.send({ body: JSON.stringify(body) })).headers['content-type'];
  const question = { filters: { countries: ['DE'] }, maxCredits: 1 };
  expect(await typeOf(withToken('gather_ads', question))).toBe('text/event-stream');
  expect(await typeOf(toolCall('gather_ads', question))).toContain('application/json');
  expect(await typeOf(withToken('search_ads', { limit: 1 }))).toContain('application/json');
  expect(await typeOf(withToken('no_such_tool', {}))).toContain('application/json');
  await connection.close();
});

test('a client that disconnects in the middle of the stream ends the gathering', async () => {
  server.logged.length = 0;
  const { socket, received, closed } = openRawSocket(server.port);
  socket.write(formatHttpRequest(withToken('gather_ads', { filters: {}, ...everything })));
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
