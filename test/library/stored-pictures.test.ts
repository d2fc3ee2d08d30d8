import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { afterAll, expect, onTestFinished } from 'vitest';
import { jpegOf, pngOf } from '../pictures/sample-pictures.ts';
import { waitUntil } from '../support/deadline.ts';
import { startPictureHost } from '../support/picture-host.ts';
import { startCommand } from '../support/process.ts';
import { startServer } from '../support/server.ts';
import { deriveUuid } from '../support/uuid-of.ts';
import { runLibraryCommand, serveDatabase } from './support/command.ts';
import { databaseTest } from './support/fixtures.ts';

const host = await startPictureHost();
afterAll(() => host.close());
const mediaHosts = ['--media-hosts', `${host.host.host}:${host.host.port}`];

/** Ads as lines, each with a picture of its own and one on a card. */
const linesOf = (pictures: readonly string[]) =>
  pictures
    .map((url, number) => {
      const media = [{ type: 'IMAGE', url }];
      // Another address of the same answer.
      const cards = [{ title: 'Card', image_url: url.replace(/(\d+)$/, '0$1') }];
      return JSON.stringify({ id: deriveUuid(`ad ${number}`), headline: `Ad ${number}`, media, cards });
    })
    .join('\n');

const test = databaseTest
  .extend('pictures', ({ database }) => `${database}.pictures`)
  .extend(
    'run',
    ({ database }) =>
      (words: string[], input = '') =>
        runLibraryCommand([...words, '--database', database], { input }),
  )
  /** Serves the database, and asks it for an ad. */
  .extend('serve', ({ database, run }) => async () => {
    const { origin, readStderr, close } = await serveDatabase(database);
    const [, pages = ''] = /pages at (\S+)/.exec(readStderr()) ?? [];
    onTestFinished(() => close().then(() => {}));
    const key = (await run(['key', 'create', '--unmetered'])).out.trim();
    const ad = async (number: number) => {
      const headers = { authorization: `Bearer ${key}` };
      const { body } = await request(`${origin}/v1/ads/${deriveUuid(`ad ${number}`)}`, { headers });
      return body.json() as Promise<{ media: { url: string }[]; cards: { image_url: string }[] }>;
    };
    return { origin, key, ad, pages };
  });

test('an import fetches pictures, and the library serves them', async ({ pictures, run, serve }) => {
  const bytes = await jpegOf();
  const input = linesOf([host.serve(bytes), host.serve(bytes), host.serve(pngOf())]);
  const imported = await run(['import', '-', '--pictures', '--folder', pictures, ...mediaHosts], input);
  expect(imported).toMatchObject({ code: 0 });
  expect(imported.err).toContain(`at most 6 to fetch into ${pictures}, which may hold 2000 MB`);
  expect(imported.err).toMatch(/pictures: 6 pictures kept/);
  // The same picture is one file, whatever its address.
  const names = readdirSync(pictures).toSorted();
  expect(names).toEqual(Array(2).fill(expect.stringMatching(/^[\da-f]{64}\.[\da-f]{16}-?\.(jpeg|png)$/)));
  const { origin, key, ad, pages } = await serve();
  const { media, cards } = await ad(0);
  expect(media[0]?.url).toMatch(new RegExp(`^${origin}/media/kept/[\\da-f]{64}\\.[\\da-f]{16}-\\.jpeg$`));
  expect(cards[0]?.image_url).toBe(media[0]?.url);
  const { headers, body } = await request(media[0]?.url ?? '');
  const policy = { 'x-content-type-options': 'nosniff', 'content-security-policy': "default-src 'none'; sandbox" };
  expect(headers).toMatchObject({ 'content-type': 'image/jpeg', ...policy });
  expect(Buffer.from(await body.arrayBuffer())).toEqual(Buffer.from(bytes));
  const page = await request(`${pages}ads/${deriveUuid('ad 0')}`);
  expect(await page.body.text()).toContain('<img src="/media/kept/');
  for (const name of ['..%2fad-library.db', `${'0'.repeat(64)}.${'0'.repeat(16)}.jpeg`, `${'0'.repeat(64)}.svg`])
    expect((await request(`${origin}/media/kept/${name}`)).statusCode).toBe(404);
  // A server that asks the library knows what its pictures show, and fetches none for that.
  const server = await startServer({ config: { baseUrl: origin, apiKey: key } });
  onTestFinished(server.close);
  await server.call('search_ads');
  const known = { sql: 'SELECT headline, picture FROM ads ORDER BY 1' };
  const before = (await server.call('query_ads', known)).data.rows as [string, string][];
  expect(before.map(([, picture]) => names.some((name) => name.includes(`.${picture}`)))).toEqual([true, true, true]);
  await server.call('view_ads', { adIds: [0, 1, 2].map((number) => deriveUuid(`ad ${number}`)) });
  expect((await server.call('query_ads', known)).data.rows).toEqual(before);
});

