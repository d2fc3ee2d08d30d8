import { describe, expect } from 'vitest';
import { connectHttp, connectStdio, type TestClient } from '../support/clients.ts';
import { documented, type Upstream } from '../support/faulty-upstream.ts';
import { test } from '../support/fixtures.ts';
import { callOf, type HttpServer, startHttp } from '../support/http.ts';
import { start } from '../support/process.ts';

const httpTest = test.extend('http', { scope: 'file' }, async ({ upstream }, { onCleanup }) => {
  const http = await startHttp({ baseUrl: upstream.baseUrl });
  onCleanup(http.close);
  return http;
});
httpTest.beforeEach(({ upstream }) => upstream.does(documented));

const nestedJson = (levels: number) => `${'{"a":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`;
const nested = (levels: number) => JSON.parse(nestedJson(levels));
const listJson = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
const list = (levels: number) => JSON.parse(listJson(levels));

interface Places {
  upstream: Upstream;
  http: HttpServer;
}
const overStdio = ({ upstream }: Places, kind: 'v1' | 'v2 auto') =>
  connectStdio(kind, [], { AD_LIBRARY_API_KEY: 'svc_live_nesting', AD_LIBRARY_BASE_URL: upstream.baseUrl });
const connections: Record<string, (places: Places) => Promise<TestClient>> = {
  'v1 over stdio': (places) => overStdio(places, 'v1'),
  'v2 over stdio': (places) => overStdio(places, 'v2 auto'),
  'v1 over HTTP': ({ http }) => connectHttp('v1', http.url, 'svc_live_nesting'),
  'v2 over HTTP': ({ http }) => connectHttp('v2 auto', http.url, 'svc_live_nesting'),
};

describe.each(Object.entries(connections))('a %s client', (_, connect) => {
  const test = httpTest.extend('client', { scope: 'file' }, async ({ upstream, http }, { onCleanup }) => {
    const client = await connect({ upstream, http });
    onCleanup(client.close);
    return client;
  });

  test.for([
    ['filters', { filters: nested(33) }],
    ['filters', { filters: nested(50) }],
    ['filters', { filters: nestedJson(5000) }],
    ['filters', { filters: { countries: list(50), more: 1 } }],
    ['limit', { limit: list(50) }],
    ['surprise', { surprise: nested(50) }],
  ] as const)('is told that %s is nested too deep', async ([name, args], { upstream, client }) => {
    const { text, error } = await client.call('search_ads', args);
    expect(error).toEqual({ kind: 'invalid_request', retryable: false });
    expect(text).toContain(`${name}: nested too deep, at most 32 levels of objects and lists are taken.`);
    expect(text).toContain('Nothing was sent, nothing was charged.');
    expect(upstream.requests).toEqual([]);
  });

  test('may nest filters 32 levels deep', async ({ upstream, client }) => {
    expect((await client.call('search_ads', { filters: nested(32), fresh: true })).isError).toBe(false);
    expect(JSON.parse(upstream.requests[0]?.body ?? '')).toEqual(nested(32));
  });
});

/** Deeper than a client of the SDKs can write; over HTTP no message may be. */
httpTest.for([5000, 100_000])(
  'a call nested %i levels deep over stdio is refused in words',
  async (levels, { upstream }) => {
    const call = JSON.stringify(callOf('search_ads', { filters: '?' })).replace('"?"', `{"a":${listJson(levels)}}`);
    const running = start([], { AD_LIBRARY_API_KEY: 'svc_live_nesting', AD_LIBRARY_BASE_URL: upstream.baseUrl });
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } };
    const hello = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
    running.child.stdin?.end(`${hello}\n${call}\n`);
    const { stdout } = await running.ended;
    expect(stdout).toContain('"kind":"invalid_request"');
    expect(stdout).toContain('filters: nested too deep, at most 32 levels of objects and lists are taken.');
  },
);
