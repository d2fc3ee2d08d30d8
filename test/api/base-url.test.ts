import { describe, expect } from 'vitest';
import { readConfig } from '../../src/config/read-config.ts';
import { ad, documented } from '../support/faulty-upstream.ts';
import { test } from '../support/fixtures.ts';
import { freePort } from '../support/free-port.ts';
import { startServer } from '../support/server.ts';

test.beforeEach(({ upstream }) => upstream.does(documented));

const started = (settings: Record<string, string>) =>
  startServer({ config: readConfig({ AD_LIBRARY_API_KEY: 'svc_live_address', ...settings }) });

describe('a base address', () => {
  test.for([
    'http://127.1:PORT',
    'HTTP://127.0.0.1:PORT/',
    'http://LOCALHOST:PORT',
    'http://0x7f.0.0.1:PORT',
    'http://2130706433:PORT',
    'http://127.0.0.1:PORT/a/../',
    ' http://127.0.0.1:PORT// ',
  ])('works as %s', async (spelling, { upstream }) => {
    const port = new URL(upstream.baseUrl).port;
    const { call, close } = await started({ AD_LIBRARY_BASE_URL: spelling.replace('PORT', port) });
    expect((await call('get_ad', { adId: ad.id })).isError).toBe(false);
    await close();
  });

  test('that cannot be reached is named by the error, with its path left out', async () => {
    const address = `http://127.0.0.1:${await freePort()}`;
    const { call, close } = await started({ AD_LIBRARY_BASE_URL: `${address}/prefix` });
    const { text, error } = await call('whoami');
    expect(error).toMatchObject({ kind: 'network' });
    expect(text).toContain(`${address}: ECONNREFUSED.`);
    expect(text).toContain('Nothing was sent, nothing was charged.');
    await close();
  });
});

test('a missing key and a missing address are both named', async () => {
  const server = await startServer({ config: readConfig({}) });
  expect((await server.call('whoami')).text).toContain(
    'Missing: AD_LIBRARY_API_KEY (in the host\'s form: "API key") and AD_LIBRARY_BASE_URL (in the host\'s form: "API address").',
  );
  await server.close();
  const addressless = await started({});
  expect((await addressless.call('whoami')).text).toContain('Missing: AD_LIBRARY_BASE_URL');
  await addressless.close();
});
