import { describe, expect, test } from 'vitest';
import { waitUntil } from '../support/deadline.ts';
import { respondAsDocumented } from '../support/faulty-upstream.ts';
import { httpTest } from '../support/fixtures.ts';
import { createValidHeaders, openConnection } from '../support/http.ts';
import { envelope, initialize, openSession, request } from './stdio/session.ts';

interface AskedRequest {
  method: string;
  params?: unknown;
}

type Ask = (request: AskedRequest) => Promise<{ result?: object; error?: { code: number; message: string } }>;

const isObject = (value: unknown): value is { _meta?: object; name?: unknown } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const createMessage = ({ method, params }: AskedRequest, isModern: boolean) =>
  request(1, method, isModern && isObject(params) ? { ...params, _meta: { ...envelope, ...params._meta } } : params);

const createNestedObject = (levels: number) => JSON.parse(`${'{"a":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`);
const formatNestedList = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
const createNestedList = (levels: number) => JSON.parse(formatNestedList(levels));

const transports = [
  ['HTTP', '2025-11-25'],
  ['HTTP', '2026-07-28'],
  ['stdio', '2025-11-25'],
  ['stdio', '2026-07-28'],
] as const;

describe.each(transports)('A request over %s (%s)', (transport, revision) => {
  const isModern = revision === '2026-07-28';
  const test = httpTest.extend('ask', async ({ serve }): Promise<Ask> => {
    if (transport === 'stdio') {
      const { ask } = await openSession(isModern ? { revision: '' } : {});
      if (isModern) await ask(request(0, 'tools/list', { _meta: envelope }));
      return (asked) => ask(createMessage(asked, isModern));
    }
    const { send } = openConnection((await serve(respondAsDocumented)).server.origin);
    return async (asked) => {
      const name = isObject(asked.params) ? asked.params.name : undefined;
      const headers = {
        ...createValidHeaders(),
        ...(isModern && { 'mcp-protocol-version': '2026-07-28', 'mcp-method': asked.method }),
        ...(isModern && name !== undefined && { 'mcp-name': String(name) }),
      };
      return (await send({ headers, body: JSON.stringify(createMessage(asked, isModern)) })).json;
    };
  });

  test('a request parameter that is null counts as missing', async ({ ask }) => {
    const called = await ask({ method: 'tools/call', params: { name: 'whoami', arguments: null } });
    expect(called).toMatchObject({ result: { structuredContent: { authenticated: true } } });
    expect(await ask({ method: 'tools/list', params: { cursor: null } })).toHaveProperty('result.tools');
    const { error } = await ask({ method: 'prompts/get', params: { name: 'profile_advertiser', arguments: null } });
    expect(error?.message).toContain('Missing: advertiser.');
  });

  test('an empty list is accepted in place of an object, because PHP encodes an empty object as a list', async ({
    ask,
  }) => {
    for (const params of [
      { name: 'whoami', arguments: [] },
      { name: 'whoami', arguments: {}, _meta: isModern ? undefined : [] },
    ]) {
      const { result } = await ask({ method: 'tools/call', params });
      expect(result).toMatchObject({ structuredContent: { authenticated: true } });
    }
    // In the newest revision, every request has parameters.
    expect(await ask({ method: 'tools/list', params: isModern ? {} : [] })).toHaveProperty('result.tools');
    const { error } = await ask({ method: 'prompts/get', params: { name: 'profile_advertiser', arguments: [] } });
    expect(error?.message).toContain('Missing: advertiser.');
  });

  test('a progress token may be null or any number', async ({ ask }) => {
    for (const progressToken of [null, 0, 1.5, -2.25]) {
      const { result } = await ask({ method: 'tools/call', params: { name: 'whoami', _meta: { progressToken } } });
      expect([progressToken, result]).toMatchObject([progressToken, { structuredContent: { authenticated: true } }]);
    }
  });

  test('malformed request parameters are rejected with a single short message', async ({ ask }) => {
    const prompt = { name: 'profile_advertiser' };
    for (const [method, params] of [
      ['tools/call', null],
      ['tools/call', []],
      ['tools/call', 'text'],
      ['tools/call', {}],
      ['tools/call', { name: 7 }],
      ['tools/call', { name: 'whoami', arguments: [1] }],
      ['tools/call', [1]],
      ['tools/call', { name: 'whoami', arguments: 'text' }],
      ['tools/call', { name: 'whoami', _meta: { progressToken: {} } }],
      ['tools/list', { cursor: 5 }],
      ['prompts/list', { cursor: {} }],
      ['prompts/get', { name: {} }],
      ['prompts/get', { ...prompt, arguments: { advertiser: 5 } }],
      ['prompts/get', { ...prompt, arguments: { ['x'.repeat(10_000)]: 5 } }],
    ] as const) {
      const { error } = await ask({ method, params });
      expect([method, params, error?.code]).toEqual([method, params, -32_602]);
      expect(error?.message).toMatch(/^Invalid params: .{1,200}$/);
    }
  });

  test('an argument with more than 32 nested levels is rejected with an error that names the argument', async ({
    upstream,
    ask,
  }) => {
    const call = (args: object) => ask({ method: 'tools/call', params: { name: 'search_ads', arguments: args } });
    for (const [name, args] of [
      ['filters', { filters: createNestedObject(33) }],
      ['filters', { filters: `{"a":${formatNestedList(30_000)}}` }],
      ['filters', { filters: { countries: createNestedList(50), more: 1 } }],
      ['limit', { limit: createNestedList(50) }],
      ['surprise', { surprise: createNestedObject(50) }],
    ] as const) {
      const { isError, content, _meta } = Object((await call(args)).result);
      expect([isError, _meta['ad-library/error']]).toEqual([true, { kind: 'invalid_request', retryable: false }]);
      expect(content[0].text).toContain(`${name}: nested too deeply, at most 32 levels of objects and lists`);
      expect(content[0].text).toContain('Nothing was sent, nothing was charged.');
    }
    expect(upstream.requests).toEqual([]);
    expect(await call({ filters: createNestedObject(32), fresh: true })).not.toHaveProperty('result.isError');
    if (transport === 'HTTP')
      expect(upstream.requests.map(({ body }) => JSON.parse(body))).toEqual([createNestedObject(32)]);
  });
});

