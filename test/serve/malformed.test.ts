import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { goodHeaders, type HttpServer, keepAlive, startHttp } from '../support/http.ts';
import { start } from '../support/process.ts';

const envelope = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

interface Asked {
  method: string;
  params?: unknown;
}

type Ask = (asked: Asked) => Promise<{ result?: object; error?: { code: number; message: string } }>;

/** Every way in: both transports, both eras. */
const ways = {
  'HTTP, revision 2025-11-25': async () => overHttp(await startHttp({ demo: true }), false),
  'HTTP, revision 2026-07-28': async () => overHttp(await startHttp({ demo: true }), true),
  'stdio, revision 2025-11-25': async () => overStdio(false),
  'stdio, revision 2026-07-28': async () => overStdio(true),
};

const isObject = (value: unknown): value is { _meta?: object } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const messageOf = ({ method, params }: Asked, modern: boolean, id: number) => ({
  jsonrpc: '2.0',
  id,
  method,
  params: modern && isObject(params) ? { ...params, _meta: { ...envelope, ...params._meta } } : params,
});

function overHttp(server: HttpServer, modern: boolean) {
  const { send, close } = keepAlive(server.origin);
  const ask: Ask = async (asked) => {
    const name = isObject(asked.params) ? (asked.params as { name?: unknown }).name : undefined;
    const headers = {
      ...goodHeaders(),
      ...(modern && { 'mcp-protocol-version': '2026-07-28', 'mcp-method': asked.method }),
      ...(modern && name !== undefined && { 'mcp-name': String(name) }),
    };
    return (await send({ headers, body: JSON.stringify(messageOf(asked, modern, 1)) })).json;
  };
  return { ask, close: () => close().then(() => server.close(0)) };
}

async function overStdio(modern: boolean) {
  const { child, ended } = start(['--demo']);
  const waiting = new Map<number, (answer: object) => void>();
  let text = '';
  child.stdout?.on('data', (more: string) => {
    const lines = (text + more).split('\n');
    text = lines.pop() ?? '';
    for (const answer of lines.map((line) => JSON.parse(line))) waiting.get(answer.id)?.(answer);
  });
  let id = 0;
  const send = (asked: Asked) =>
    new Promise<object>((resolve) => {
      waiting.set(++id, resolve);
      child.stdin?.write(`${JSON.stringify(messageOf(asked, modern, id))}\n`);
    });
  const clientInfo = { name: 'test', version: '1' };
  const opening = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
  await send(modern ? { method: 'tools/list', params: {} } : { method: 'initialize', params: opening });
  const close = async () => {
    child.stdin?.end();
    await ended;
  };
  return { ask: send as Ask, close };
}

describe.each(Object.entries(ways))('over %s', (_, open) => {
  let way: { ask: Ask; close(): Promise<void> };
  beforeAll(async () => {
    way = await open();
  });
  afterAll(() => way.close());

  test('null stands for what is left out', async () => {
    const called = await way.ask({ method: 'tools/call', params: { name: 'whoami', arguments: null } });
    expect(called).toMatchObject({ result: { structuredContent: { authenticated: true } } });
    expect(await way.ask({ method: 'tools/list', params: { cursor: null } })).toHaveProperty('result.tools');
    const { error } = await way.ask({ method: 'prompts/get', params: { name: 'profile_advertiser', arguments: null } });
    expect(error?.message).toContain('Missing: advertiser.');
  });

  test.each([
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
    ['prompts/get', { name: 'profile_advertiser', arguments: { advertiser: 5 } }],
  ])('%s with %j is refused in a line', async (method, params) => {
    const { error } = await way.ask({ method, params });
    expect(error?.code).toBe(-32_602);
    expect(error?.message).toMatch(/^Invalid params: .{1,200}\.$/);
  });

  test('a refusal repeats little of what it refuses', async () => {
    const given = { ['x'.repeat(10_000)]: 5 };
    const { error } = await way.ask({
      method: 'prompts/get',
      params: { name: 'profile_advertiser', arguments: given },
    });
    expect(error?.message).toMatch(/^Invalid params: .{1,200}\.$/);
  });
});
