import { expect } from 'vitest';
import { hosts } from '../../src/mcp/hosts.ts';
import { serviceTest } from '../support/fixtures.ts';
import { callOf, goodHeaders, keepAlive, startHttp } from '../support/http.ts';

const test = serviceTest();

/** In which form a client of that name gets results, and whether it is told of their schemas. */
test.for([
  ...hosts.flatMap(({ names, output }) => names.map((name) => [name, output] as const)),
  ['langchain-mcp-adapter', 'both'],
  ['Claude-Code', 'both'],
  ['constructor', 'both'],
  ['', 'both'],
] as const)('%s gets the form that it is known to read: %s', async ([name, form], { server, service }) => {
  const { call, client } = await server.as(service.createKey(), name);
  const { tools } = await client.listTools();
  const { raw } = await call('search_ads', { limit: 3 });
  await client.close();
  expect({
    schemas: tools.some(({ outputSchema }) => outputSchema),
    data: raw.structuredContent !== undefined,
  }).toEqual({
    schemas: form !== 'text',
    data: form !== 'text',
  });
});

test('a result is no longer than the host shows, and ends with a cursor', async ({ server, service }) => {
  const { call, client } = await server.as(service.createKey(), 'codex-mcp-client');
  const { text } = await call('search_ads', { limit: 100 });
  await client.close();
  expect(text.length).toBeLessThan(4000 * 4.5);
  expect(text).toContain('cursor');
});

serviceTest({ config: { output: 'both' } })(
  'a form that was set is that of every client',
  async ({ server, service }) => {
    const { call, client } = await server.as(service.createKey(), 'claude-code');
    const { raw } = await call('search_ads', { limit: 1 });
    await client.close();
    expect(raw.structuredContent).toBeDefined();
  },
);

test('over HTTP, the form follows where the request names its client', async () => {
  const server = await startHttp({ demo: true });
  const { send, close } = keepAlive(server.origin);
  const call = callOf('search_ads', { limit: 1 });
  const hasData = async (headers: Record<string, string>, meta: object = {}) => {
    const body = JSON.stringify({ ...call, params: { ...call.params, ...meta } });
    const { json } = await send({ headers: { ...goodHeaders(), ...headers }, body });
    return 'structuredContent' in json.result;
  };
  const named = (name: string) => ({
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name, version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  });
  const modern = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'search_ads' };
  expect(await hasData(modern, named('claude-code'))).toBe(false);
  expect(await hasData(modern, named('claude-ai'))).toBe(true);
  expect(await hasData({})).toBe(true);
  await close();
  await server.close();
});
