import { createServer, request as forward, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect } from 'vitest';
import { freshServiceTest } from '../../support/fixtures.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const root = temporaryFolder();
let folders = 0;

const test = freshServiceTest().extend('proxy', async ({ service }, { onCleanup }) => {
  const proxy = { status: 200, baseUrl: '' };
  const server = createServer((incoming: IncomingMessage, response) => {
    if (proxy.status !== 200 && incoming.url?.endsWith('/whoami')) {
      const error = { code: 'failed', message: 'failed', requestId: 'r' };
      response.writeHead(proxy.status, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
      return;
    }
    const { method, headers } = incoming;
    const onwards = forward(`${service.baseUrl}${incoming.url}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    incoming.pipe(onwards);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  proxy.baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  onCleanup(() => {
    server.closeAllConnections();
    server.close();
  });
  return proxy;
});

const question = { filters: { countries: ['DE'], displayFormat: ['VIDEO'] }, maxCredits: 100 };
const countAds = { sql: 'SELECT count(*) FROM ads' };

test('while the service cannot say whose key it is, nothing kept is paid for again or taken for nothing', async ({
  service,
  proxy,
  start,
}) => {
  const config = { baseUrl: proxy.baseUrl, files: join(root, `${++folders}`) };
  const before = await start(config);
  // The service makes its data with the first call, which takes a while where the machine is busy.
  await before.call('whoami');
  expect((await before.call('gather_ads', question)).data).toMatchObject({ complete: true });
  await before.stop();
  const paid = service.paid();
  const server = await start(config);
  proxy.status = 503;
  for (const [tool, args] of [
    ['query_ads', countAds],
    ['export_ads', {}],
    ['count_ads', { filters: question.filters }],
    ['gather_ads', question],
  ] as const)
    expect((await server.call(tool, args)).error, tool).toMatchObject({ kind: 'unavailable', retryable: true });
  expect(service.paid()).toBe(paid);
  const { isError } = await server.call('search_ads', { filters: { displayFormat: ['IMAGE'] }, limit: 5 });
  expect(isError).toBe(false);
  proxy.status = 200;
  expect((await server.call('query_ads', countAds)).data.rows).toEqual([[64]]);
  expect((await server.call('gather_ads', question)).data).toMatchObject({ complete: true, receipt: { charged: 0 } });
});

test('what is only in memory is written when the server closes', async ({ proxy, start }) => {
  const config = { baseUrl: proxy.baseUrl, files: join(root, `${++folders}`) };
  const first = await start(config);
  proxy.status = 503;
  await first.call('search_ads', { limit: 5 });
  proxy.status = 200;
  await first.stop();
  expect((await (await start(config)).call('query_ads', countAds)).data.rows).toEqual([[5]]);
});
