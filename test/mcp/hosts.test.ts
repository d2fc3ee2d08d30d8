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
  const forms = [tools.some(({ outputSchema }) => outputSchema), raw.structuredContent !== undefined];
  expect(forms).toEqual([form !== 'text', form !== 'text']);
});

test('a result is no longer than the host shows, and ends with a cursor', async ({ server, service }) => {
  const { call } = await server.as(service.createKey(), 'codex-mcp-client');
  const { text } = await call('search_ads', { limit: 100 });
  expect(text.length).toBeLessThan(4000 * 4.5);
  expect(text).toContain('cursor');
});

serviceTest({ config: { output: 'both' } })(
  'a form that was set is that of every client',
  async ({ server, service }) => {
    const { call } = await server.as(service.createKey(), 'claude-code');
    const { raw } = await call('search_ads', { limit: 1 });
    expect(raw.structuredContent).toBeDefined();
  },
);

const known = ['claude-code', 'mcp-inspector', 'inspector-cli'];
/** LangChain's adapter among them, which ends an agent's run at a link. */
const others = [
  ...'langchain-mcp-adapter claude-ai ai-sdk-mcp-client mcp Claude-Code constructor __proto__'.split(' '),
  '',
];

interface Block {
  type: string;
  uri?: string;
}

test('links to exports go to clients known to take them, addresses to all', async ({ server, service }) => {
  const exportsOf = async (name: string) => {
    const { call } = await server.as(service.createKey(), name);
    const { raw, text } = await call('export_ads', { sql: 'SELECT 1 AS one' });
    expect(text.match(/ad-library:\/\//g)).toHaveLength(2);
    return raw.content.flatMap((block) => (block.type === 'resource_link' ? [block.uri] : []));
  };
  for (const name of known) expect(await exportsOf(name), name).toHaveLength(2);
  for (const name of others) expect(await exportsOf(name), name).toEqual([]);
});

test('over HTTP, form and links follow where the request names its client', async () => {
  const server = await startHttp({ demo: true });
  const { send, close } = keepAlive(server.origin);
  /** Of a request that names its client, or of the revision before that. */
  const resultFor = async (tool: string, args: object, client?: string) => {
    const call = callOf(tool, args);
    const named = client !== undefined && {
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: client, version: '1' },
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    };
    const body = JSON.stringify({ ...call, params: { ...call.params, ...named } });
    const latest = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': tool };
    const { json } = await send({ headers: { ...goodHeaders(), ...(named && latest) }, body });
    return json.result;
  };
  const hasData = async (client?: string) =>
    'structuredContent' in (await resultFor('search_ads', { limit: 1 }, client));
  expect(await hasData('claude-code')).toBe(false);
  expect(await hasData('claude-ai')).toBe(true);
  expect(await hasData()).toBe(true);
  const linksIn = async (client?: string) => {
    const { content } = await resultFor('export_ads', { sql: 'SELECT 1 AS one' }, client);
    return content.filter(({ type }: Block) => type === 'resource_link').length;
  };
  expect(await linksIn('claude-code')).toBe(2);
  expect(await linksIn('langchain-mcp-adapter')).toBe(0);
  expect(await linksIn()).toBe(0);
  await close();
  await server.close();
});
