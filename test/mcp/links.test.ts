import { expect } from 'vitest';
import { documented } from '../support/faulty-upstream.ts';
import { upstreamTest } from '../support/fixtures.ts';
import { callOf, goodHeaders, keepAlive, startHttp } from '../support/http.ts';

const test = upstreamTest();
test.beforeEach(({ upstream }) => upstream.does(documented));

const known = ['claude-code', 'mcp-inspector', 'inspector-cli'];
/** LangChain's adapter among them, which ends an agent's run at a link. */
const others = [
  'langchain-mcp-adapter',
  'claude-ai',
  'ai-sdk-mcp-client',
  'mcp',
  'Claude-Code',
  '',
  'constructor',
  '__proto__',
  'claude-code ',
];

interface Block {
  type: string;
  uri?: string;
}

test('links to exports go to clients that are known to take them, and the addresses to all', async ({ server }) => {
  const exportsOf = async (name: string) => {
    const { call, client } = await server.as('svc_live_links', name);
    const { raw, text } = await call('export_ads', { sql: 'SELECT 1 AS one' });
    expect(text.match(/ad-library:\/\//g)).toHaveLength(2);
    await client.close();
    return raw.content.flatMap((block) => (block.type === 'resource_link' ? [block.uri] : []));
  };
  for (const name of known) expect(await exportsOf(name), name).toHaveLength(2);
  for (const name of others) expect(await exportsOf(name), name).toEqual([]);
});

test('over HTTP, links go where the request names its client', async ({ upstream }) => {
  const server = await startHttp({ baseUrl: upstream.baseUrl });
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
