import { describe, expect } from 'vitest';
import { connectHttp, connectStdio, type TestClient } from '../support/clients.ts';
import { documented } from '../support/faulty-upstream.ts';
import { test as base } from '../support/fixtures.ts';
import { callOf, startHttp } from '../support/http.ts';
import { start } from '../support/process.ts';

const connections = ['v1 over stdio', 'v2 over stdio', 'v1 over HTTP', 'v2 over HTTP'] as const;

const test = base.extend('clients', { scope: 'file' }, async ({ upstream }, { onCleanup }) => {
  const settings = { AD_LIBRARY_API_KEY: 'svc_live_nesting', AD_LIBRARY_BASE_URL: upstream.baseUrl };
  const http = await startHttp({ baseUrl: upstream.baseUrl });
  const clients: Record<(typeof connections)[number], TestClient> = {
    'v1 over stdio': await connectStdio('v1', [], settings),
    'v2 over stdio': await connectStdio('v2 auto', [], settings),
    'v1 over HTTP': await connectHttp('v1', http.url, 'svc_live_nesting'),
    'v2 over HTTP': await connectHttp('v2 auto', http.url, 'svc_live_nesting'),
  };
  onCleanup(async () => {
    for (const client of Object.values(clients)) await client.close();
    await http.close();
  });
  return clients;
});
test.beforeEach(({ upstream }) => upstream.does(documented));

const nestedJson = (levels: number) => `${'{"a":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`;
const nested = (levels: number) => JSON.parse(nestedJson(levels));
const listJson = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
const list = (levels: number) => JSON.parse(listJson(levels));

describe.each(connections)('a %s client', (connection) => {
  test.for([
    ['filters', { filters: nested(33) }],
    ['filters', { filters: nested(50) }],
    ['filters', { filters: nestedJson(5000) }],
    ['filters', { filters: { countries: list(50), more: 1 } }],
    ['limit', { limit: list(50) }],
    ['surprise', { surprise: nested(50) }],
  ] as const)('learns that %s is nested too deeply', async ([name, args], { upstream, clients }) => {
    const { text, error } = await clients[connection].call('search_ads', args);
    expect(error).toEqual({ kind: 'invalid_request', retryable: false });
    expect(text).toContain(`${name}: nested too deeply, at most 32 levels of objects and lists are allowed.`);
    expect(text).toContain('Nothing was sent, nothing was charged.');
    expect(upstream.requests).toEqual([]);
  });

  test('may nest filters 32 levels deep', async ({ upstream, clients }) => {
    expect((await clients[connection].call('search_ads', { filters: nested(32), fresh: true })).isError).toBe(false);
    expect(JSON.parse(upstream.requests[0]?.body ?? '')).toEqual(nested(32));
  });
});

/** Deeper than a client of the SDKs can write; over HTTP no message may be. */
test.for([5000, 100_000])(
  'a call nested %i levels deep over stdio is refused in words',
  async (levels, { upstream }) => {
    const call = JSON.stringify(callOf('search_ads', { filters: '?' })).replace('"?"', `{"a":${listJson(levels)}}`);
    const running = start([], { AD_LIBRARY_API_KEY: 'svc_live_nesting', AD_LIBRARY_BASE_URL: upstream.baseUrl });
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } };
    const hello = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
    running.child.stdin?.end(`${hello}\n${call}\n`);
    const { stdout } = await running.ended;
    expect(stdout).toContain('"kind":"invalid_request"');
    expect(stdout).toContain('filters: nested too deeply, at most 32 levels of objects and lists are allowed.');
  },
);
