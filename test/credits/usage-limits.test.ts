import { describe, expect } from 'vitest';
import { canCostCredits } from '../../src/api/operations.ts';
import { tools } from '../../src/tools/catalog.ts';
import { joinNames } from '../../src/views/safe-text.ts';
import { deriveUuid } from '../support/derive-uuid.ts';
import {
  createCreditHeaders,
  createCreditStatus,
  createUsageLimit,
  respondAsDocumented,
  respondWithError,
  respondWithJson,
  type Upstream,
} from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import { createGate } from '../support/gate.ts';

let clock = 1_790_000_000_000;
const test = freshUpstreamTest({ config: { cacheSeconds: 0 }, now: () => clock });
test.beforeEach(({ upstream }) => {
  upstream.respondWith(respondWithError(429));
  upstream.credits = respondWithJson(createCreditStatus(createUsageLimit(400)));
});

const listPaths = (upstream: Upstream) => upstream.requests.map(({ method, path }) => `${method} ${path}`);

describe('A usage limit error', () => {
  test('a usage limit error says which limit is reached, the hourly or the daily one, and which tools still work', async ({
    upstream,
    server,
  }) => {
    const { text, error } = await server.call('search_ads');
    expect(error).toMatchObject({
      kind: 'usage_limit',
      retryable: true,
      status: 429,
      usageLimit: createUsageLimit(400),
    });
    expect(text).toContain('hourly window 400 of 400 credits used, daily window 400 of 5,000 credits used');
    expect(text).toContain('The hourly window is full. It should end within an hour; this is an estimate');
    const free = joinNames(tools.flatMap((tool) => (canCostCredits(tool) ? [] : tool.name)));
    expect(free).toContain('list_collections');
    expect(text).toContain(`Still working: ${free}, and cached answers`);
    expect(listPaths(upstream)).toEqual(['POST /v1/ads/search', 'GET /v1/credits']);
  });

  test('a usage limit error suggests a smaller request if neither the hourly nor the daily limit is fully used', async ({
    upstream,
    server,
  }) => {
    upstream.credits = respondWithJson(createCreditStatus(createUsageLimit(399)));
    const { text } = await server.call('search_ads');
    expect(text).toContain('hourly window 399 of 400');
    expect(text).toContain('Ask for less now');
    upstream.respondWith(respondAsDocumented);
    expect((await server.call('search_ads', { limit: 1 })).isError).toBe(false);
  });

  test('a usage limit error of a call that was not sent says that its numbers are from the last check', async ({
    upstream,
    server,
  }) => {
    await server.call('search_ads');
    upstream.respondWith(respondAsDocumented);
    const { text } = await server.call('search_ads', { limit: 1 });
    expect(text).toContain('Usage when last checked: hourly window 400 of 400 credits used');
    expect(text).toContain('Nothing was sent');
  });

  test('a usage limit error does not blame the hourly or daily limit if both still allow enough credits for the call', async ({
    upstream,
    server,
  }) => {
    upstream.credits = respondWithJson(createCreditStatus(createUsageLimit(3)));
    const { text } = await server.call('search_ads');
    expect(text).toContain('because of a usage limit, although neither usage window is full. (HTTP 429');
    expect(text).toContain('Usage: hourly window 3 of 400 credits used');
    expect(text).not.toContain('this call would exceed one');
    expect(text).not.toContain('The call costs more');
  });

  test('a 429 response from a gateway is not reported as a usage limit of the service', async ({
    upstream,
    server,
  }) => {
    upstream.credits = respondWithJson(createCreditStatus(createUsageLimit(3)));
    upstream.respondWith((_, response) => void response.writeHead(429).end('slow down'));
    const { text, error } = await server.call('search_ads');
    expect(error).toMatchObject({ kind: 'usage_limit', retryable: true, status: 429 });
    expect(text).toContain('A proxy or a firewall may limit the number of calls. Try again later.');
    expect(text).not.toMatch(/usage limit|this call would exceed one|Still working/);
  });

  const date = 'Sun, 29 Nov 2026 12:00:00 GMT';
  test.for<[headers: Record<string, string>, seconds: number | undefined]>([
    [{ 'retry-after': '2' }, 2],
    [{ 'retry-after': 'Sun, 29 Nov 2026 12:01:30 GMT', date }, 90],
    [{ 'retry-after': '9'.repeat(30) }, 86_400],
    [{ 'retry-after': '0' }, undefined],
    [{ 'retry-after': '-5' }, undefined],
    [{ 'retry-after': 'Sun, 29 Nov 2026 11:00:00 GMT', date }, undefined],
    [{ 'retry-after': 'soon' }, undefined],
    [{}, undefined],
  ])(
    'the error after a response with the headers %j says how many seconds to wait: %s',
    async ([headers, seconds], { upstream, server }) => {
      const body = { error: { code: 'rate', message: 'Too many requests.', requestId: 'req-e' } };
      upstream.respondWith(respondWithJson(body, { status: 429, headers }));
      const { text, error } = await server.call('search_ads');
      expect(error?.retryAfterSeconds).toBe(seconds);
      if (seconds === undefined) expect(text).not.toContain('asks to wait');
      else
        expect(text).toContain(
          `The response asks to wait ${seconds.toLocaleString('en-US')} seconds before the next call.`,
        );
    },
  );

  test('the server reports a usage limit error even if it cannot read the credit status', async ({
    upstream,
    server,
  }) => {
    upstream.credits = respondWithError(403);
    const { text, error } = await server.call('search_ads');
    expect(error).toMatchObject({ kind: 'usage_limit', status: 429 });
    expect(error).not.toHaveProperty('usageLimit');
    expect(text).toContain('get_credits');
  });
});

