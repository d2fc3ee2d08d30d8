import { describe, expect, onTestFinished, test } from 'vitest';
import type { Config } from '../../src/config/settings.ts';
import { answering, startUpstream } from '../support/faulty-upstream.ts';
import { freePort } from '../support/free-port.ts';
import { gateOf } from '../support/gate.ts';
import { bareSocket, callOf, goodHeaders, keepAlive, startHttp, until } from '../support/http.ts';
import { startService } from '../support/service.ts';

async function serve(config: Partial<Config>) {
  const server = await startHttp(config);
  const client = keepAlive(server.origin);
  onTestFinished(() => server.close(0));
  onTestFinished(() => void client.close());
  return { server, client };
}

describe('pictures of the demo', () => {
  test.each([
    ['::1', undefined, '[::1]'],
    ['0.0.0.0', ['ads.example'], 'ads.example'],
    ['0.0.0.0', ['[2001:db8::1]'], '[2001:db8::1]'],
  ])('served on %s for %j have addresses there', async (host, allowedHosts, name) => {
    const port = await freePort();
    const { client } = await serve({ demo: true, host, port, allowedHosts });
    const headers = { ...goodHeaders(), host: `${name}:${port}` };
    const send = (tool: string, args: object) => client.send({ headers, body: JSON.stringify(callOf(tool, args)) });
    const [adId] = /(?<="id":")[\da-f-]{36}/.exec((await send('search_ads', { limit: 1 })).text) ?? [];
    expect((await send('get_ad', { adId })).text).toContain(`http://${name}:${port}/media/ads/${adId}/`);
  });
});

// macOS has one address of this kind only.
test.skipIf(process.platform === 'darwin')('a server on another address of this machine is reached there', async () => {
  const { client } = await serve({ demo: true, host: '127.0.0.2' });
  expect((await client.call('whoami')).status).toBe(200);
});

describe('a server that is closed', () => {
  test('delivers what is under way, and refuses what is new on connections that are open', async () => {
    const gate = gateOf();
    const upstream = await startUpstream(answering(() => gate.opened.then(() => ({ authenticated: true }))));
    onTestFinished(upstream.close);
    const { server, client } = await serve({ baseUrl: upstream.baseUrl });
    const other = keepAlive(server.origin);
    const ready = () => other.send({ method: 'GET', path: '/readyz' });
    expect((await ready()).json).toEqual({ status: 'ready' });
    const underWay = client.call('whoami');
    await until(() => upstream.requests.length === 1);

    const closed = server.close(5000);
    expect(await ready()).toMatchObject({ status: 503, json: { status: 'draining' } });
    const late = await other.call('whoami');
    expect(late).toMatchObject({ status: 503, headers: { connection: 'close', 'retry-after': '1' } });
    expect(late.text).toContain('This server is shutting down.');
    gate.open();
    expect((await underWay).json).toMatchObject({ result: { structuredContent: { authenticated: true } } });
    expect((await underWay).headers.connection).toBe('close');
    await closed;
    other.close();
  });
});

test('without an address, a caller’s key goes nowhere, and the answer says what the server lacks', async () => {
  const { client } = await serve({});
  const { status, text } = await client.call('whoami', {}, 'svc_live_lost');
  expect(status).toBe(200);
  expect(text).toContain('Missing: AD_LIBRARY_BASE_URL');
  expect(text).not.toContain('svc_live_lost');
});

test('numbers say how many credits each tool was charged', async () => {
  const service = await startService();
  onTestFinished(service.close);
  const { client } = await serve({ baseUrl: service.baseUrl, metrics: true });
  for (const limit of [10, 20]) await client.call('search_ads', { limit }, service.apiKey);
  const { text } = await client.send({ method: 'GET', path: '/metrics' });
  expect(text).toContain('ad_library_credits_charged_total{tool="search_ads"} 3');
});

test('a request that states no length holds no message', async () => {
  const { server } = await serve({ demo: true });
  const { socket, closed } = bareSocket(server.port);
  const type = 'content-type: application/json\r\naccept: application/json, text/event-stream';
  socket.write(`POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n${type}\r\n\r\n`);
  const answer = await closed;
  expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  expect(answer).toContain('The body is not JSON.');
});
