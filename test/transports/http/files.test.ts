import { Hono } from 'hono';
import { describe, expect, onTestFinished } from 'vitest';
import { createFileHandler, type LinkedFileFinder } from '../../../src/transports/http/files.ts';
import { listen } from '../../../src/transports/http/server.ts';
import { waitUntil } from '../../support/deadline.ts';
import { respondAsDocumented, respondWithError } from '../../support/faulty-upstream.ts';
import { httpTest } from '../../support/fixtures.ts';
import { createToolCall, createValidHeaders, openConnection, openRawSocket } from '../../support/http.ts';
import { createLatestRequest } from '../stdio/session.ts';

const key = 'svc_live_caller';
const publicUrl = 'https://ads.example.com';

const test = httpTest.extend('open', ({ serve }) => async (config: Parameters<typeof serve>[1] = {}) => {
  const { server } = await serve(respondAsDocumented, config);
  const { send } = openConnection(server.origin);
  const write = async (name: string, args: object, headers: object = {}) => {
    const body = JSON.stringify(createToolCall(name, args));
    const { json } = await send({ headers: { ...createValidHeaders(key), ...headers }, body });
    return { data: json.result.structuredContent, text: json.result.content[0].text as string };
  };
  const get = (path: string, more: object = {}) =>
    send({ method: 'GET', path: path.replace(server.origin, ''), headers: {}, ...more });
  return { ...server, send, write, get, tea: () => write('export_ads', { sql: "SELECT 'tea' AS t", name: 'my tea' }) };
});

test('everyone who has the link to an exported file can download the file', async ({ open }) => {
  const { tea, get, origin, logged } = await open();
  const { data, text } = await tea();
  expect(data.link).toMatch(new RegExp(`^${origin}/files/[\\w-]{22}/my%20tea\\.csv$`));
  expect(text).toContain(`Open it at ${data.link}: it can be read for an hour as ad-library://`);
  const opened = await get(data.link, { headers: { range: 'bytes=0-1' } });
  expect([opened.status, opened.text]).toEqual([200, 'T\r\ntea\r\n']);
  expect(opened.headers).toMatchObject({
    'content-type': 'text/csv; charset=utf-8',
    'content-disposition': 'attachment; filename="my tea.csv"',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-robots-tag': 'noindex',
    'cross-origin-resource-policy': 'same-origin',
  });
  const head = await get(data.link, { method: 'HEAD' });
  expect([head.status, head.text, head.headers['content-length']]).toEqual([200, '', String(data.bytes)]);
  for (const method of ['POST', 'PUT', 'DELETE'] as const) {
    const { status, headers } = await get(data.link, { method });
    expect([status, headers.allow]).toEqual([405, 'GET, HEAD']);
  }
  expect(logged.join('')).not.toContain('/files/');
});

test('the link to a report is valid for a day and opens the report in a sandbox', async ({ open }) => {
  const { write, get } = await open();
  const { data, text } = await write('write_report', { title: 'Tea', sections: [{ heading: 'One' }] });
  expect(text).toContain('can be read for a day');
  const { status, headers } = await get(data.link);
  expect([status, headers['content-disposition']]).toEqual([200, undefined]);
  expect(headers['content-security-policy']).toBe(
    "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; frame-ancestors 'none'",
  );
});

test('a guessed link to an exported file leads to a 404 response', async ({ open }) => {
  const { tea, get, origin } = await open();
  const path = (await tea()).data.link.replace(origin, '') as string;
  const [, , link = ''] = path.split('/');
  const guessed = `${link.slice(0, -1)}${link.endsWith('A') ? 'Q' : 'A'}`;
  const names = 'my%20tea.CSV ..%2fmy%20tea.csv %2e%2e my%20tea.csv%00 my%20tea-methods.md x/my%20tea.csv'.split(' ');
  const invalidPaths = [
    `/files/${guessed}/my%20tea.csv`,
    `/files/${link}`,
    '/files//my%20tea.csv',
    '/files/__proto__/x',
  ];
  for (const address of [...invalidPaths, ...names.map((name) => `/files/${link}/${name}`)])
    expect([address, (await get(address)).status]).toEqual([address, 404]);
  expect((await get(path, { headers: { host: 'evil.example' } })).status).toBe(403);
  expect((await get(path, { headers: { origin: 'https://evil.example' } })).status).toBe(403);
});

test('the links to the files of an API key stop working when the API rejects the key', async ({ open, upstream }) => {
  const { tea, write, get } = await open();
  const { data } = await tea();
  const otherKey = 'svc_live_other';
  const otherExport = await write('export_ads', { sql: 'SELECT 1 AS n' }, { authorization: `Bearer ${otherKey}` });
  upstream.forKey(key, respondWithError(401));
  await write('search_ads', {});
  const { status, text } = await get(data.link);
  expect([status, text]).toEqual([410, 'This link has ended. Ask for the file again: that is free.\n']);
  expect((await get(otherExport.data.link)).status).toBe(200);
  upstream.forKey(key, respondAsDocumented);
});

