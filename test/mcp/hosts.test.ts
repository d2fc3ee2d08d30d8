import fc from 'fast-check';
import { countTokens } from 'gpt-tokenizer';
import { describe, expect } from 'vitest';
import { chooseResultFormat, hosts, identifyClient, type OutputSetting, outputSettings } from '../../src/mcp/hosts.ts';
import { mcpAppsCapabilities } from '../support/capabilities.ts';
import { respondWithJson } from '../support/faulty-upstream.ts';
import { upstreamTest as createUpstreamTest, freshServiceTest, serviceTest } from '../support/fixtures.ts';
import { createToolCall, createValidHeaders, openConnection, startHttp } from '../support/http.ts';
import { initialize, openSession, request } from '../transports/stdio/session.ts';

const test = serviceTest();
const upstreamTest = createUpstreamTest();

const boardTools = ['board_ads', 'board_pictures'];
const chooseFormatByName = (name: string, config: { output?: OutputSetting; maxTextTokens?: number } = {}) =>
  chooseResultFormat({ name, announcesMcpApps: false }, { output: 'auto', maxTextTokens: 8000, ...config });

interface Listed {
  name: string;
  outputSchema?: object;
}

interface Called {
  content: { type: string; text?: string }[];
  structuredContent?: object;
  _meta?: object;
}

/**
 * Returns whether the tool list has schemas, whether results have data, and whether the client gets the board tools.
 */
const readFormsInRevision = (tools: Listed[], result: Called) => ({
  listsData: tools.some(({ outputSchema }) => outputSchema !== undefined),
  sendsData: result.structuredContent !== undefined,
  listsBoard: boardTools.every((board) => tools.some(({ name }) => name === board)),
  sendsBoard: 'ad-library/board' in (result._meta ?? {}),
});

const readForms = (hasData: boolean, drawsBoard: boolean) => ({
  listsData: hasData,
  sendsData: hasData,
  listsBoard: drawsBoard,
  sendsBoard: drawsBoard,
});

interface HostCase {
  name: string;
  revision: string;
  capabilities?: object;
  hasData: boolean;
  drawsBoard: boolean;
}

/** Recorded handshakes of hosts, with the result format that each host must get. */
const handshakes: HostCase[] = [
  { name: 'claude-code', revision: '2026-07-28', hasData: false, drawsBoard: false },
  { name: 'claude-code', revision: '2025-11-25', hasData: false, drawsBoard: false },
  { name: 'copilot-cli', revision: '2026-07-28', hasData: false, drawsBoard: false },
  { name: 'codex-mcp-client', revision: '2025-06-18', hasData: false, drawsBoard: false },
  { name: 'gemini-cli-mcp-client', revision: '2025-06-18', hasData: false, drawsBoard: false },
  { name: 'opencode', revision: '2025-11-25', hasData: false, drawsBoard: false },
  { name: 'kilo', revision: '2025-11-25', hasData: false, drawsBoard: false },
  {
    ...{ name: 'qwen-cli-mcp-client-ad-library', revision: '2025-11-25' },
    ...{ capabilities: mcpAppsCapabilities, hasData: false, drawsBoard: true },
  },
  { name: 'qwen-cli-mcp-client-my ads', revision: '2026-07-28', hasData: false, drawsBoard: false },
  { name: '@cline/core', revision: '2024-11-05', hasData: false, drawsBoard: false },
  { name: 'continue-cli-client', revision: '2025-11-25', hasData: false, drawsBoard: false },
  { name: 'claude-ai', revision: '2025-11-25', hasData: true, drawsBoard: true },
  { name: 'claude-ai (via mcp-remote 0.1.37)', revision: '2025-11-25', hasData: true, drawsBoard: true },
  { name: 'Visual Studio Code', revision: '2025-11-25', hasData: false, drawsBoard: true },
  { name: 'cursor-vscode', revision: '2025-06-18', hasData: true, drawsBoard: true },
  { name: 'ai-sdk-mcp-client', revision: '2025-11-25', hasData: true, drawsBoard: false },
  { name: 'Ad Library', revision: '2026-07-28', hasData: true, drawsBoard: false },
  {
    name: 'a host of tomorrow',
    revision: '2026-07-28',
    capabilities: mcpAppsCapabilities,
    hasData: true,
    drawsBoard: true,
  },
];

