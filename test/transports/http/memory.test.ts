import { expect } from 'vitest';
import { test as base } from '../../support/fixtures.ts';
import { createValidHeaders, formatHttpRequest, openConnection, openRawSocket } from '../../support/http.ts';
import { type HttpCommand, startHttpCommand } from '../../support/process.ts';
import { envelope, request } from '../stdio/session.ts';

/**
 * Creates a fixture that runs the command with less memory than all requested responses need together. At the end, the
 * command must exit with code 0, so it did not run out of memory.
 */
const serveWithMemory =
  (megabytes: number, ...args: string[]) =>
  async (
    { service }: { service: { baseUrl: string } },
    { onCleanup }: { onCleanup(end: () => Promise<void>): void },
  ): Promise<HttpCommand> => {
    const environment = { NODE_OPTIONS: `--max-old-space-size=${megabytes}` };
    const server = await startHttpCommand(['--base-url', service.baseUrl, ...args], environment);
    onCleanup(async () => expect((await server.close()).code).toBe(0));
    return server;
  };

const test = base
  .extend('server', { scope: 'file' }, serveWithMemory(256))
  .extend('smallServer', { scope: 'file' }, serveWithMemory(128, '--calls-per-key', '1'))
  // With 64 MB, the server has enough memory on Node 20 and 22, but not on Node 26, which needs more for itself.
  .extend('smallestServer', { scope: 'file' }, serveWithMemory(80));

/** Creates an export of about `bytes` bytes that repeats one character. `character` is an SQL expression. */
async function createExport({ origin }: HttpCommand, key: string, bytes: number, character = "'a'") {
  const { call, close } = openConnection(origin);
  const sql = `WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ${Math.ceil(bytes / 1000)})
    SELECT replace(printf('%.*c', 998, 'a'), 'a', ${character}) AS t FROM n`;
  const { json } = await call('export_ads', { sql }, key);
  await close();
  return json.result.structuredContent as { uri: string; bytes: number };
}

const readOf = (uri: string) => request(1, 'resources/read', { uri });

async function readExport({ origin }: HttpCommand, key: string, uri: string) {
  const { send, close } = openConnection(origin);
  const { json } = await send({ headers: createValidHeaders(key), body: JSON.stringify(readOf(uri)) });
  await close();
  return json as { error: { message: string }; result: { contents: [{ text: string }] } };
}

/**
 * Opens connections that send requests and never read the responses.
 * @returns a function that closes the connections
 */
function leaveUnread(
  { port }: HttpCommand,
  connections: number,
  createRequest: (index: number) => string,
  times: number,
) {
  const sockets = Array.from({ length: connections }, (_, index) => {
    const { socket } = openRawSocket(port);
    socket.pause();
    socket.write(createRequest(index).repeat(times));
    return socket;
  });
  return () => {
    for (const socket of sockets) socket.destroy();
  };
}

const modern = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'resources/read' };

test.for(['2025-11-25', '2026-07-28'])(
  'the server stays responsive while clients (protocol revision %s) do not read their large responses',
  async (revision, { service, server }) => {
    const unreadRequests = await Promise.all(
      [service.createKey(), service.createKey()].map(async (key) => {
        const { uri } = await createExport(server, key, 4_000_000);
        if (revision === '2025-11-25') return formatHttpRequest(readOf(uri), createValidHeaders(key));
        const headers = { ...createValidHeaders(key), ...modern, 'mcp-name': uri };
        return formatHttpRequest(request(1, 'resources/read', { uri, _meta: envelope }), headers);
      }),
    );
    const otherKey = service.createKey();
    const otherExport = await createExport(server, otherKey, 2000);
    const closeConnections = leaveUnread(server, 50, (index) => unreadRequests[index % 2] ?? '', 3);
    const { result } = await readExport(server, otherKey, otherExport.uri);
    expect(result.contents[0].text).toHaveLength(otherExport.bytes - 2);
    closeConnections();
  },
);

test('sixteen reads of a large exported file at the same time need less memory than sixteen copies of the file', async ({
  service,
  smallServer,
}) => {
  const key = service.createKey();
  const { uri, bytes } = await createExport(smallServer, key, 8_000_000);
  const lengths = await Promise.all(
    Array.from({ length: 16 }, () => readExport(smallServer, key, uri).then(getContentLength)),
  );
  expect(lengths).toEqual(Array(16).fill(bytes - 2));
});

const getContentLength = ({ result }: Awaited<ReturnType<typeof readExport>>) => result.contents[0].text.length;

test('an exported file is not sent as a resource if its JSON form would be too large', async ({ service, server }) => {
  const key = service.createKey();
  const { uri, bytes } = await createExport(server, key, 9_000_000, 'char(1)');
  expect((await readExport(server, key, uri)).error.message).toMatch(/has 5\d{7} bytes, too many to send/);
  expect(bytes).toBeGreaterThan(8_900_000);
  const quotes = await createExport(server, key, 3_000_000, "'\"'");
  expect(getContentLength(await readExport(server, key, quotes.uri))).toBe(quotes.bytes - 2);
});

test('a server with little memory keeps running when thousands of its responses are not read', async ({
  smallestServer,
}) => {
  // Each tool list has more than 50 KB.
  const closeConnections = leaveUnread(smallestServer, 1000, () => formatHttpRequest(request(1, 'tools/list')), 2);
  const { call, close } = openConnection(smallestServer.origin);
  for (let time = 0; time < 5; time++) expect((await call('whoami')).json).toMatchObject({ result: { isError: true } });
  closeConnections();
  await close();
});

test('a server with little memory can export millions of line breaks in a few cells', async ({
  service,
  smallestServer,
}) => {
  const { call, close } = openConnection(smallestServer.origin);
  const sql = "SELECT replace(printf('%.*c', 1990000, 'a'), 'a', char(10)) AS t FROM (VALUES (1), (2), (3), (4), (5))";
  const { json } = await call('export_ads', { sql }, service.createKey());
  expect(json.result.structuredContent).toMatchObject({ rows: 5, bytes: 5 * 1_990_005 + 6 });
  await close();
});
