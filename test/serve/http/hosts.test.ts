import { afterAll, beforeAll, expect, test } from 'vitest';
import { callOf, goodHeaders, type HttpServer, keepAlive, startHttp } from '../../support/http.ts';

let server: HttpServer;
beforeAll(async () => {
  server = await startHttp({ demo: true });
});
afterAll(() => server.close(0));

const get = (path: string, host: string) => keepAlive(server.origin).send({ method: 'GET', path, headers: { host } });

test.each(['/healthz', '/readyz'])('%s answers probes that use an address, and no foreign name', async (path) => {
  for (const host of ['10.1.2.3:3000', '127.0.0.1', '[::1]:3000', '[2001:db8::1]', 'localhost:3000']) {
    expect((await get(path, host)).status, host).toBe(200);
  }
  for (const host of ['evil.example', '10.1.2.3.evil.example', 'localhost.evil.example:3000']) {
    expect((await get(path, host)).status, host).toBe(403);
  }
});

test('an address is no name of ours where calls are made', async () => {
  const headers = { ...goodHeaders(), host: '10.1.2.3' };
  const { status } = await keepAlive(server.origin).send({ headers, body: JSON.stringify(callOf('whoami')) });
  expect(status).toBe(403);
});

test.each([
  ['AD_LIBRARY_ALLOWED_HOSTS (--allowed-hosts)', { host: 'evil.example' }],
  ['AD_LIBRARY_ALLOWED_ORIGINS (--allowed-origins)', { origin: 'http://localhost' }],
])('a refusal names %s, and nothing that came with the request', async (setting, header) => {
  const { status, text } = await keepAlive(server.origin).send({ headers: { ...goodHeaders(), ...header } });
  expect(status).toBe(403);
  expect(text).toContain(setting);
  expect(text).not.toContain('evil');
});