test.for([
  ['has no link behind a proxy without a public URL', {}, { 'x-forwarded-for': '10.0.0.1' }, undefined],
  [
    'has no link if the request uses another host than loopback',
    { allowedHosts: ['ads.internal'] },
    { host: 'ads.internal' },
    undefined,
  ],
  ['has no link if the setting switches links off', { fileLinks: 'off' }, {}, undefined],
  [
    'has a link under the public URL',
    { publicUrl },
    { 'x-forwarded-for': '10.0.0.1', host: 'ads.example.com' },
    publicUrl,
  ],
  ['has no link for demo data under a public URL', { publicUrl, demo: true }, { host: 'ads.example.com' }, undefined],
] as const)(
  'export_ads returns a download link only if the settings and the request allow it: the result %s',
  async ([_, config, headers, origin], { open }) => {
    const { write, get } = await open(config as Parameters<typeof open>[0]);
    const { data } = await write('export_ads', { sql: 'SELECT 1 AS n', name: 'n' }, headers);
    if (origin === undefined) return expect(data).not.toHaveProperty('link');
    expect(data.link).toMatch(/^https:\/\/ads\.example\.com\/files\/[\w-]{22}\/n\.csv$/);
    expect((await get(new URL(data.link).pathname, { headers })).status).toBe(200);
  },
);

test('the result of export_ads contains a download link in protocol revision 2026-07-28', async ({ open }) => {
  const { send, origin } = await open({ demo: true });
  const { json } = await send(
    createLatestRequest('tools/call', { name: 'export_ads', arguments: { sql: 'SELECT 1 AS n' } }),
  );
  expect(json.result.structuredContent.link).toContain(`${origin}/files/`);
});

describe('Downloads by slow clients', () => {
  const content = Buffer.alloc(8 * 1024 * 1024, 'x');
  const small = Buffer.alloc(200 * 1024, 'y');
  const sizes: Record<string, Buffer> = { large: content, small };

  /** Serves files whose name determines their size. The tenant id is the part of the link before the dash. */
  async function serveLinks(downloadLimits: Parameters<typeof createFileHandler>[1]) {
    const reads: string[] = [];
    const findLinkedFile: LinkedFileFinder['findLinkedFile'] = async (link, name) => {
      const bytes = sizes[name];
      if (bytes === undefined) return undefined;
      const readContent = async () => {
        reads.push(link);
        return bytes;
      };
      const fileFields = { uri: '', name, mimeType: 'text/csv', bytes: bytes.length, createdAt: 0, ttlMs: 1 };
      return { tenantId: link.split('-')[0] ?? '', file: { ...fileFields, readContent } };
    };
    const app = new Hono().all(
      '/files/:link/:name',
      createFileHandler({ findLinkedFile, findLinkOrigin: () => 'http://127.0.0.1' }, downloadLimits),
    );
    const listener = await listen(app.fetch, { host: '127.0.0.1', port: 0 });
    onTestFinished(() => listener.close(0));
    const port = Number(new URL(listener.url).port);
    const readSlowly = (link: string, name = 'large') => {
      const { socket, ...reader } = openRawSocket(port);
      onTestFinished(() => void socket.destroy());
      socket.pause();
      socket.write(`GET /files/${link}/${name} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`);
      return { socket, ...reader };
    };
    const get = (link: string, name = 'large') =>
      openConnection(listener.url).send({ method: 'GET', path: `/files/${link}/${name}`, headers: {} });
    return { readSlowly, get, reads };
  }

  test('twenty slow downloads of the same file share one copy of the file in memory', async () => {
    const { readSlowly, get, reads } = await serveLinks({ maxLargeFiles: 2, maxDownloadMs: 60_000, maxWaitMs: 60_000 });
    for (let reader = 0; reader < 20; reader++) readSlowly('a-1');
    await waitUntil(() => reads.length === 1);
    for (const link of ['a-1', 'a-2', 'b-1']) expect((await get(link)).text).toHaveLength(content.length);
    // The server reads the file once for all downloads of its link.
    expect(reads.filter((link) => link === 'a-1')).toHaveLength(1);
  });

  test('a slow download is disconnected if the download of another file waits for a slot', async () => {
    const { readSlowly, get, reads } = await serveLinks({ maxLargeFiles: 2, maxDownloadMs: 100, maxWaitMs: 60_000 });
    const slow = [readSlowly('a-1'), readSlowly('b-1')];
    await waitUntil(() => reads.length === 2);
    expect((await get('c-1')).text).toHaveLength(content.length);
    for (const { socket } of slow) socket.resume();
    const lengths = await Promise.all(slow.map(({ closed }) => closed.then(({ length }) => length)));
    expect(Math.min(...lengths)).toBeLessThan(content.length);
  });

  test('small files can still be downloaded while a slow client uses the only slot for large downloads', async () => {
    const { readSlowly, get, reads } = await serveLinks({ maxLargeFiles: 1, maxDownloadMs: 60_000, maxWaitMs: 100 });
    readSlowly('a-1');
    await waitUntil(() => reads.length === 1);
    expect((await get('a-2', 'small')).text).toHaveLength(small.length);
    const { status, headers } = await get('b-1');
    expect([status, headers['retry-after'], headers['content-disposition']]).toEqual([503, '5', undefined]);
  });

  test('the server rejects further downloads of a file while the maximum number of downloads of this file is running', async () => {
    const { readSlowly, get, reads } = await serveLinks({ maxResponsesPerLink: 3 });
    const readers = Array.from({ length: 3 }, () => readSlowly('a-1'));
    await waitUntil(() => reads.length === 1);
    await waitUntil(async () => (await get('a-1')).status === 503);
    expect((await get('a-2')).status).toBe(200);
    for (const { socket } of readers) socket.destroy();
    await waitUntil(async () => (await get('a-1')).status === 200);
  });
});
