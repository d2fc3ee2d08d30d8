import fc from 'fast-check';
import { expect } from 'vitest';
import { serviceTest } from '../support/fixtures.ts';
import { callOf, goodHeaders, keepAlive, startHttp } from '../support/http.ts';

const test = serviceTest();

const known = ['claude-code', 'mcp-inspector', 'inspector-cli'];
/** LangChain's adapter among them, which ends an agent's run at a link. */
const others = ['langchain-mcp-adapter', 'claude-ai', 'ai-sdk-mcp-client', 'mcp', 'Claude-Code', '', 'constructor'];

interface Block {
  type: string;
  uri?: string;
}

test('links to exports go to clients that are known to take them, and the addresses to all', async ({
  server,
  service,
}) => {
  const key = service.createKey();
  const exportsOf = async (name: string) => {
    const { call, client } = await server.as(key, name);
    const { raw, text, data } = await call('export_ads', { sql: 'SELECT 1 AS one' });
    for (const address of [data.uri, data.methods]) expect(text).toContain(address);
    await client.close();
    return raw.content.flatMap((block) => (block.type === 'resource_link' ? [block.uri] : []));
  };
  for (const name of known) expect(await exportsOf(name), name).toHaveLength(2);
  for (const name of others) expect(await exportsOf(name), name).toEqual([]);
  const unknown = fc.string().filter((name) => !known.includes(name));
  await fc.assert(
    fc.asyncProperty(unknown, async (name) => {
      expect(await exportsOf(name)).toEqual([]);
    }),
    { numRuns: 20 },
  );
});

test('over HTTP, links go where the request names its client', async () => {
  const server = await startHttp({ demo: true });
  const { send, close } = keepAlive(server.origin);
  const call = callOf('export_ads', { sql: 'SELECT 1 AS one' });
  const linksIn = async (headers: Record<string, string>, meta: object = {}) => {
    const body = JSON.stringify({ ...call, params: { ...call.params, ...meta } });
    const { json } = await send({ headers: { ...goodHeaders(), ...headers }, body });
    return json.result.content.filter(({ type }: Block) => type === 'resource_link').length;
  };
  const named = (name: string) => ({
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name, version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  });
  const modern = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'export_ads' };
  expect(await linksIn(modern, named('claude-code'))).toBe(2);
  expect(await linksIn(modern, named('langchain-mcp-adapter'))).toBe(0);
  expect(await linksIn({})).toBe(0);
  await close();
  await server.close();
});
