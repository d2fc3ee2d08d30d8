import { existsSync } from 'node:fs';
import { copyFile, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { strToU8, zipSync } from 'fflate';
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from 'undici';
import { expect, onTestFinished } from 'vitest';
import { createKey, importFiles, listKeys, revokeKey, serveLibrary } from '../../src/library/commands/commands.ts';
import { openLibrary } from '../../src/library/open.ts';
import { waitUntil } from '../support/deadline.ts';
import { createGate } from '../support/gate.ts';
import { startCommand } from '../support/process.ts';
import { databaseTest as test } from './support/fixtures.ts';
import { createUuid, serveOnLoopback, testStartTime } from './support/library-server.ts';

const createTarget = (database: string) => ({ database, now: () => testStartTime });
const serve = (database: string) => serveLibrary({ ...createTarget(database), listen: serveOnLoopback });
const listKeyNames = async (database: string) => (await listKeys(createTarget(database))).map(({ name }) => name);
const withToken = (token: string) => ({ headers: { Authorization: `Bearer ${token}` } });

/** Serves a database with the built command until `kill` is called. */
async function startServer(database: string) {
  const server = startCommand(['library', 'serve', '--port', '0', '--database', database]);
  const kill = async () => {
    server.child.kill('SIGKILL');
    await server.ended;
  };
  onTestFinished(kill);
  const [, url = ''] = await server.waitForStderr(/library on (http:\S+)/);
  const getStatus = async (key: string) => (await fetch(`${url}/v1/whoami`, withToken(key))).status;
  return { kill, getStatus };
}

test('opening a library database through a symbolic link locks the file that the link points to', async ({
  folder,
  database,
}) => {
  const link = join(folder, 'link.db');
  await symlink(database, link);
  const served = await serve(link);
  onTestFinished(served.close);
  await expect(serve(database)).rejects.toThrow(`held by process ${process.pid} of`);
});

test('new API keys stay valid and revoked API keys stay invalid after the library server is killed', async ({
  database,
}) => {
  const server = await startServer(database);
  const reportedKeys: string[] = [];
  const revokedKey = await createKey(createTarget(database), { name: 'Revoked' });
  await revokeKey(createTarget(database), revokedKey.id);
  let isKilled = false;
  const creations = Array.from({ length: 4 }, async () => {
    while (!isKilled) reportedKeys.push((await createKey(createTarget(database), {})).key);
  }).map((loop) => loop.catch(() => {}));
  await waitUntil(() => reportedKeys.length >= 25);
  isKilled = true;
  await server.kill();
  await Promise.all(creations);

  const restartedServer = await startServer(database);
  for (const key of reportedKeys) expect(await restartedServer.getStatus(key)).toBe(200);
  expect(await restartedServer.getStatus(revokedKey.key)).toBe(401);
  expect((await listKeyNames(database)).length).toBeGreaterThanOrEqual(reportedKeys.length + 1);
});

test('a library command fails while another process imports ads, and the error names the other process', async ({
  folder,
  database,
}) => {
  await createKey(createTarget(database), { name: 'Saved' });
  const importProcess = startCommand(['library', 'import', '-', '--database', database]);
  onTestFinished(() => void importProcess.child.kill('SIGKILL'));
  importProcess.child.stdin?.on('error', () => {}).write(`{"id":"${createUuid(1)}"}\n`.repeat(20_000));
  await waitUntil(() => existsSync(`${database}.lock`));
  importProcess.child.kill('SIGSTOP');
  await expect(listKeys(createTarget(database))).rejects.toMatchObject({
    failure: { kind: 'busy', problem: expect.stringContaining(`held by process ${importProcess.child.pid} of`) },
  });
  importProcess.child.kill('SIGKILL');
  await importProcess.ended;
  expect(await readdir(folder)).toContain('ad-library.db.lock');
  expect(await listKeyNames(database)).toEqual(['Saved']);
  expect(await readdir(folder)).toEqual(['ad-library.db']);
});

test("a command can reach the running library server only with the token from the server's lock file", async ({
  folder,
  database,
}) => {
  const { url, close } = await serve(database);
  const lockPath = `${database}.owner`;
  expect((await stat(lockPath)).mode & 0o777).toBe(0o600);
  const { token } = JSON.parse(await readFile(lockPath, 'utf8')).address;
  const send = (path: string, token: string, body?: string) =>
    fetch(`${url}/-/${path}`, { method: 'POST', ...withToken(token), ...(body && { body }) });
  expect((await send('list', token, '[]')).status).toBe(200);
  expect((await send('list', 'wrong', '[]')).status).toBe(404);
  expect((await fetch(`${url}/-/list`)).status).toBe(404);
  const refusal = await send('create', token, '[{"scopes":["ads:eat"]}]');
  expect(await refusal.json()).toEqual({ message: expect.stringMatching(/Unknown scope ads:eat/) });
  expect(await (await send('import', token)).json()).toMatchObject({ ads: 0, pages: 0 });
  const stdin = Readable.from([Buffer.from(`{"id":"${createUuid(1)}"}\n`)]);
  expect(await importFiles(createTarget(database), ['-'], { stdin })).toMatchObject({
    files: [{ ads: 1, skipped: 0 }],
  });
  await close();
  expect(await readdir(folder)).toEqual(['ad-library.db']);
});

const replaceFile = (file: string, writeNewFile: (newPath: string) => Promise<void>) =>
  writeNewFile(`${file}.new`).then(() => rename(`${file}.new`, file));

test.for<[name: string, code: string, damage: (database: string) => Promise<unknown>]>([
  ['file is deleted', 'database_replaced', (file) => rm(file)],
  ['file is replaced', 'database_replaced', (file) => replaceFile(file, (newPath) => writeFile(newPath, ''))],
  [
    'file is replaced by its copy',
    'database_replaced',
    (file) => replaceFile(file, (newPath) => copyFile(file, newPath)),
  ],
  ['lock is deleted', 'database_taken_over', (file) => rm(`${file}.owner`)],
])(
  'the library server responds to every request with 503 after its database %s',
  async ([_, code, damage], { database }) => {
    const { key } = await createKey(createTarget(database), {});
    const served = await serve(database);
    const sendRequest = () => fetch(`${served.url}/v1/collections`, withToken(key));
    expect((await sendRequest()).status).toBe(200);
    await damage(database);
    const answer = await sendRequest();
    expect([answer.status, await answer.json()]).toMatchObject([503, { error: { code } }]);
    await served.close();
  },
);

test('the library server continues to write to its database file after the file was moved', async ({
  folder,
  database,
}) => {
  const served = await serve(database);
  await createKey(createTarget(database), { name: 'Saved' });
  await rename(database, `${database}.old`);
  await writeFile(database, '');
  await served.close();
  expect(await listKeyNames(database)).toEqual([]);
  expect(await listKeyNames(`${database}.old`)).toEqual(['Saved']);
  expect((await readdir(folder)).toSorted()).toEqual(['ad-library.db', 'ad-library.db.old']);
});

test('an import into a served library reports an unreadable file and continues with the next file', async ({
  folder,
  database,
}) => {
  const served = await serve(database);
  const [oldWorkbook, table] = [join(folder, 'old.xls'), join(folder, 'ads.csv')];
  await writeFile(oldWorkbook, Buffer.from('d0cf11e0a1b11ae1', 'hex'));
  await writeFile(table, 'headline\nTea\n');
  const { files } = await importFiles(createTarget(database), [oldWorkbook, table], { stdin: Readable.from([]) });
  expect(files).toMatchObject([
    { ads: 0, skipped: 1, problems: [{ problem: expect.stringMatching(/^a workbook in the old format \.xls;/) }] },
    { ads: 1, skipped: 0, problems: [] },
  ]);
  await served.close();
});

test('an import into a served library stores nothing of an entry that is cut off, and continues with the next file', async ({
  folder,
  database,
}) => {
  const served = await serve(database);
  const rows = Array.from({ length: 10_000 }, (_, index) => `Tea,Headline ${index},5\n`).join('');
  const tableText = `advertiser,headline,spend\n${rows}Tea,Last,1234\n`;
  for (const [entryName, text, cutText] of [
    ['ads.csv', tableText, '34\n'],
    ['ads.txt', tableText, '34\n'],
    ['ads.json', JSON.stringify(Array.from({ length: 10_000 }, (_, index) => ({ id: createUuid(index) }))), '}]'],
  ] as const) {
    const [archive, table] = [join(folder, 'ads.zip'), join(folder, 'next.csv')];
    const archiveBytes = Buffer.from(zipSync({ [entryName]: strToU8(text) }, { level: 0 }));
    await writeFile(archive, archiveBytes.subarray(0, archiveBytes.lastIndexOf(`${cutText}PK`)));
    await writeFile(table, `advertiser,headline\nTea,After ${entryName}\n`);
    const { files } = await importFiles(createTarget(database), [archive, table], { stdin: Readable.from([]) });
    expect(files).toMatchObject([
      {
        name: `${archive}/${entryName}`,
        ...{ ads: 0, skipped: 1 },
        problems: [
          { problem: expect.stringMatching(/^the entry of the ZIP archive is damaged, encrypted or cut off/) },
        ],
      },
      { name: archive, problems: [{ problem: expect.stringContaining('the ZIP archive is cut off') }] },
      { name: table, ads: 1, skipped: 0, problems: [] },
    ]);
  }
  await served.close();
  const library = await openLibrary(createTarget(database));
  onTestFinished(library.close);
  expect(library.countRecords()).toMatchObject({ ads: 3 });
});

test('an import into a served library waits for the response longer than the timeout of `fetch`', async ({
  folder,
  database,
}) => {
  // The timers of undici are inexact, so the timeout of 0.1 seconds ends after about one second.
  const responseDelayMs = 2000;
  const slowListen: typeof serveOnLoopback = (handleRequest) =>
    serveOnLoopback(async (request) => {
      if (request.url.includes('/-/import')) await delay(responseDelayMs);
      return handleRequest(request);
    });
  const served = await serveLibrary({ ...createTarget(database), listen: slowListen });
  const previousDispatcher = getGlobalDispatcher();
  setGlobalDispatcher(new Agent({ headersTimeout: 100 }));
  onTestFinished(() => setGlobalDispatcher(previousDispatcher));
  const table = join(folder, 'ads.csv');
  await writeFile(table, 'headline\nTea\n');
  const { files } = await importFiles(createTarget(database), [table], { stdin: Readable.from([]) });
  expect(files).toMatchObject([{ ads: 1, problems: [] }]);
  await served.close();
});

test('two imports into a served library at the same time mark no ads of each other as gone', async ({
  folder,
  database,
}) => {
  const served = await serve(database);
  onTestFinished(served.close);
  const [table, otherTable] = [join(folder, 'ads.csv'), join(folder, 'other.csv')];
  await writeFile(table, 'id,headline\n1,Tea\n');
  await writeFile(otherTable, 'id,headline\n2,Milk\n');
  const startImport = (paths: string[], question: string, stdin: AsyncIterable<Uint8Array> = Readable.from([])) =>
    importFiles(createTarget(database), paths, { stdin, question, isComplete: true });
  const isFirstTableStored = createGate();
  let otherImport: ReturnType<typeof startImport> | undefined;
  async function* readSlowly(): AsyncGenerator<Uint8Array> {
    isFirstTableStored.open();
    // Wait until the other import has ended, or has had enough time for it.
    await Promise.race([waitUntil(() => otherImport !== undefined).then(() => otherImport), delay(1000)]);
    yield Buffer.from(await readFile(otherTable));
  }
  const slowImport = startImport([table, '-'], 'tea', readSlowly());
  await isFirstTableStored.opened;
  otherImport = startImport([table], 'drinks');
  expect(await slowImport).toMatchObject({ questionResult: { listedCount: 2, goneCount: 0 } });
  expect(await otherImport).toMatchObject({ questionResult: { listedCount: 1, goneCount: 0 } });
});

test('a served library imports one source after another', async ({ database }) => {
  const served = await serve(database);
  onTestFinished(served.close);
  const { address } = JSON.parse(await readFile(`${database}.owner`, 'utf8'));
  const sendImport = (source: string | Readable, runNumber: number) =>
    fetch(`${address.url}/-/import?runNumber=${runNumber}`, {
      ...{ method: 'POST', ...withToken(address.token), duplex: 'half' },
      body: typeof source === 'string' ? source : (Readable.toWeb(source) as ReadableStream),
    } as RequestInit).then((response) => response.json());
  const slowSource = new Readable({ read() {} });
  slowSource.push('id,headline\n1,Tea\n');
  const slowImport = sendImport(slowSource, 1);
  await delay(100);
  const otherImport = sendImport('id,headline\n2,Milk\n', 2);
  expect(await Promise.race([otherImport, delay(300, 'waiting')])).toBe('waiting');
  slowSource.push(null);
  expect(await slowImport).toMatchObject({ ads: 1 });
  expect(await otherImport).toMatchObject({ ads: 1 });
});
