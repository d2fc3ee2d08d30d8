import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { jpegOf, pngOf } from '../pictures/sample-pictures.ts';
import { until } from '../support/http.ts';
import { startPictureHost } from '../support/picture-host.ts';
import { run, start } from '../support/process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { uuidOf } from '../support/uuid-of.ts';

const host = await startPictureHost();
afterAll(() => host.close());
const mediaHosts = ['--media-hosts', `${host.host.host}:${host.host.port}`];
const folderOf = temporaryFolder();
let databases = 0;

/** Ads as lines, each with a picture of its own and one on a card. */
const linesOf = (name: string, pictures: readonly string[]) =>
  pictures
    .map((url, number) => {
      const media = [{ type: 'IMAGE', url }];
      // Another address of the same answer.
      const cards = [{ title: 'Card', image_url: url.replace(/(\d+)$/, '0$1') }];
      return JSON.stringify({ id: uuidOf(`${name} ${number}`), headline: `Ad ${number}`, media, cards });
    })
    .join('\n');

function archive() {
  const database = join(folderOf, `${databases++}.db`);
  const library = (words: string[], input = '') => run(['library', ...words, '--database', database], { input });
  const serve = async () => {
    const served = start(['library', 'serve', '--database', database, '--port', '0']);
    const [, origin = ''] = await served.says(/library on (http:\S+)/);
    onTestFinished(async () => {
      served.child.kill();
      await served.ended;
    });
    const key = (await library(['key', 'create', '--unmetered'])).stdout.trim();
    const ad = async (id: string) => {
      const { body } = await request(`${origin}/v1/ads/${id}`, { headers: { authorization: `Bearer ${key}` } });
      return body.json() as Promise<{ media: { url: string }[]; cards: { image_url: string }[] }>;
    };
    return { origin, ad };
  };
  return { database, folder: `${database}.pictures`, library, serve };
}

test('an import fetches pictures, and the library serves them where the ads name them', async () => {
  const bytes = await jpegOf();
  const { folder, library, serve } = archive();
  const input = linesOf('served', [host.serve(bytes), host.serve(bytes), host.serve(pngOf())]);
  const imported = await library(['import', '-', '--pictures', folder, ...mediaHosts], input);
  expect(imported).toMatchObject({ code: 0 });
  expect(imported.stderr).toContain(`at most 6 to fetch into ${folder}, which may hold 2000 MB`);
  expect(imported.stderr).toMatch(/pictures: 6 pictures kept/);
  // The same picture is one file, whatever its address.
  expect(readdirSync(folder).toSorted()).toEqual([
    expect.stringMatching(/^[\da-f]{64}\.(jpeg|png)$/),
    expect.stringMatching(/^[\da-f]{64}\.(jpeg|png)$/),
  ]);
  const { origin, ad } = await serve();
  const { media, cards } = await ad(uuidOf('served 0'));
  expect(media[0]?.url).toMatch(new RegExp(`^${origin}/media/kept/[\\da-f]{64}\\.jpeg$`));
  expect(cards[0]?.image_url).toBe(media[0]?.url);
  const { headers, body } = await request(media[0]?.url ?? '');
  expect(headers).toMatchObject({
    'content-type': 'image/jpeg',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
  });
  expect(Buffer.from(await body.arrayBuffer())).toEqual(Buffer.from(bytes));
  const page = await request(`${origin}/ads/${uuidOf('served 0')}`);
  expect(await page.body.text()).toContain('<img src="/media/kept/');
  for (const name of ['..%2f0.db', `${'0'.repeat(64)}.jpeg`, `${'0'.repeat(64)}.svg`])
    expect((await request(`${origin}/media/kept/${name}`)).statusCode).toBe(404);
});

test('what is no picture is not kept, and the reasons are counted', async () => {
  const { folder, library } = archive();
  const page = host.serve(Buffer.from('<html>'));
  const gone = host.serve((response) => response.writeHead(410).end());
  const input = linesOf('refused', [page, gone, 'http://127.0.0.1:9/inside.jpg']);
  const { code, stderr } = await library(['import', '--pictures', folder, '-', ...mediaHosts], input);
  expect(code).toBe(0);
  expect(stderr).toContain('0 pictures kept, 0.0 MB; 5 could not be:');
  expect(stderr).toContain('2 × a web page, not a picture');
  expect(stderr).toContain('2 × its host answered 410');
  expect(stderr).toContain('1 × its host is not in AD_LIBRARY_MEDIA_HOSTS');
  expect(readdirSync(folder)).toEqual([]);
  // An import does not try them again; the command does.
  expect((await library(['import', '-', '--pictures', folder, ...mediaHosts], input)).stderr).toContain(
    'none is missing',
  );
  expect((await library(['pictures', ...mediaHosts])).stderr).toContain('at most 5 to fetch');
});

test('a process that is killed loses nothing that it had, and the next goes on, also through a library that is served', async () => {
  const { folder, library, serve, database } = archive();
  let [answered, isHeld] = [0, true];
  const bytes = await jpegOf();
  const slow = () =>
    host.serve((response) => {
      answered++;
      if (!isHeld || answered < 80) response.writeHead(200, { 'content-type': 'image/jpeg' }).end(bytes);
    });
  await library(['import', '-'], linesOf('killed', Array.from({ length: 60 }, slow)));
  const killed = start(['library', 'pictures', '--database', database, ...mediaHosts]);
  await until(() => answered >= 80);
  killed.child.kill('SIGKILL');
  await killed.ended;
  isHeld = false;
  const { origin, ad } = await serve();
  const before = host.requests.length;
  const { stderr } = await library(['pictures', ...mediaHosts]);
  expect(stderr).toMatch(/pictures: \d+ pictures kept/);
  expect(host.requests.length - before).toBeLessThan(120);
  expect((await ad(uuidOf('killed 59'))).media[0]?.url).toContain(`${origin}/media/kept/`);
  expect((await library(['pictures', ...mediaHosts])).stderr).toContain('none is missing');
  // A file that is gone is fetched again.
  for (const file of readdirSync(folder)) rmSync(join(folder, file));
  expect((await library(['pictures', ...mediaHosts])).stderr).toContain('at most 120 to fetch');
  expect(readFileSync(join(folder, readdirSync(folder).find((name) => name.endsWith('jpeg')) ?? ''))).toEqual(
    Buffer.from(bytes),
  );
});

test('a folder takes no more than it may', async () => {
  const { folder, library } = archive();
  const pictures = await Promise.all(
    Array.from({ length: 30 }, async (_, number) => host.serve(await jpegOf({ width: 400 + number, height: 400 }))),
  );
  const input = linesOf('full', pictures);
  const { code, stderr } = await library(
    ['import', '-', '--pictures', folder, '--max-mb', '0.02', ...mediaHosts],
    input,
  );
  expect(code).toBe(1);
  expect(stderr).toContain('the folder is full; --max-mb allows it more');
  const { length } = readdirSync(folder);
  expect(length).toBeGreaterThan(0);
  expect(length).toBeLessThan(20);
  const more = await library(['pictures', '--folder', folder, '--max-mb', '50', ...mediaHosts]);
  expect(more).toMatchObject({ code: 0 });
  expect(readdirSync(folder)).toHaveLength(30);
});

test.each([
  [['import', '--pictures'], 'name the files to load'],
  [['pictures', '--max-mb', 'many'], '--max-mb takes a number above 0'],
])('%j is wrong use', async (words, problem) => {
  const { code, stderr } = await archive().library(words);
  expect(code).toBe(2);
  expect(stderr).toContain(problem);
});
