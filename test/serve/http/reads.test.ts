import fc from 'fast-check';
import { test as base, expect } from 'vitest';
import { bareSocket, goodHeaders, keepAlive } from '../../support/http.ts';
import { type Served, serveHttp } from '../../support/process.ts';
import { startService, type TestService } from '../../support/service.ts';

interface Site {
  service: TestService;
  server: Served;
}

const test = base.extend<{ site: Site }>({
  site: [
    // biome-ignore lint/correctness/noEmptyPattern: Vitest reads there what a fixture depends on
    async ({}, use) => {
      const service = await startService();
      const server = await serveHttp(['--base-url', service.baseUrl], {
        // A part of the answers that are asked for.
        NODE_OPTIONS: '--max-old-space-size=512',
      });
      await use({ service, server });
      expect((await server.close()).code).toBe(0);
      await service.close();
    },
    { scope: 'file' },
  ],
});

/** An export of so many bytes, of one character again and again. */
async function exported({ server }: Site, key: string, bytes: number, character = 'a') {
  const { call, close } = keepAlive(server.origin);
  expect((await call('whoami', {}, key)).json.result.isError).toBeUndefined();
  const sql = `WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ${Math.ceil(bytes / 1000)})
    SELECT replace(printf('%.*c', 998, 'a'), 'a', ${character === 'a' ? "'a'" : character}) AS t FROM n`;
  const { json } = await call('export_ads', { sql }, key);
  await close();
  return json.result.structuredContent as { uri: string; bytes: number };
}

