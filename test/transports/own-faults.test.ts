import { expect, onTestFinished, test } from 'vitest';
import { openApp } from '../../src/app.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { createLog } from '../../src/logging/log.ts';
import { createHttpApp } from '../../src/transports/http/app.ts';
import { listen } from '../../src/transports/http/server.ts';
import { openConnection } from '../support/http.ts';

test('an error of the demo library or of the HTTP server is a logged 500 without details, and the server goes on', async () => {
  const logged: string[] = [];
  const log = createLog('error', (line) => logged.push(line));
  const config = { ...readConfig({}), demo: true };
  const app = await openApp({ config, log, now: Date.now, elapsed: Date.now, random: Math.random });
  let pictures = app.pictures;
  const headers = { authorization: `Bearer ${app.credentials.apiKey}` };
  const asked = new Request('http://demo.invalid/v1/whoami', { headers });
  const http = createHttpApp({
    catalog: app.catalog,
    log,
    now: Date.now,
    onCall: () => {},
    allowedNames: config,
    callers: { demo: app.credentials },
    pictures: () => pictures?.(asked.clone()) ?? Promise.reject(new Error('nothing painted')),
    limits: { maxRunning: 1, maxRunningPerKey: 1, maxWaiting: 1 },
  });
  const listener = await listen(http.fetch, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => listener.close(0));
  const { send, close } = openConnection(listener.url);
  const picture = () => send({ method: 'GET', path: '/media/a.jpg' });
  expect((await picture()).status).toBe(200);

  await app.close();
  const closed = await picture();
  expect(closed.status).toBe(500);
  expect(closed.text).not.toContain('closed');
  expect(logged.join('')).toContain('the demo library failed');

  pictures = async () => {
    throw new Error('the paint is dry');
  };
  const { status, json, text } = await picture();
  expect({ status, json }).toMatchObject({ status: 500, json: { error: { code: -32_000 } } });
  expect(text).not.toContain('paint');
  expect(logged.join('')).toContain('the paint is dry');
  expect(await send({ method: 'GET', path: '/healthz' })).toMatchObject({ status: 200, json: { status: 'ok' } });
  await close();
});
