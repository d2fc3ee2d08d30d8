import fc from 'fast-check';
import { test as base, expect } from 'vitest';
import { bareSocket, goodHeaders, keepAlive } from '../../support/http.ts';
import { type Served, serveHttp } from '../../support/process.ts';
import { startService, type TestService } from '../../support/service.ts';
import { envelope, request } from '../stdio/session.ts';

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
        NODE_OPTIONS: '--max-old-space-size=256',
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

const modern = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'resources/read' };
const revisions = ['2025-11-25', '2025-03-26', '2026-07-28'] as const;
type Revision = (typeof revisions)[number];

const readOf = (revision: Revision, uri: string, id = 1) =>
  request(id, 'resources/read', { uri, ...(revision === '2026-07-28' && { _meta: envelope }) });

/** A request as it goes over the wire. */
function onWire(body: object, fields: Record<string, string>) {
  const text = JSON.stringify(body);
  const head = Object.entries({ host: 'localhost', ...fields, 'content-length': `${text.length}` });
  return `POST /mcp HTTP/1.1\r\n${head.map((pair) => pair.join(': ')).join('\r\n')}\r\n\r\n${text}`;
}

/** Ten reads where the revision has batches, else one. */
const readsOf = (revision: Revision, key: string, uri: string) =>
  onWire(
    revision === '2025-03-26'
      ? Array.from({ length: 10 }, (_, id) => readOf(revision, uri, id))
      : readOf(revision, uri),
    { ...goodHeaders(key), ...(revision === '2026-07-28' && { ...modern, 'mcp-name': uri }) },
  );

/** Connections that send requests, and read no answer. */
const silent = (port: number, count: number, requestOf: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => {
    const { socket } = bareSocket(port);
    socket.pause();
    socket.write(requestOf(index));
    return socket;
  });

const floods = fc.record({
  bytes: fc.integer({ min: 2_000_000, max: 6_000_000 }),
  connections: fc.integer({ min: 40, max: 50 }),
  pipelined: fc.integer({ min: 2, max: 3 }),
  keys: fc.integer({ min: 1, max: 3 }),
});

test.for(fc.sample(floods, 3).map((flood, index) => ({ ...flood, revision: revisions[index] ?? '2025-11-25' })))(
  'keys that read no answers leave the server alive and other keys served: %j',
  { timeout: 120_000 },
  async ({ revision, bytes, connections, pipelined, keys }, { site }) => {
    const { service, server } = site;
    const asked = await Promise.all(
      Array.from({ length: keys }, async () => {
        const key = service.createKey();
        return readsOf(revision, key, (await exported(site, key, bytes)).uri);
      }),
    );
    const other = service.createKey();
    const own = await exported(site, other, 2000);
    const sockets = silent(server.port, connections, (index) => (asked[index % keys] ?? '').repeat(pipelined));
    const brisk = keepAlive(server.origin);
    expect((await brisk.call('whoami', {}, other)).json.result.isError).toBeUndefined();
    const read = JSON.stringify(readOf('2025-11-25', own.uri));
    const { json } = await brisk.send({ headers: goodHeaders(other), body: read });
    expect(json.result.contents[0].text).toHaveLength(own.bytes - 2);
    for (const socket of sockets) socket.destroy();
    await brisk.close();
  },
);

test('those who read get what was exported, each of them', { timeout: 120_000 }, async ({ site }) => {
  const key = site.service.createKey();
  const { uri, bytes } = await exported(site, key, 4_000_000);
  const body = JSON.stringify(readOf('2025-11-25', uri));
  const texts = await Promise.all(
    Array.from({ length: 8 }, async () => {
      const { send, close } = keepAlive(site.server.origin);
      const { json } = await send({ headers: goodHeaders(key), body });
      await close();
      return json.result.contents[0].text.length;
    }),
  );
  expect(texts).toEqual(Array(8).fill(bytes - 2));
});

test('what was read is not kept while others wait for their turn', { timeout: 120_000 }, async ({ site }) => {
  const { service } = site;
  const server = await serveHttp(['--base-url', service.baseUrl, '--calls-per-key', '1'], {
    NODE_OPTIONS: '--max-old-space-size=128',
  });
  const key = service.createKey();
  const { uri, bytes } = await exported({ service, server }, key, 8_000_000);
  const body = JSON.stringify(readOf('2025-11-25', uri));
  const lengths = await Promise.all(
    Array.from({ length: 16 }, async () => {
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

test('unread batches of made-up keys leave a server with a small heap alive', async () => {
  const server = await serveHttp(['--base-url', 'https://api.example.com'], {
    NODE_OPTIONS: '--max-old-space-size=64',
  });
  const lists = onWire(
    Array.from({ length: 10 }, (_, id) => request(id, 'tools/list')),
    goodHeaders(),
  );
  // 200 MB of answers are asked for.
  const sockets = silent(server.port, 40, () => lists.repeat(40));
  const { call, close } = keepAlive(server.origin);
  for (let time = 0; time < 5; time++) expect((await call('whoami')).json).toMatchObject({ result: { isError: true } });
  for (const socket of sockets) socket.destroy();
  await close();
  expect((await server.close()).code).toBe(0);
});
