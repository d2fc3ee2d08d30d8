import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { clientKinds, connectHttp, connectStdio, type TestClient } from '../support/clients.ts';
import { bareSocket, callOf, goodHeaders, type HttpServer, keepAlive, startHttp, until } from '../support/http.ts';

const question = { filters: { countries: ['DE'] }, maxCredits: 100, maxAds: 250 };

async function follows(client: TestClient) {
  const reports: { progress: number }[] = [];
  const { data } = await client.follow('gather_ads', question, { onprogress: (report) => reports.push(report) });
  await client.close();
  expect(data).toMatchObject({ read: 250, found: 267, stopped: 'maxAds' });
  expect(reports.at(-1)).toMatchObject({ progress: 250, total: 250, message: '250 ads read of 267' });
  expect(reports.map(({ progress }) => progress)).toEqual([100, 200, 250]);
}

test.each(clientKinds)('a client over stdio hears of each page (%s)', async (kind) => {
  await follows(await connectStdio(kind, ['--demo']));
});

describe('over HTTP', () => {
  let server: HttpServer;
  beforeAll(async () => {
    server = await startHttp({ demo: true });
  });
  afterAll(() => server.close());

  test.each(clientKinds)('a client hears of each page (%s)', async (kind) => {
    const own = await startHttp({ demo: true });
    await follows(await connectHttp(kind, own.url));
    await own.close();
  });

  const withToken = (name: string, args: object, id = 1) => {
    const { params, ...rest } = callOf(name, args, id);
    return JSON.stringify({ ...rest, params: { ...params, _meta: { progressToken: 'p' } } });
  };

  test('only a call that asks for progress and can report it gets a stream of events', async () => {
    const connection = keepAlive(server.origin);
    const typeOf = async (body: string) => (await connection.send({ body })).headers['content-type'];
    expect(await typeOf(withToken('gather_ads', question))).toBe('text/event-stream');
    expect(await typeOf(JSON.stringify(callOf('gather_ads', question)))).toContain('application/json');
    expect(await typeOf(withToken('search_ads', { limit: 1 }))).toContain('application/json');
    expect(await typeOf(withToken('no_such_tool', {}))).toContain('application/json');
    await connection.close();
  });

  test.each(clientKinds)('a client that cancels in the middle of the stream ends the gathering (%s)', async (kind) => {
    const own = await startHttp({ demo: true });
    const client = await connectHttp(kind, own.url);
    const host = new AbortController();
    const everything = { maxCredits: 1000, maxAds: 10_000 };
    const options = { signal: host.signal, onprogress: () => host.abort() };
    await expect(client.follow('gather_ads', everything, options)).rejects.toThrow();
    await until(() => own.logged.some((line) => line.includes('cancelled')));
    await client.close();
    await own.close();
  });

  test('a client that disconnects in the middle of the stream ends the gathering', async () => {
    const body = withToken('gather_ads', { filters: {}, maxCredits: 1000, maxAds: 10_000 });
    const { socket, received, closed } = bareSocket(server.port);
    const headers = Object.entries({
      ...goodHeaders(),
      host: `127.0.0.1:${server.port}`,
      'content-length': `${body.length}`,
    });
    socket.write(`POST /mcp HTTP/1.1\r\n${headers.map((pair) => pair.join(': ')).join('\r\n')}\r\n\r\n${body}`);
    await until(() => received().includes('notifications/progress'));
    socket.destroy();
    await closed;
    await until(() => server.logged.some((line) => line.includes('cancelled')));
    const client = await connectHttp('v1', server.url);
    const { data } = await client.call('gather_ads', { filters: {}, maxCredits: 1 });
    expect(data.read).toBeGreaterThan(0);
    expect(data.read).toBeLessThan(2380);
    await client.close();
  });
});
