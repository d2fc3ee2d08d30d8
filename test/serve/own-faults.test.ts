import { expect, test } from 'vitest';
import { openApp } from '../../src/app.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { createLog } from '../../src/log/log.ts';
import { createHttpApp } from '../../src/serve/http/app.ts';
import { listen } from '../../src/serve/http/server.ts';
import { keepAlive } from '../support/http.ts';

async function openDemo() {
  const logged: string[] = [];
  const log = createLog('error', (line) => logged.push(line));
  const config = { ...readConfig({}), demo: true };
  const app = await openApp({ config, log, now: Date.now, elapsed: Date.now, random: Math.random });
  return { app, config, log, logged };
}

test('an error of the demo library is logged, and callers get no details', async () => {
  const { app, logged } = await openDemo();
  const asking = new Request('http://demo.invalid/v1/whoami', {
    headers: { authorization: `Bearer ${app.credentials.apiKey}` },
  });
  expect((await app.pictures?.(asking.clone()))?.status).toBe(200);
  await app.close();
  const answer = await app.pictures?.(asking);
  expect(answer?.status).toBe(500);
  expect(await answer?.text()).not.toContain('closed');
  expect(logged.join('')).toContain('the demo library failed');
});

test('an error of the HTTP server is a 500 without details, and the connection stays open', async () => {
  const { app, config, log, logged } = await openDemo();
  const http = createHttpApp({
    catalog: app.catalog,
    log,
    now: Date.now,
    onCall: () => {},
    allowed: config,
    callers: { demo: app.credentials },
    pictures: async () => {
      throw new Error('the paint is dry');
    },
    limits: { atOnce: 1, perKey: 1, waiting: 1, waitingPerKey: 1 },
  });
  const listener = await listen(http.fetch, { host: '127.0.0.1', port: 0 });
  const { send, close } = keepAlive(listener.address);
  const { status, json, text } = await send({ method: 'GET', path: '/media/a.jpg' });
  expect({ status, json }).toMatchObject({ status: 500, json: { error: { code: -32_000 } } });
  expect(text).not.toContain('paint');
  expect(logged.join('')).toContain('the paint is dry');
  expect((await send({ method: 'GET', path: '/healthz' })).status).toBe(200);
  await close();
  await listener.close(0);
  await app.close();
});
