import { expect } from 'vitest';
import { documented } from '../../support/faulty-upstream.ts';
import { test as base } from '../../support/fixtures.ts';
import { callOf, goodHeaders, type HttpServer, keepAlive, startHttp } from '../../support/http.ts';

const test = base.extend('server', { scope: 'file' }, async ({ upstream }, { onCleanup }) => {
  upstream.does(documented);
  const server = await startHttp({ baseUrl: upstream.baseUrl });
  onCleanup(() => server.close(0));
  return server;
});

const get = (server: HttpServer, path: string, host: string) =>
  keepAlive(server.origin).send({ method: 'GET', path, headers: { host } });

test.for(['/healthz', '/readyz'])(
  '%s answers probes that use an address, and no foreign name',
  async (path, { server }) => {
    for (const host of ['10.1.2.3:3000', '127.0.0.1', '[::1]:3000', '[2001:db8::1]', 'localhost:3000']) {
      expect((await get(server, path, host)).status, host).toBe(200);
    }
    for (const host of ['evil.example', '10.1.2.3.evil.example', 'localhost.evil.example:3000']) {
      expect((await get(server, path, host)).status, host).toBe(403);
    }
  },
);

test('an IP address is not an allowed host of the endpoint', async ({ server }) => {
  const headers = { ...goodHeaders(), host: '10.1.2.3' };
  const { status } = await keepAlive(server.origin).send({ headers, body: JSON.stringify(callOf('whoami')) });
  expect(status).toBe(403);
});

test.for([
  ['AD_LIBRARY_ALLOWED_HOSTS (--allowed-hosts)', { host: 'evil.example' }],
  ['AD_LIBRARY_ALLOWED_ORIGINS (--allowed-origins)', { origin: 'http://localhost' }],
] as const)('a refusal names %s, and nothing that came with the request', async ([setting, header], { server }) => {
  const { status, text } = await keepAlive(server.origin).send({ headers: { ...goodHeaders(), ...header } });
  expect(status).toBe(403);
  expect(text).toContain(setting);
  expect(text).not.toContain('evil');
});

test('a page of the origin that a request was sent to may call, where only this machine reaches the server', async ({
  upstream: { baseUrl },
  server,
  onTestFinished,
}) => {
  const open = await startHttp({ baseUrl, host: '0.0.0.0', allowedHosts: ['127.0.0.1', 'ads.example'] });
  onTestFinished(() => open.close(0));
  const statusOf = async ({ origin, port }: HttpServer, from: string, host = `127.0.0.1:${port}`) => {
    const headers = { ...goodHeaders(), host, origin: from };
    return (await keepAlive(origin).send({ headers, body: JSON.stringify(callOf('whoami')) })).status;
  };
  for (const name of ['127.0.0.1', 'localhost', '[::1]']) {
    const own = `${name}:${server.port}`;
    expect(await statusOf(server, `http://${own}`, own), name).toBe(200);
    expect(await statusOf(server, `https://${own}`, own), name).toBe(403);
    expect(await statusOf(server, `http://${name}:${server.port + 1}`, own), name).toBe(403);
    expect(await statusOf(server, `http://${name}`, own), name).toBe(403);
  }
  expect(await statusOf(server, 'null')).toBe(403);
  expect(await statusOf(server, 'http://evil.example', 'evil.example')).toBe(403);
  expect(await statusOf(open, `http://127.0.0.1:${open.port}`)).toBe(403);
  expect(await statusOf(open, 'http://ads.example', 'ads.example')).toBe(403);
});