// Test only raw stdio: SDK clients cannot write such deep messages, and HTTP rejects them earlier.
test.for([5000, 100_000])(
  'a stdio call whose arguments have %i nested levels gets a clear error message',
  async (levels) => {
    const { stdin, lines } = await openSession();
    const call = request(1, 'tools/call', { name: 'search_ads', arguments: { filters: '?' } });
    stdin.write(`${JSON.stringify(call).replace('"?"', `{"a":${formatNestedList(levels)}}`)}\n`);
    await waitUntil(() => lines.length === 1);
    const text = JSON.stringify(lines);
    expect(text).toContain('"kind":"invalid_request"');
    expect(text).toContain('filters: nested too deeply, at most 32 levels of objects and lists are allowed.');
  },
);

test('progress notifications repeat the progress token of the call, even if it is a fraction such as 1.5', async () => {
  const { send, lines } = await openSession();
  send(request(1, 'tools/call', { name: 'gather_ads', arguments: { maxCredits: 5 }, _meta: { progressToken: 1.5 } }));
  await waitUntil(() => lines.some(({ id }) => id === 1));
  const reports = lines.filter(({ method }) => method === 'notifications/progress');
  expect(reports.length).toBeGreaterThan(0);
  for (const { params } of reports) expect(params.progressToken).toBe(1.5);
});

test('a client that encodes empty objects as lists, as PHP does, can open a stdio session', async () => {
  const { ask } = await openSession({ revision: '' });
  for (const capabilities of [[], { roots: [] }])
    expect(await ask(initialize('2025-11-25', 'php', capabilities))).toHaveProperty('result.protocolVersion');
});
