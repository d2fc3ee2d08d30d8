import { expect, onTestFinished, test } from 'vitest';
import { openApp } from '../../src/app.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { createLogger } from '../../src/logging/log.ts';
import { createHttpApp } from '../../src/transports/http/app.ts';
import { listen } from '../../src/transports/http/server.ts';
import { openConnection } from '../support/http.ts';

test('an internal error is logged in full and returned as status 500 without details', async () => {
  const logged: string[] = [];
  const log = createLogger('error', (line) => logged.push(line));
  const config = { ...readConfig({}), demo: true };
  const app = await openApp({ config, log, now: Date.now, monotonicNow: Date.now, random: Math.random });
  let pictures = app.respondWithPicture;
  const headers = { authorization: `Bearer ${app.credentials.apiKey}` };
  const libraryRequest = new Request('http://demo.invalid/v1/whoami', { headers });
  const http = createHttpApp({
    catalog: app.catalog,
    log,
    monotonicNow: Date.now,
    onCall: () => {},
    allowedNames: config,
    authentication: { demo: app.credentials },
    serveDemoPicture: () => pictures?.(libraryRequest.clone()) ?? Promise.reject(new Error('no picture')),
    limits: { maxRunningCalls: 1, maxRunningCallsPerKey: 1, maxWaitingCalls: 1 },
  });
  const listener = await listen(http.fetch, { host: '127.0.0.1', port: 0 });
  onTestFinished(() => listener.close(0));
  const { send, close } = openConnection(listener.url);
  const requestPicture = () => send({ method: 'GET', path: '/media/a.jpg' });
  expect((await requestPicture()).status).toBe(200);

  await app.close();
  const answerOfClosedLibrary = await requestPicture();
  expect(answerOfClosedLibrary.status).toBe(500);
  expect(answerOfClosedLibrary.text).not.toContain('closed');
  expect(logged.join('')).toContain('the demo library failed');

  pictures = async () => {
    throw new Error('secret detail');
  };
  const { status, json, text } = await requestPicture();
  expect({ status, json }).toMatchObject({ status: 500, json: { error: { code: -32_000 } } });
  expect(text).not.toContain('detail');
  expect(logged.join('')).toContain('secret detail');
  expect(await send({ method: 'GET', path: '/healthz' })).toMatchObject({ status: 200, json: { status: 'ok' } });
  await close();
});