test('what is no picture is not kept, and the reasons are counted', async ({ pictures, run }) => {
  const page = host.serve(Buffer.from('<html>'));
  const gone = host.serve((response) => response.writeHead(410).end());
  const input = linesOf([page, gone, 'http://127.0.0.1:9/inside.jpg']);
  const { code, err } = await run(['import', '--pictures', '--folder', pictures, '-', ...mediaHosts], input);
  expect(code).toBe(0);
  const reasons = ['2 × a web page, not a picture', '2 × its host answered 410', '1 × its host is not in AD_LIBRARY_'];
  for (const said of ['0 pictures kept, 0.0 MB; 5 could not be:', ...reasons]) expect(err).toContain(said);
  expect(readdirSync(pictures)).toEqual([]);
  // An import does not try them again; the command does.
  const again = await run(['import', '-', '--pictures', '--folder', pictures, ...mediaHosts], input);
  expect(again.err).toContain('none is missing');
  expect((await run(['pictures', ...mediaHosts])).err).toContain('at most 5 to fetch');
});

test('a long text full of beginnings of addresses does not slow down a library that keeps pictures', async ({
  pictures,
  run,
  serve,
}) => {
  const [first = ''] = linesOf([host.serve(pngOf())]).split('\n');
  const long = JSON.stringify({ ...JSON.parse(first), id: deriveUuid('ad 1'), body: '"http:'.repeat(120_000) });
  await run(['import', '-', '--pictures', '--folder', pictures, ...mediaHosts], `${first}\n${long}`);
  const { ad } = await serve();
  await ad(0);
  const before = performance.now();
  const { media } = await ad(1);
  expect(performance.now() - before).toBeLessThan(5000);
  expect(media[0]?.url).toContain('/media/kept/');
});

test('addresses that have expired are counted, and are no pictures to fetch', async ({ run }) => {
  // Signed addresses hold the second at which they expire, in hexadecimal digits.
  const expired = Array.from({ length: 1200 }, (_, at) => `https://scontent.example/${at}.jpg?oe=60000000`);
  const media = (url: string) => [{ type: 'IMAGE', url }];
  const ads = expired.map((url, at) => ({ id: deriveUuid(`ad ${at}`), media: media(url) }));
  await run(['import', '-'], ads.map((ad) => JSON.stringify(ad)).join('\n'));
  expect((await run(['pictures', ...mediaHosts])).err).toMatch(
    /^pictures: 1,200 addresses have expired and cannot be fetched any more; no other is missing\n/,
  );
});

test('a killed command loses nothing, and the next goes on', async ({ database, pictures, run, serve }) => {
  let [answered, isHeld] = [0, true];
  const bytes = await jpegOf();
  // Ads are noted in parts of 25, so of 50 pictures at least.
  const enough = 54;
  const slow = () =>
    host.serve((response) => {
      answered++;
      if (!isHeld || answered < enough) response.writeHead(200, { 'content-type': 'image/jpeg' }).end(bytes);
    });
  await run(['import', '-'], linesOf(Array.from({ length: 40 }, slow)));
  const killed = startCommand(['library', 'pictures', '--database', database, ...mediaHosts]);
  await waitUntil(() => answered >= enough);
  killed.child.kill('SIGKILL');
  await killed.ended;
  isHeld = false;
  const { origin, ad } = await serve();
  const before = host.requests.length;
  expect((await run(['pictures', ...mediaHosts])).err).toMatch(/pictures: \d+ pictures kept/);
  expect(host.requests.length - before).toBeLessThan(80);
  expect((await ad(39)).media[0]?.url).toContain(`${origin}/media/kept/`);
  expect((await run(['pictures', ...mediaHosts])).err).toContain('none is missing');
  // A file that is gone is fetched again.
  for (const file of readdirSync(pictures)) rmSync(join(pictures, file));
  expect((await run(['pictures', ...mediaHosts])).err).toContain('at most 80 to fetch');
  const [kept = ''] = readdirSync(pictures).filter((name) => name.endsWith('jpeg'));
  expect(readFileSync(join(pictures, kept))).toEqual(Buffer.from(bytes));
});

test('a folder takes no more than it may', async ({ pictures, run }) => {
  const all = await Promise.all(
    Array.from({ length: 20 }, async (_, number) => host.serve(await jpegOf({ width: 400 + number, height: 400 }))),
  );
  const bounded = ['import', '-', '--pictures', '--folder', pictures, '--max-mb', '0.02', ...mediaHosts];
  const { code, err } = await run(bounded, linesOf(all));
  expect(code).toBe(1);
  expect(err).toContain('the folder is full; --max-mb allows it more');
  const { length } = readdirSync(pictures);
  expect(length).toBeGreaterThan(0);
  expect(length).toBeLessThan(20);
  expect(await run(['pictures', '--folder', pictures, '--max-mb', '50', ...mediaHosts])).toMatchObject({ code: 0 });
  expect(readdirSync(pictures)).toHaveLength(20);
});

test.for([
  [['import', '--pictures'], 'name the files to load'],
  [['pictures', '--max-mb', 'many'], '--max-mb takes a number above 0'],
] as const)('%j is wrong use', async ([words, problem], { run }) => {
  await expect(run([...words])).rejects.toThrow(problem);
});
