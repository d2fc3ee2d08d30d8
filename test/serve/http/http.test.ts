import { describe, expect, test } from 'vitest';
import { testClient } from '../../support/client-suite.ts';
import { clientKinds, connectHttp } from '../../support/clients.ts';
import { callOf, goodHeaders, keepAlive, startHttp } from '../../support/http.ts';
import { serveHttp } from '../../support/process.ts';

describe.each(clientKinds)('a %s client over HTTP', (kind) => {
  testClient(async (args) => {
    const served = await serveHttp(args);
    const client = await connectHttp(kind, served.url, 'svc_live_not_known');
    return {
      ...client,
      close: async () => {
        await client.close();
        await served.close();
      },
    };
  });
});

test('every revision with a handshake is served, with plain JSON and no session', async () => {
  const server = await startHttp({ demo: true });
  const { send, close } = keepAlive(server.origin);
  for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']) {
    const params = { protocolVersion: revision, capabilities: {}, clientInfo: { name: 'test', version: '1' } };
    const opened = await send({ body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }) });
    expect(opened.json).toMatchObject({ result: { protocolVersion: revision } });
    expect(opened.headers).not.toHaveProperty('mcp-session-id');
    const headers = { ...goodHeaders(), 'mcp-protocol-version': revision };
    const called = await send({ headers, body: JSON.stringify(callOf('whoami')) });
    expect(called.headers['content-type']).toBe('application/json');
    expect(called.json).toMatchObject({ result: { structuredContent: { authenticated: true } } });
  }
  await close();
  await server.close();
});

describe('revision 2026-07-28', () => {
  const revision = '2026-07-28';
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': revision,
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const asking = (method: string, params: Record<string, unknown> = {}) => ({
    headers: {
      ...goodHeaders(),
      'mcp-protocol-version': revision,
      'mcp-method': method,
      ...(typeof params.name === 'string' && { 'mcp-name': params.name }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }),
  });

  test('lists are publicly cacheable for an hour, and always the same', async () => {
    const server = await startHttp({ demo: true });
    const { send, close } = keepAlive(server.origin);
    for (const method of ['tools/list', 'prompts/list', 'server/discover']) {
      const { json, text } = await send(asking(method));
      expect(json).toMatchObject({ result: { ttlMs: 3_600_000, cacheScope: 'public' } });
      expect((await send(asking(method))).text).toBe(text);
    }
    await close();
    await server.close();
  });

  test.each([
    ['no name', {}],
    ['a name that is a number', { name: 7 }],
    ['arguments that are a list', { name: 'whoami', arguments: [] }],
    ['a state that nobody gave out', { name: 'whoami', arguments: {}, requestState: 5 }],
  ])('a call with %s is refused as invalid, and nothing runs', async (_, params) => {
    const server = await startHttp({ demo: true });
    const { send, close } = keepAlive(server.origin);
    expect((await send(asking('tools/call', params))).json).toMatchObject({ error: { code: -32_602 } });
    expect(server.logged.join('')).not.toContain('"call"');
    await close();
    await server.close();
  });
});
