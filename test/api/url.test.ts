import fc from 'fast-check';
import { describe, expect } from 'vitest';
import type { AdLibraryError } from '../../src/api/errors.ts';
import { operations } from '../../src/api/operations.ts';
import { buildUrl } from '../../src/api/url.ts';
import { readConfig } from '../../src/config/read-config.ts';
import { ad, respondAsDocumented } from '../support/faulty-upstream.ts';
import { test } from '../support/fixtures.ts';
import { findFreePort } from '../support/loopback.ts';
import { startServer } from '../support/server.ts';

test.beforeEach(({ upstream }) => upstream.respondWith(respondAsDocumented));

const started = (settings: Record<string, string>) =>
  startServer({ config: readConfig({ AD_LIBRARY_API_KEY: 'svc_live_address', ...settings }) });

describe('The base URL of the API', () => {
  test.for([
    'http://127.1:PORT',
    'HTTP://127.0.0.1:PORT/',
    'http://LOCALHOST:PORT',
    'http://0x7f.0.0.1:PORT',
    'http://2130706433:PORT',
    'http://127.0.0.1:PORT/a/../',
    ' http://127.0.0.1:PORT// ',
  ])('the server accepts the base URL "%s" although its spelling is unusual', async (spelling, { upstream }) => {
    const port = new URL(upstream.baseUrl).port;
    const { call, close } = await started({ AD_LIBRARY_BASE_URL: spelling.replace('PORT', port) });
    expect((await call('get_ad', { adId: ad.id })).isError).toBe(false);
    await close();
  });

  test('a connection error shows the origin of the base URL without its path', async () => {
    const address = `http://127.0.0.1:${await findFreePort()}`;
    const { call, close } = await started({ AD_LIBRARY_BASE_URL: `${address}/prefix` });
    const { text, error } = await call('search_ads');
    expect(error).toMatchObject({ kind: 'network', retryable: true });
    for (const expectedText of ['could not be reached', 'AD_LIBRARY_BASE_URL']) expect(text).toContain(expectedText);
    expect(text).toContain(`${address}: ECONNREFUSED.`);
    expect(text).toContain('Nothing was sent, nothing was charged.');
    await close();
  });

  test('a call without a base URL or an API key fails, and its error names the missing settings', async ({
    upstream,
  }) => {
    const key = 'AD_LIBRARY_API_KEY (in the host\'s form: "API key")';
    const address = 'AD_LIBRARY_BASE_URL (in the host\'s form: "API address")';
    for (const [settings, missing] of [
      [{}, address],
      [{ AD_LIBRARY_API_KEY: '', AD_LIBRARY_BASE_URL: upstream.baseUrl }, key],
      [{ AD_LIBRARY_API_KEY: '' }, `${key} and ${address}`],
    ] as const) {
      const { call, close } = await started(settings);
      for (const tool of ['search_ads', 'whoami']) {
        const { text, error } = await call(tool);
        expect(error).toEqual({ kind: 'no_api_key', retryable: false });
        expect(text).toContain(`Missing: ${missing}.`);
        expect(text).toContain('AD_LIBRARY_DEMO');
      }
      await close();
    }
    expect(upstream.requests).toEqual([]);
  });
});

describe('Request URLs', () => {
  const addressFor = (id: string, operation: keyof typeof operations = 'getPage') =>
    buildUrl(
      { operation: operations[operation], path: { adId: id, pageId: id, collectionId: id }, query: {} },
      'https://api.example.com/prefix/',
    );

  /** Ids as users, models and attackers may write them. */
  const ids = fc.oneof(
    fc.constantFrom('', '.', '..', '../account', 'a/../../account', '..\\account', 'x/..', '\ud800', 'x'.repeat(301)),
    fc.string({ unit: 'binary', maxLength: 320 }),
    fc.string({
      unit: fc.constantFrom('.', '/', '\\', '%', '2', 'e', 'f', '?', '#', ';', ' ', '\0', '\n', '@', ':'),
      maxLength: 12,
    }),
  );

  test('an item id with special characters cannot change the endpoint of a request URL', () => {
    expect(() => addressFor('x'.repeat(301))).toThrow(/is not an id/);
    fc.assert(
      fc.property(ids, fc.constantFrom('getPage', 'getAd', 'listCollectionItems'), (id, operation) => {
        let address: string;
        try {
          address = addressFor(id, operation);
        } catch (error) {
          expect((error as AdLibraryError).failure).toMatchObject({ kind: 'invalid_request', wasSent: false });
          return;
        }
        const { origin, pathname, search, hash } = new URL(address);
        const expected = `/prefix${operations[operation].path.replace(/\{\w+\}/, '([^/]+)')}`;
        expect([origin, search, hash]).toEqual(['https://api.example.com', '', '']);
        const [, segment = ''] = new RegExp(`^${expected}$`).exec(pathname) ?? [];
        expect(decodeURIComponent(segment)).toBe(id);
        const decoded = new URL(
          `https://api.example.com${pathname.replaceAll(/%2f/gi, '/').replaceAll(/%5c/gi, '\\')}`,
        );
        expect(decoded.pathname.startsWith(expected.split('(')[0] ?? '')).toBe(true);
      }),
      { numRuns: 500 },
    );
  });
});