const createEnvelope = ({ name, capabilities = {} }: Pick<HostCase, 'name' | 'capabilities'>) => ({
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name, version: '1' },
  'io.modelcontextprotocol/clientCapabilities': capabilities,
});

describe('The result format for MCP hosts over stdio', () => {
  test.for(handshakes)(
    'the MCP host $name gets results in the expected format over stdio (protocol revision $revision)',
    async (host) => {
      const { name, revision, capabilities = {}, hasData, drawsBoard } = host;
      const isLatest = revision === '2026-07-28';
      const { ask } = await openSession({ revision: '' });
      const meta = isLatest && { _meta: createEnvelope(host) };
      await ask(isLatest ? request(0, 'server/discover', meta) : initialize(revision, name, capabilities));
      const { tools } = (await ask(request(1, 'tools/list', { ...meta }))).result;
      const { result } = await ask(request(2, 'tools/call', { name: 'search_ads', arguments: {}, ...meta }));
      expect(readFormsInRevision(tools, result)).toEqual(readForms(hasData, drawsBoard));
    },
  );
});

const httpServer = test.extend('http', { scope: 'file' }, async ({ service }, { onCleanup }) => {
  const server = await startHttp({ baseUrl: service.baseUrl });
  const connection = openConnection(server.origin);
  onCleanup(async () => {
    await connection.close();
    await server.close();
  });
  const sendRequest = async (method: string, params: object, headers: Record<string, string>) => {
    const body = JSON.stringify(request(1, method, params));
    return (await connection.send({ headers: { ...createValidHeaders(service.createKey()), ...headers }, body })).json
      .result;
  };
  return {
    formsOf: async (headers: Record<string, string>, meta: object = {}, latest = false) => {
      const createHeaders = (method: string, name?: string) => ({
        ...headers,
        ...(latest && {
          'mcp-protocol-version': '2026-07-28',
          'mcp-method': method,
          ...(name && { 'mcp-name': name }),
        }),
      });
      const { tools } = await sendRequest('tools/list', { ...meta }, createHeaders('tools/list'));
      const params = { name: 'search_ads', arguments: { limit: 1 }, ...meta };
      return readFormsInRevision(
        tools,
        await sendRequest('tools/call', params, createHeaders('tools/call', 'search_ads')),
      );
    },
  };
});

describe('The result format for MCP hosts over HTTP', () => {
  httpServer.for(handshakes.filter(({ revision }) => revision === '2026-07-28'))(
    'the MCP host $name gets results in the expected format over HTTP (protocol revision 2026-07-28)',
    async (host, { http }) => {
      const forms = await http.formsOf({}, { _meta: createEnvelope(host) }, true);
      expect(forms).toEqual(readForms(host.hasData, host.drawsBoard));
    },
  );

  httpServer.for<[userAgent: string, hasData: boolean, drawsBoard: boolean]>([
    ['codex-mcp-client/0.171.0', false, false],
    ['claude-code/2.1.197 (sdk-cli)', false, false],
    ['opencode/1.18.33', false, false],
    ['copilot-cli/1.0.102', false, false],
    ['@cline/core/3.0.65', false, false],
    ['@cline/other/1', true, true],
    ['node', true, true],
    ['curl/8.5.0', true, true],
    ['Mozilla/5.0 (X11; Linux x86_64) claude-code/2.1', true, true],
    ['constructor/1', true, true],
    ['', true, true],
  ])(
    'an older HTTP client with the User-Agent "%s" gets structured data (%s) and the ad board (%s)',
    async ([userAgent, hasData, drawsBoard], { http }) => {
      expect(await http.formsOf({ 'user-agent': userAgent })).toEqual(readForms(hasData, drawsBoard));
    },
  );

  test("the client name in an HTTP request takes precedence over the request's User-Agent header", () => {
    const stated = { name: 'claude-ai', capabilities: {}, userAgent: 'claude-code/2.1.332' };
    expect(identifyClient(stated)).toEqual({ name: 'claude-ai', announcesMcpApps: false });
  });
});

