import { test as base, expect } from 'vitest';
import { callOf, goodHeaders, type HttpServer, keepAlive, startHttp } from '../../support/http.ts';

// biome-ignore lint/correctness/noEmptyPattern: Vitest reads there what a fixture depends on
const test = base.extend('server', { scope: 'file' }, async ({}, { onCleanup }) => {
  const server = await startHttp({ demo: true });
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
  ['AD_LIBRARY_ALLOWED_HOSTS', { host: 'evil.example' }],
  ['AD_LIBRARY_ALLOWED_ORIGINS', { origin: 'http://localhost' }],
] as const)('a refusal names %s, and nothing that came with the request', async ([setting, header], { server }) => {
  const { status, text } = await keepAlive(server.origin).send({ headers: { ...goodHeaders(), ...header } });
  expect(status).toBe(403);
  expect(text).toContain(setting);
  expect(text).not.toContain('evil');
});