test('usage limit errors of concurrent calls lead to only one request for the credit status', async ({
  upstream,
  server,
}) => {
  const gate = createGate();
  upstream.respondWith(
    respondWithError(429),
    (request, response) => void gate.opened.then(() => respondWithError(429)(request, response)),
  );
  const first = server.call('search_ads', { limit: 1 });
  await upstream.waitForRequests(1);
  const second = server.call('search_ads', { limit: 2 });
  await upstream.waitForRequests(3);
  await first;
  gate.open();
  expect((await second).error).toMatchObject({ kind: 'usage_limit', usageLimit: { hourlyCredits: 400 } });
  expect(listPaths(upstream).filter((path) => path === 'GET /v1/credits')).toHaveLength(1);
});

describe('A reached hourly or daily usage limit', () => {
  test.beforeEach(async ({ upstream, server }) => {
    await server.call('search_ads');
    upstream.respondWith(respondAsDocumented);
  });

  test('when an API key has reached a usage limit, the server blocks only the paid calls with this key', async ({
    upstream,
    server,
  }) => {
    for (const limit of [1, 2, 3]) {
      const { error, text } = await server.call('search_ads', { limit });
      expect(error).toMatchObject({ kind: 'usage_limit', usageLimit: { hourlyCredits: 400 } });
      expect(text).toContain('Nothing was sent, nothing was charged.');
    }
    expect(listPaths(upstream)).toEqual([]);
    const saving = { collectionId: deriveUuid('c'), itemType: 'ads', itemId: deriveUuid('x') };
    for (const tool of ['whoami', 'get_account', 'list_collections', 'add_collection_item'])
      expect((await server.call(tool, tool.startsWith('add') ? saving : {})).isError).toBe(false);
    expect(upstream.requests).toHaveLength(4);
    const otherServer = await server.connectAs('svc_live_other');
    expect((await otherServer.call('search_ads')).isError).toBe(false);
  });

  test('paid calls resume as soon as get_credits shows that the usage limit was reset', async ({
    upstream,
    server,
  }) => {
    upstream.credits = respondWithJson(createCreditStatus(createUsageLimit(0)));
    await server.call('get_credits');
    expect((await server.call('search_ads')).isError).toBe(false);
  });

  test('the server requests the credit status at most once a minute while an API key has reached its usage limit', async ({
    upstream,
    server,
  }) => {
    clock += 59_999;
    await server.call('search_ads');
    expect(listPaths(upstream)).toEqual([]);
    clock += 1;
    await Promise.all([1, 2, 3, 4].map((limit) => server.call('search_ads', { limit })));
    expect(listPaths(upstream)).toEqual(['GET /v1/credits']);
    clock += 60_000;
    upstream.credits = respondWithJson(createCreditStatus(createUsageLimit(3)));
    expect((await server.call('search_ads')).isError).toBe(false);
  });

  test('a paid call is sent to the API even if the credit status cannot be read', async ({ upstream, server }) => {
    upstream.credits = respondWithError(500);
    clock += 60_000;
    for (const limit of [1, 2]) expect((await server.call('search_ads', { limit })).isError).toBe(false);
  });
});

test('the server blocks the next paid call after get_credits shows that a usage limit is reached', async ({
  upstream,
  server,
}) => {
  upstream.respondWith(respondAsDocumented);
  await server.call('get_credits');
  expect((await server.call('search_ads')).error?.kind).toBe('usage_limit');
  expect(listPaths(upstream)).toEqual(['GET /v1/credits']);
});

test('the server blocks calls that cost more credits than the hourly or daily limit still allows', async ({
  upstream,
  server,
}) => {
  upstream.respondWith(
    respondWithJson({ items: [{ id: 'a' }], cursor: null, hasMore: false }, { headers: createCreditHeaders(5) }),
    respondWithError(429),
  );
  upstream.credits = respondWithJson(createCreditStatus({ ...createUsageLimit(398), isLimitReached: false }));
  await server.call('search_ads', { limit: 1 });
  const { text, error } = await server.call('search_ads', { limit: 2 });
  expect(text).toContain('because of a usage limit, although neither usage window is full. (HTTP 429');
  expect(error).toMatchObject({ kind: 'usage_limit', retryable: true });

  const requestCount = upstream.requests.length;
  const refusedCall = await server.call('search_ads', { limit: 3 });
  expect(refusedCall.text).toContain('The call costs more credits than its usage window has left');
  expect(refusedCall.text).toContain('Nothing was sent');
  expect(upstream.requests).toHaveLength(requestCount);
  upstream.credits = respondWithJson(createCreditStatus({ ...createUsageLimit(10), isLimitReached: false }));
  await server.call('get_credits');
  upstream.respondWith(respondAsDocumented);
  expect((await server.call('search_ads', { limit: 3 })).isError).toBe(false);
});