describe('The list of MCP hosts in hosts.json', () => {
  test('the file hosts.json lists each MCP host once, with evidence for its result format', () => {
    const names = hosts.flatMap((host) => host.names);
    expect(new Set(names).size).toBe(names.length);
    for (const { title, source, testedVersion, evidenceDay, prefixes, names: clientNames } of hosts) {
      expect([title, source ?? testedVersion]).not.toContain(undefined);
      expect(evidenceDay).toMatch(/^2\d{3}-\d{2}-\d{2}$/);
      expect(clientNames.length + (prefixes?.length ?? 0)).toBeGreaterThan(0);
    }
  });

  test.for(['Claude-Code', 'constructor', '__proto__', 'qwen-cli-mcp-client', 'a claude-code', ''])(
    'an MCP client with the name "%s" is treated as an unknown client',
    (name) => {
      expect(chooseFormatByName(name)).toEqual({
        output: 'both',
        allowsLinks: false,
        allowsPictures: true,
        canShowBoard: false,
        maxTextTokens: 8000,
        maxTextBytes: Number.POSITIVE_INFINITY,
      });
    },
  );

  test.for([
    ['codex-mcp-client', 8000],
    ['copilot-cli', 6500],
    ['@cline/core', 1800],
    ['claude-code', 30_000],
  ] as const)('a result for the MCP host %s is limited to %i tokens', ([name, maxTokens]) => {
    expect(chooseFormatByName(name, { maxTextTokens: 30_000 }).maxTextTokens).toBe(maxTokens);
    expect(chooseFormatByName(name, { maxTextTokens: 1000 }).maxTextTokens).toBe(1000);
  });
});

test('a long list is shortened for an MCP host with a low token limit and ends with a cursor for the rest', async ({
  server,
  service,
}) => {
  const { call } = await server.connectAs(service.createKey(), '@cline/core', {});
  const { text, raw } = await call('search_ads', { limit: 100 });
  // Cline truncates the JSON of the whole result to 8,000 characters.
  expect(JSON.stringify(raw).length).toBeLessThan(8000);
  expect(text).toContain('cursor');
});

/** Words with few estimated tokens per byte, in Latin, Cyrillic, Devanagari, Thai and Chinese letters. */
const words = ['understanding ', 'слово ', 'предложение ', 'विज्ञापन ', 'โฆษณาออนไลน์ ', '广告设计'];
const limitedHosts = hosts.flatMap(({ names: [name], prefixes: [prefix] = [], maxResultBytes }) =>
  maxResultBytes === undefined ? [] : [{ name: name ?? `${prefix}ads`, maxResultBytes }],
);
/** Defines tests with one client for each host with a byte limit. The tests share the clients and their API keys. */
const limitedHostTest = test.extend('limitedClients', { scope: 'file' }, ({ server, service }) =>
  Promise.all(
    limitedHosts.map(async ({ name, maxResultBytes }) => {
      const { call } = await server.connectAs(service.createKey({ credits: 1000 }), name, {});
      return { name, maxResultBytes, call };
    }),
  ),
);
const countBytes = (texts: readonly string[]) => Buffer.byteLength(texts.join(''));
const readTexts = ({ content }: Called) => content.map(({ text = '' }) => text);

/** Cline CLI cuts the middle of a result whose JSON is longer, including `_meta`. */
const maxClineJsonChars = 8000;

test('the file hosts.json sets a byte limit only for Codex, Copilot CLI, Qwen Code and Cline CLI', () => {
  expect(limitedHosts).toEqual([
    { name: 'codex-mcp-client', maxResultBytes: 40_000 },
    { name: 'copilot-cli', maxResultBytes: 16_700 },
    { name: 'qwen-cli-mcp-client-ads', maxResultBytes: 32_000 },
    { name: '@cline/core', maxResultBytes: 7000 },
  ]);
});

const createSections = (section: object) =>
  Array.from({ length: 20 }, (_, index) => ({ heading: `${'слово '.repeat(30)}${index}`, ...section }));
