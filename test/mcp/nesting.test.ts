import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { connectHttp, connectStdio, type TestClient } from '../support/clients.ts';
import { documented, startUpstream, type Upstream } from '../support/faulty-upstream.ts';
import { callOf, type HttpServer, startHttp } from '../support/http.ts';
import { start } from '../support/process.ts';

let upstream: Upstream;
let http: HttpServer;
beforeAll(async () => {
  upstream = await startUpstream();
  http = await startHttp({ baseUrl: upstream.baseUrl });
});
afterAll(async () => {
  await http.close();
  await upstream.close();
});
beforeEach(() => upstream.does(documented));

const nestedJson = (levels: number) => `${'{"a":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`;
const nested = (levels: number) => JSON.parse(nestedJson(levels));
const listJson = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
const list = (levels: number) => JSON.parse(listJson(levels));

const overStdio = (kind: 'v1' | 'v2 auto') =>
  connectStdio(kind, [], { AD_LIBRARY_API_KEY: 'svc_live_nesting', AD_LIBRARY_BASE_URL: upstream.baseUrl });
const connections: Record<string, () => Promise<TestClient>> = {
  'v1 over stdio': () => overStdio('v1'),
  'v2 over stdio': () => overStdio('v2 auto'),
  'v1 over HTTP': () => connectHttp('v1', http.url, 'svc_live_nesting'),
  'v2 over HTTP': () => connectHttp('v2 auto', http.url, 'svc_live_nesting'),
};

describe.each(Object.entries(connections))('a %s client', (_, connect) => {
  let client: TestClient;
  beforeAll(async () => {
    client = await connect();
  });
  afterAll(() => client.close());

  test.each([
    ['filters', { filters: nested(33) }],
    ['filters', { filters: nested(50) }],
    ['filters', { filters: nestedJson(5000) }],
    ['filters', { filters: { countries: list(50), more: 1 } }],
    ['limit', { limit: list(50) }],
    ['surprise', { surprise: nested(50) }],
  ])('learns that %s is nested too deeply', async (name, args) => {
    const { text, error } = await client.call('search_ads', args);
    expect(error).toEqual({ kind: 'invalid_request', retryable: false });
    expect(text).toContain(`${name}: nested too deeply, at most 32 levels of objects and lists are allowed.`);
    expect(text).toContain('Nothing was sent, nothing was charged.');
    expect(upstream.requests).toEqual([]);
  });

  test('may nest filters 32 levels deep', async () => {
    expect((await client.call('search_ads', { filters: nested(32), fresh: true })).isError).toBe(false);
    expect(JSON.parse(upstream.requests[0]?.body ?? '')).toEqual(nested(32));
  });
});

/** Deeper than a client of the SDKs can write; over HTTP no message may be. */
test.each([5000, 100_000])('a call nested %i levels deep over stdio is refused in words', async (levels) => {
  const call = JSON.stringify(callOf('search_ads', { filters: '?' })).replace('"?"', `{"a":${listJson(levels)}}`);
  const running = start([], { AD_LIBRARY_API_KEY: 'svc_live_nesting', AD_LIBRARY_BASE_URL: upstream.baseUrl });
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } };
  const hello = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
  running.child.stdin?.end(`${hello}\n${call}\n`);
  const { stdout } = await running.ended;
  expect(stdout).toContain('"kind":"invalid_request"');
  expect(stdout).toContain('filters: nested too deeply, at most 32 levels of objects and lists are allowed.');
});