const eras = {
  '2025-11-25': { headers: {}, meta: undefined },
  '2025-03-26': { headers: {}, meta: undefined },
  '2026-07-28': {
    headers: { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'resources/read' },
    meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
} as const;
type Era = keyof typeof eras;

const readOf = (era: Era, uri: string, id = 1) => {
  const { meta } = eras[era];
  return { jsonrpc: '2.0', id, method: 'resources/read', params: { uri, ...(meta && { _meta: meta }) } };
};

/** The request of ten reads where the revision has batches, else of one, as it goes over the wire. */
function requestOf(era: Era, key: string, uri: string) {
  const body = JSON.stringify(
    era === '2025-03-26' ? Array.from({ length: 10 }, (_, id) => readOf(era, uri, id)) : readOf(era, uri),
  );
  const named = era === '2026-07-28' ? { 'mcp-name': uri } : {};
  const headers = { ...goodHeaders(key), ...eras[era].headers, ...named, 'content-length': String(body.length) };
  const head = Object.entries({ host: 'localhost', ...headers }).map((pair) => pair.join(': '));
  return `POST /mcp HTTP/1.1\r\n${head.join('\r\n')}\r\n\r\n${body}`;
}

const floods = fc.record({
  bytes: fc.integer({ min: 100_000, max: 15_000_000 }),
  connections: fc.integer({ min: 50, max: 150 }),
  pipelined: fc.integer({ min: 1, max: 3 }),
  keys: fc.integer({ min: 1, max: 3 }),
});

test.for(fc.sample(floods, 3).map((flood, index) => ({ ...flood, era: (Object.keys(eras) as Era[])[index] as Era })))(
  'keys that read no answers leave the server alive and other keys served: %j',
  { timeout: 120_000 },
  async ({ era, bytes, connections, pipelined, keys }, { site }) => {
    const { service, server } = site;
    const asked = await Promise.all(
      Array.from({ length: keys }, async () => {
        const key = service.createKey();
        return requestOf(era, key, (await exported(site, key, bytes)).uri);
      }),
    );
    const other = service.createKey();
    const own = await exported(site, other, 2000);
    const sockets = Array.from({ length: connections }, (_, index) => {
      const { socket } = bareSocket(server.port);
      socket.pause();
      socket.write((asked[index % keys] ?? '').repeat(pipelined));
      return socket;
    });
    const brisk = keepAlive(server.origin);
    for (let round = 0; round < 2; round++) {
      expect((await brisk.call('whoami', {}, other)).json.result.isError).toBeUndefined();
      const read = JSON.stringify(readOf('2025-11-25', own.uri));
      const { json } = await brisk.send({ headers: goodHeaders(other), body: read });
      expect(json.result.contents[0].text).toHaveLength(own.bytes - 2);
    }
    for (const socket of sockets) socket.destroy();
    await brisk.close();
  },
);

test('those who read get what was exported, each of them', { timeout: 120_000 }, async ({ site }) => {
  const key = site.service.createKey();
  const { uri, bytes } = await exported(site, key, 6_000_000);
  const body = JSON.stringify(readOf('2025-11-25', uri));
  const texts = await Promise.all(
    Array.from({ length: 12 }, async () => {
      const { send, close } = keepAlive(site.server.origin);
      const { json } = await send({ headers: goodHeaders(key), body });
      await close();
      return json.result.contents[0].text.length;
    }),
  );
  expect(texts).toEqual(Array(12).fill(bytes - 2));
});

test('what was read is not kept while others wait for their turn', { timeout: 120_000 }, async ({ site }) => {
  const { service } = site;
  const server = await serveHttp(['--base-url', service.baseUrl, '--calls-per-key', '1'], {
    NODE_OPTIONS: '--max-old-space-size=256',
  });
  const key = service.createKey();
  const { uri, bytes } = await exported({ service, server }, key, 8_000_000);
  const body = JSON.stringify(readOf('2025-11-25', uri));
  const lengths = await Promise.all(
    Array.from({ length: 30 }, async () => {
      const { send, close } = keepAlive(server.origin);
      const { text } = await send({ headers: goodHeaders(key), body });
      await close();
      return text.length;
    }),
  );
  expect(Math.min(...lengths)).toBeGreaterThan(bytes);
  expect((await server.close()).code).toBe(0);
});

test('a batch holds as many resources as there is room for in one answer, and says so of the others', async ({
  site,
}) => {
  const key = site.service.createKey();
  const [small, large] = [await exported(site, key, 100_000), await exported(site, key, 12_000_000)];
  const { send, close } = keepAlive(site.server.origin);
  const batchOf = async (uri: string): Promise<{ error?: { message: string } }[]> => {
    const batch = Array.from({ length: 10 }, (_, id) => readOf('2025-03-26', uri, id));
    return (await send({ headers: goodHeaders(key), body: JSON.stringify(batch) })).json;
  };
  expect((await batchOf(small.uri)).filter(({ error }) => error)).toEqual([]);
  const answers = await batchOf(large.uri);
  const refused = answers.filter(({ error }) =>
    error?.message.includes('There is no room for all of this in one answer'),
  );
  expect(answers).toHaveLength(10);
  expect(refused.length).toBeGreaterThanOrEqual(8);
  expect(refused.length).toBeLessThan(10);
  await close();
});

test('a file that would grow in JSON to many times its size is refused', async ({ site }) => {
  const key = site.service.createKey();
  const { send, close } = keepAlive(site.server.origin);
  const read = async (uri: string) =>
    (await send({ headers: goodHeaders(key), body: JSON.stringify(readOf('2025-11-25', uri)) })).json;
  const { uri, bytes } = await exported(site, key, 9_000_000, 'char(1)');
  expect((await read(uri)).error.message).toMatch(/has 5\d{7} bytes, too many to send/);
  expect(bytes).toBeGreaterThan(8_900_000);
  const quotes = await exported(site, key, 3_000_000, "'\"'");
  expect((await read(quotes.uri)).result.contents[0].text).toHaveLength(quotes.bytes - 2);
  await close();
});

test('a key that was made up counts as a try when it reads the page of the board', async ({ site }) => {
  const server = await serveHttp(['--base-url', site.service.baseUrl, '--refusals-per-minute', '5']);
  const statuses = await Promise.all(
    Array.from({ length: 12 }, async (_, index) => {
      const { send, close } = keepAlive(server.origin);
      const body = JSON.stringify(readOf('2025-11-25', 'ui://ad-library/board'));
      const { status } = await send({ headers: goodHeaders(`svc_live_guess${index}`), body });
      await close();
      return status;
    }),
  );
  expect(statuses.filter((status) => status === 200)).toHaveLength(5);
  expect(statuses.filter((status) => status === 429)).toHaveLength(7);
  const { call, close } = keepAlive(server.origin);
  expect((await call('whoami', {}, 'svc_live_guess99')).status).toBe(429);
  await close();
  await server.close();
});