const repeatInCell = (word: string) => `replace(hex(zeroblob(${Math.floor(240 / word.length)})), '00', '${word}')`;
const manyRows = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900)';
const longFilters = (word: string) =>
  Array.from({ length: 30 }, (_, index) => ({ query: `${word.repeat(300 / word.length)} ${index}` }));

/** Calls whose results would be long. The words have few tokens per character, or need escapes in JSON. */
const longCalls: [tool: string, args: Record<string, unknown>][] = [
  ...['aaaaaaaa', 'responsibilities ', 'слово '].flatMap((word): [string, Record<string, unknown>][] => [
    ['count_ads', { split: longFilters(word), maxCredits: 100 }],
    [
      'write_report',
      { title: 'Long', sections: createSections({ sql: `SELECT ${word.trim().repeat(200)} FROM ads` }) },
    ],
    ['write_report', { title: 'Long', sections: createSections({ sql: `SELECT ${repeatInCell(word)} AS a` }) }],
    ['query_ads', { sql: `SELECT ${word.trim().repeat(200)} FROM ads` }],
  ]),
  ...['aaaaaaaa', 'responsibilities ', '\\', '"', 'a\\'].map((word): [string, Record<string, unknown>] => [
    'query_ads',
    { sql: `${manyRows} SELECT i, ${repeatInCell(word)} AS a FROM n`, limit: 900, cell: 240 },
  ]),
];

limitedHostTest.for(longCalls)(
  'a long result of %s fits the size limit of each MCP host (case %$)',
  async ([tool, args], { limitedClients }) => {
    for (const { name, maxResultBytes, call } of limitedClients) {
      const { raw, text } = await call(tool, args);
      expect(countBytes(readTexts(raw as Called)), name).toBeLessThanOrEqual(maxResultBytes);
      if (name === '@cline/core') expect(JSON.stringify(raw).length).toBeLessThanOrEqual(maxClineJsonChars);
      // Only a report with long headings is cut, after the line that says where the file is.
      if (tool === 'write_report') expect(text, name).toContain('ad-library://exports/');
      else expect(text, name).not.toContain('cut to fit:');
    }
  },
);

test('the result of write_report fits the token limit even if all sections of the report fail', async ({
  server,
  service,
}) => {
  const { call } = await server.connectAs(service.createKey(), 'opencode', {});
  const sections = createSections({ sql: `SELECT ${'слово_'.repeat(300)} FROM ads` });
  const { text } = await call('write_report', { title: 'Long', sections });
  expect(countTokens(text)).toBeLessThanOrEqual(8000);
});

upstreamTest(
  'an error with long texts from the service fits the size limit of each MCP host',
  async ({ upstream, server }) => {
    const message = 'aaaaaaaa '.repeat(1000);
    const error = { code: 'invalid_request', message, details: { field: 'bbbbbbbb '.repeat(1000) } };
    for (const { name, maxResultBytes } of limitedHosts) {
      const { call } = await server.connectAs('svc_live_test', name, {});
      upstream.respondWith(respondWithJson({ error }, { status: 422 }));
      const { raw, text } = await call('search_ads', { fresh: true });
      expect(countBytes(readTexts(raw as Called)), name).toBeLessThanOrEqual(maxResultBytes);
      if (name === '@cline/core') expect(JSON.stringify(raw).length).toBeLessThanOrEqual(maxClineJsonChars);
      expect(text).toContain('Correct it as described above');
    }
  },
);

