import { expect } from 'vitest';
import { test as base } from '../../support/fixtures.ts';
import { formatHttpRequest, openConnection, openRawSocket, validHeaders } from '../../support/http.ts';
import { type HttpCommand, startHttpCommand } from '../../support/process.ts';
import { envelope, request } from '../stdio/session.ts';

/** The command with less memory than the answers that are asked of it take, which has to end by itself. */
const serving =
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
  .extend('server', { scope: 'file' }, serving(256))
  .extend('small', { scope: 'file' }, serving(128, '--calls-per-key', '1'))
  .extend('smallest', { scope: 'file' }, serving(64));

/** An export of so many bytes, of one character again and again, which SQL writes. */
async function exported({ origin }: HttpCommand, key: string, bytes: number, character = "'a'") {
  const { call, close } = openConnection(origin);
  const sql = `WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ${Math.ceil(bytes / 1000)})
    SELECT replace(printf('%.*c', 998, 'a'), 'a', ${character}) AS t FROM n`;
  const { json } = await call('export_ads', { sql }, key);
  await close();
  return json.result.structuredContent as { uri: string; bytes: number };
}

const readOf = (uri: string) => request(1, 'resources/read', { uri });

async function read({ origin }: HttpCommand, key: string, uri: string) {
  const { send, close } = openConnection(origin);
  const { json } = await send({ headers: validHeaders(key), body: JSON.stringify(readOf(uri)) });
  await close();
  return json as { error: { message: string }; result: { contents: [{ text: string }] } };
}

function leaveUnread({ port }: HttpCommand, connections: number, requestOf: (index: number) => string, times: number) {
  const sockets = Array.from({ length: connections }, (_, index) => {
    const { socket } = openRawSocket(port);
    socket.pause();
    socket.write(requestOf(index).repeat(times));
    return socket;
  });
  return () => {
    for (const socket of sockets) socket.destroy();
  };
}

const modern = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'resources/read' };

test.for(['2025-11-25', '2026-07-28'])(
  'keys that read no answers of revision %s leave the server alive, and other keys are served',
  async (revision, { service, server }) => {
    const asked = await Promise.all(
      [service.createKey(), service.createKey()].map(async (key) => {
        const { uri } = await exported(server, key, 4_000_000);
        if (revision === '2025-11-25') return formatHttpRequest(readOf(uri), validHeaders(key));
        const headers = { ...validHeaders(key), ...modern, 'mcp-name': uri };
        return formatHttpRequest(request(1, 'resources/read', { uri, _meta: envelope }), headers);
      }),
    );
    const other = service.createKey();
    const own = await exported(server, other, 2000);
    const leave = leaveUnread(server, 50, (index) => asked[index % 2] ?? '', 3);
    const { result } = await read(server, other, own.uri);
    expect(result.contents[0].text).toHaveLength(own.bytes - 2);
    leave();
  },
);

test('whoever reads gets what was exported, and it is not kept while others wait for their turn', async ({
  service,
  small,
}) => {
  const key = service.createKey();
  const { uri, bytes } = await exported(small, key, 8_000_000);
  const answers = await Promise.all(Array.from({ length: 16 }, () => read(small, key, uri).then(lengthOf)));
  expect(answers).toEqual(Array(16).fill(bytes - 2));
});

const lengthOf = ({ result }: Awaited<ReturnType<typeof read>>) => result.contents[0].text.length;

test('a file that would grow in JSON to many times its size is refused', async ({ service, server }) => {
  const key = service.createKey();
  const { uri, bytes } = await exported(server, key, 9_000_000, 'char(1)');
  expect((await read(server, key, uri)).error.message).toMatch(/has 5\d{7} bytes, too many to send/);
  expect(bytes).toBeGreaterThan(8_900_000);
  const quotes = await exported(server, key, 3_000_000, "'\"'");
  expect(lengthOf(await read(server, key, quotes.uri))).toBe(quotes.bytes - 2);
});

test('unread lists of made-up keys leave a server with little memory alive', async ({ smallest }) => {
  // Each is more than 50 KB.
  const leave = leaveUnread(smallest, 1000, () => formatHttpRequest(request(1, 'tools/list')), 2);
  const { call, close } = openConnection(smallest.origin);
  for (let time = 0; time < 5; time++) expect((await call('whoami')).json).toMatchObject({ result: { isError: true } });
  leave();
  await close();
});

test('a table of line breaks is exported by a server with little memory', async ({ service, smallest }) => {
  const { call, close } = openConnection(smallest.origin);
  const sql = "SELECT replace(printf('%.*c', 1990000, 'a'), 'a', char(10)) AS t FROM (VALUES (1), (2), (3), (4), (5))";
  const { json } = await call('export_ads', { sql }, service.createKey());
  expect(json.result.structuredContent).toMatchObject({ rows: 5, bytes: 5 * 1_990_005 + 6 });
  await close();
});
