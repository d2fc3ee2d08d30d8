import { expect, onTestFinished, test } from 'vitest';
import { keepAlive, startHttp } from '../../support/http.ts';
import { startService } from '../../support/service.ts';

test('tools that need no call serve only keys that the service accepted, and ask it once', async () => {
  const service = await startService();
  onTestFinished(service.close);
  const server = await startHttp({ baseUrl: service.baseUrl });
  onTestFinished(() => server.close(0));
  const { call, close } = keepAlive(server.origin);
  onTestFinished(() => void close());
  const query = async (key: string) =>
    (await call('query_ads', { sql: 'SELECT count(*) AS ads FROM ads' }, key)).json.result;

  const refused = await query('svc_live_madeup.1');
  const viewed = (await call('view_ads', { adIds: ['x'] }, 'svc_live_madeup.2')).json.result;
  for (const result of [refused, viewed])
    expect(result).toMatchObject({ isError: true, _meta: { 'ad-library/error': { kind: 'unauthorized' } } });
  expect(await query(service.apiKey)).toMatchObject({
    structuredContent: { rows: [[0]], receipt: { charged: 0, cached: true } },
  });
  await query(service.apiKey);
  expect(service.requests.filter((request) => request === 'GET /v1/whoami')).toHaveLength(3);
});