limitedHostTest.for(words)(
  'an SQL result full of the word "%s" fits the byte limit of each MCP host and says what is missing',
  async (word, { limitedClients }) => {
    for (const { name, maxResultBytes, call } of limitedClients) {
      const sql = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i, replace(hex(zeroblob(12)), '00', '${word}') AS a FROM n`;
      const { raw, text } = await call('query_ads', { sql, limit: 900, cell: 240 });
      expect(countBytes(readTexts(raw as Called)), name).toBeLessThanOrEqual(maxResultBytes);
      expect(countBytes(readTexts(raw as Called)), name).toBeGreaterThan(maxResultBytes / 2);
      expect(text).toMatch(/The first \d+ of 900 rows, cut to fit the result/);
    }
  },
);

upstreamTest.for(words)(
  'ads whose texts repeat the word "%s" fit the byte limit of each MCP host',
  async (word, { upstream, server }) => {
    const texts = { body: word.repeat(60), headline: word.repeat(8), pageName: word };
    const longAd = {
      id: '1',
      body: word.repeat(8000),
      headline: word.repeat(2000),
      linkDescription: word.repeat(2000),
    };
    const items = Array.from({ length: 60 }, (_, index) => ({ id: String(index), ...texts }));
    for (const { name, maxResultBytes } of limitedHosts) {
      const { call } = await server.connectAs('svc_live_test', name, {});
      for (const detail of ['brief', 'full']) {
        upstream.respondWith(respondWithJson({ items, cursor: null, hasMore: false }));
        const list = await call('search_ads', { detail, limit: 60, fresh: true });
        expect(countBytes(readTexts(list.raw as Called)), name).toBeLessThanOrEqual(maxResultBytes);
        // A list that was cut must end with a cursor, so that the model can request the rest.
        expect(list.text).toMatch(/^60 ads|The rest of this page .*with cursor:/);
        upstream.respondWith(respondWithJson(longAd));
        const one = await call('get_ad', { adId: '1', detail, fresh: true });
        expect(countBytes(readTexts(one.raw as Called)), name).toBeLessThanOrEqual(maxResultBytes);
        if (name === '@cline/core') expect(JSON.stringify(one.raw).length).toBeLessThanOrEqual(maxClineJsonChars);
      }
    }
  },
);

/** Words in scripts with many bytes per estimated token, and characters that the estimate does not know well. */
const costlyWords = fc.oneof(
  fc.constantFrom('ప్రకటన ', 'მოსწავლე ', 'հայտարարություն', 'อ', 'ట్', '😀', '👨‍👩‍👧‍👦', '広告', 'பயன்பாடு ', 'слово'),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 4 }),
);
const costlyText = fc
  .tuple(fc.array(costlyWords, { minLength: 1, maxLength: 3 }), fc.integer({ min: 1, max: 30_000 }))
  .map(([words, length]) => words.join('').repeat(Math.ceil(length / words.join('').length)));

upstreamTest(
  'a result with one long ad in any script fits the byte limit of each MCP host and still shows the cursor and cost',
  async ({ upstream, server }) => {
    const clients = await Promise.all(
      limitedHosts.map(async ({ name, maxResultBytes }) => ({
        call: (await server.connectAs('svc_live_test', name, {})).call,
        maxResultBytes,
      })),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.record({ body: costlyText, headline: costlyText, linkDescription: costlyText }),
        fc.constantFrom('brief', 'full'),
        fc.constantFrom(...clients),
        async (texts, detail, { call, maxResultBytes }) => {
          upstream.respondWith(respondWithJson({ items: [{ id: '1', ...texts }], cursor: 'next', hasMore: true }));
          const { raw, text } = await call('search_ads', { detail, limit: 1, fresh: true });
          expect(countBytes(readTexts(raw as Called))).toBeLessThanOrEqual(maxResultBytes);
          expect(text).toMatch(/ with cursor:\n\S+\nCredits: /);
          // Every quoted text is closed, so the lines of the server after it are outside of the quotes.
          for (const line of text.split('\n')) expect(line.split('"').length % 2, line.slice(-40)).toBe(1);
        },
      ),
      { numRuns: 60 },
    );
  },
);

freshServiceTest().for([...outputSettings])(
  'a result stays within the size limit of the MCP host if AD_LIBRARY_OUTPUT is %s',
  async (output, { start, service }) => {
    const server = await start({ output });
    for (const { name, maxChars } of [
      { name: '@cline/core', maxChars: 8000 },
      { name: 'copilot-cli', maxChars: 20_000 },
    ]) {
      const { call } = await server.connectAs(service.createKey(), name, {});
      const { raw } = await call('search_ads', { limit: 100 });
      const { content, structuredContent } = raw;
      expect(JSON.stringify({ content, structuredContent }).length, name).toBeLessThan(maxChars);
    }
  },
);

test('results contain no pictures for an MCP host that drops pictures or passes them to the model as text', async ({
  server,
  service,
}) => {
  const chart = { sql: "SELECT 'a' AS name, 2 AS number UNION SELECT 'b', 3", chart: 'bar' };
  const key = service.createKey();
  const readChart = async (name: string) => {
    const { call } = await server.connectAs(key, name, {});
    const { raw, text } = await call('query_ads', chart);
    return { types: raw.content.map(({ type }) => type), text };
  };
  expect((await readChart('claude-code')).types).toEqual(['text', 'image']);
  for (const name of ['@cline/core', 'continue-cli-client', 'copilot-cli', 'qwen-cli-mcp-client-ads']) {
    const { types, text } = await readChart(name);
    expect(types).toEqual(['text']);
    expect(text).toContain('No chart: this host does not show pictures to its model.');
    expect(text).not.toContain('The chart shows');
  }
});

test('view_ads asks the model to name the word on the picture only if the MCP host passes on pictures', async ({
  server,
  service,
}) => {
  const viewFirstAd = async (name: string) => {
    const { call } = await server.connectAs(service.createKey(), name, {});
    const { text } = await call('search_ads', { limit: 1 });
    const [adId] = /[\da-f]{8}-[\da-f-]{27}/.exec(text) ?? [];
    const result = await call('view_ads', { adIds: [adId] });
    return { text: result.text, hasPicture: result.raw.content.some(({ type }) => type === 'image') };
  };
  const viewed = await viewFirstAd('claude-code');
  expect(viewed.text.includes('Name that word')).toBe(viewed.hasPicture);
  const { text, hasPicture } = await viewFirstAd('copilot-cli');
  expect(hasPicture).toBe(false);
  expect(text).toContain('There is no image: this host does not show pictures to its model.');
  expect(text).not.toContain('Name that word');
});

serviceTest({ config: { output: 'both' } })(
  'an output format that the user sets applies to every MCP client',
  async ({ server, service }) => {
    const { call } = await server.connectAs(service.createKey(), 'claude-code');
    const { raw } = await call('search_ads', { limit: 1 });
    expect(raw.structuredContent).toBeDefined();
  },
);

const takesLinks = ['claude-code', 'mcp-inspector', 'inspector-cli'];
/** Clients that get no resource links. The LangChain adapter, for example, aborts the agent's run at such a link. */
const takesNoLinks = [
  ...'langchain-mcp-adapter claude-ai ai-sdk-mcp-client mcp Claude-Code constructor __proto__'.split(' '),
  '',
];

interface Block {
  type: string;
  uri?: string;
}

test('only MCP clients that the server recognizes get resource links to exported files', async ({
  server,
  service,
}) => {
  const key = service.createKey();
  const exportAds = async (name: string) => {
    const { call } = await server.connectAs(key, name);
    const { raw, text } = await call('export_ads', { sql: 'SELECT 1 AS one' });
    expect(text.match(/ad-library:\/\//g)).toHaveLength(2);
    return raw.content.flatMap((block) => (block.type === 'resource_link' ? [block.uri] : []));
  };
  for (const name of takesLinks) expect(await exportAds(name), name).toHaveLength(2);
  for (const name of takesNoLinks) expect(await exportAds(name), name).toEqual([]);
});

test('HTTP clients get resource links to exported files only if they identify themselves in the request', async () => {
  const server = await startHttp({ demo: true });
  const { send, close } = openConnection(server.origin);
  const listLinks = async (client?: string) => {
    const call = createToolCall('export_ads', { sql: 'SELECT 1 AS one' });
    const meta = client !== undefined && { _meta: createEnvelope({ name: client }) };
    const latest = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'export_ads' };
    const body = JSON.stringify({ ...call, params: { ...call.params, ...meta } });
    const { json } = await send({ headers: { ...createValidHeaders(), ...(meta && latest) }, body });
    return json.result.content.filter(({ type }: Block) => type === 'resource_link').length;
  };
  expect(await listLinks('claude-code')).toBe(2);
  expect(await listLinks('langchain-mcp-adapter')).toBe(0);
  expect(await listLinks()).toBe(0);
  await close();
  await server.close();
});
