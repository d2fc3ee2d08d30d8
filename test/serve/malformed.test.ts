import { describe, expect } from 'vitest';
import { documented } from '../support/faulty-upstream.ts';
import { test as withUpstream } from '../support/fixtures.ts';
import { goodHeaders, keepAlive, startHttp } from '../support/http.ts';
import { envelope, openSession, request } from './stdio/session.ts';

interface Asked {
  method: string;
  params?: unknown;
}

type Ask = (asked: Asked) => Promise<{ result?: object; error?: { code: number; message: string } }>;

const isObject = (value: unknown): value is { _meta?: object; name?: unknown } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const messageOf = ({ method, params }: Asked, isModern: boolean) =>
  request(1, method, isModern && isObject(params) ? { ...params, _meta: { ...envelope, ...params._meta } } : params);

const base = withUpstream.extend('server', { scope: 'file' }, async ({ upstream }, { onCleanup }) => {
  upstream.does(documented);
  const server = await startHttp({ baseUrl: upstream.baseUrl });
  onCleanup(() => server.close(0));
  return server;
});

/** Every way in: both transports, both SDKs. */
const ways = [
  ['HTTP', false],
  ['HTTP', true],
  ['stdio', false],
  ['stdio', true],
] as const;

describe.each(ways)('over %s, revision 2026-07-28: %s', (transport, isModern) => {
  const test = base.extend('ask', async ({ server }, { onCleanup }): Promise<Ask> => {
    if (transport === 'stdio') {
      const { ask } = await openSession(isModern ? { revision: '' } : {});
      if (isModern) await ask(request(0, 'tools/list', { _meta: envelope }));
      return (asked) => ask(messageOf(asked, isModern));
    }
    const { send, close } = keepAlive(server.origin);
    onCleanup(close);
    return async (asked) => {
      const name = isObject(asked.params) ? asked.params.name : undefined;
      const headers = {
        ...goodHeaders(),
        ...(isModern && { 'mcp-protocol-version': '2026-07-28', 'mcp-method': asked.method }),
        ...(isModern && name !== undefined && { 'mcp-name': String(name) }),
      };
      return (await send({ headers, body: JSON.stringify(messageOf(asked, isModern)) })).json;
    };
  });

  test('null stands for what is left out', async ({ ask }) => {
    const called = await ask({ method: 'tools/call', params: { name: 'whoami', arguments: null } });
    expect(called).toMatchObject({ result: { structuredContent: { authenticated: true } } });
    expect(await ask({ method: 'tools/list', params: { cursor: null } })).toHaveProperty('result.tools');
    const { error } = await ask({ method: 'prompts/get', params: { name: 'profile_advertiser', arguments: null } });
    expect(error?.message).toContain('Missing: advertiser.');
  });

  test('what has another form is refused in a line, which repeats little of it', async ({ ask }) => {
    const prompt = { name: 'profile_advertiser' };
    for (const [method, params] of [
      ['tools/call', null],
      ['tools/call', []],
      ['tools/call', 'text'],
      ['tools/call', {}],
      ['tools/call', { name: 7 }],
      ['tools/call', { name: 'whoami', arguments: [] }],
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
      expect(error?.message).toMatch(/^Invalid params: .{1,200}\.$/);
    }
  });
});
