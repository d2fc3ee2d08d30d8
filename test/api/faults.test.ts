import { describe, expect } from 'vitest';
import { everyTool } from '../support/every-tool.ts';
import { delays, documented, faults } from '../support/faulty-upstream.ts';
import { upstreamTest } from '../support/fixtures.ts';
import type { Result, TestServer } from '../support/server.ts';
import { uuidOf } from '../support/uuid-of.ts';

/** Looked for in everything that comes out. */
const canary = 'svc_live_CANARY0123456789abcdef';

/** Nothing is kept: every call goes out. */
const test = upstreamTest({ config: { apiKey: canary, cacheSeconds: 0 } }).extend('impatient', ({ start }) =>
  start({ timeoutMs: 150 }),
);
test.beforeEach(({ upstream }) => upstream.does(documented));

/** A result of the right kind that a person could act on, and nothing of ours in it that should not be. */
function expectError({ logged }: TestServer, result: Result, kinds: readonly string[]): void {
  expect(result.raw.structuredContent).toBeUndefined();
  expect(result.isError).toBe(true);
  expect(kinds).toContain(result.error?.kind);
  expect(result.error?.retryable).toBeTypeOf('boolean');
  expect(result.text).toMatch(/Retrying (may|the same call will not) help/);
  expect(result.text.length).toBeLessThan(3000);
  expectNothingLeaked(logged, result);
}

function expectNothingLeaked(logged: string[], result: Result): void {
  const everything = JSON.stringify(result.raw) + logged.join('');
  expect(everything).not.toContain('CANARY');
  expect(JSON.stringify(result.raw)).not.toMatch(/\bat .+\.(ts|js):\d+/);
  expect(everything).not.toContain('a tool failed');
}

/** Requests a read may make: three where repeating is free, one where it may have been charged. */
const mostRequests = (tool: string, gated: boolean) => (gated ? 1 : tool === 'add_collection_item' ? 2 : 3);

describe.each(everyTool)('$tool', ({ tool, args, gated }) => {
  test('gives its result when the service is as documented', async ({ server }) => {
    const result = await server.call(tool, args);
    expect(result.isError).toBe(false);
    expect(result.data).toMatchObject({
      receipt: { charged: gated ? 1 : 0, remaining: 100, cached: false, requestId: 'req-1' },
    });
    expectNothingLeaked(server.logged, result);
  });

  test.for(Object.keys(faults) as (keyof typeof faults)[])('a service that %s', async (fault, { upstream, server }) => {
    upstream.does(faults[fault]);
    const result = await server.call(tool, args);
    const isCut = ['resets', 'closes without a word', 'breaks off in the body'].includes(fault);
    expectError(server, result, [isCut ? 'network' : 'unexpected_response']);
    expect(upstream.requests).toHaveLength(isCut ? mostRequests(tool, gated) : 1);
    if (gated) expect(result.text).toContain('unknown whether the service charged');

    upstream.does(documented);
    expect((await server.call(tool, args)).isError).toBe(false);
  });

  test.for(Object.keys(delays) as (keyof typeof delays)[])(
    'a service that %s',
    async (delay, { upstream, impatient }) => {
      upstream.does(delays[delay]);
      const started = performance.now();
      const result = await impatient.call(tool, args);
      expect(performance.now() - started).toBeLessThan(1000);
      expectError(impatient, result, ['timeout']);
      expect(upstream.requests).toHaveLength(1);
      await upstream.requests[0]?.left;

      upstream.does(documented);
      expect((await impatient.call(tool, args)).isError).toBe(false);
    },
  );
});

test('a service that does not listen is reported as unreachable, with nothing sent', async ({ start }) => {
  const nowhere = await start({ baseUrl: 'http://127.0.0.1:9' });
  const result = await nowhere.call('search_ads');
  expectError(nowhere, result, ['network']);
  expect(result.text).toContain('could not be reached');
  expect(result.text).toContain('Nothing was sent, nothing was charged.');
});

test('a charge stated before the answer broke off is reported', async ({ upstream, server }) => {
  upstream.does((_, response) => {
    response.writeHead(200, {
      'x-service-credits-charged': '3',
      'x-service-request-id': 'req-7',
      'content-length': '99',
    });
    response.write('{');
    setImmediate(() => response.socket?.destroy());
  });
  const { text, error } = await server.call('search_ads');
  expect(error).toMatchObject({ kind: 'network', status: 200, requestId: 'req-7' });
  expect(text).toContain('charged 3 credits');
  expect(text).toContain('Request id: req-7');
});

test('answers in another order than the calls reach the right callers', async ({ upstream, server }) => {
  const held: (() => void)[] = [];
  upstream.does((request, response) => {
    const id = (request.url ?? '').split('/').at(-1);
    held.push(() => response.writeHead(200, {}).end(JSON.stringify({ id, headline: `Ad ${id}` })));
    if (held.length === 5) for (const answer of held.reverse()) answer();
  });
  const ids = ['a', 'b', 'c', 'd', 'e'].map(uuidOf);
  const results = await Promise.all(ids.map((adId) => server.call('get_ad', { adId })));
  expect(results.map(({ data }) => data.ad.id)).toEqual(ids);
});
