import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { afterAll, describe, expect, onTestFinished } from 'vitest';
import { createJpeg, createPng } from '../pictures/sample-pictures.ts';
import { waitUntil } from '../support/deadline.ts';
import { deriveUuid } from '../support/derive-uuid.ts';
import { startPictureHost } from '../support/picture-host.ts';
import { startCommand } from '../support/process.ts';
import { startServer } from '../support/server.ts';
import { runLibraryCommand, serveDatabase } from './support/command.ts';
import { databaseTest, libraryTest } from './support/fixtures.ts';
import type { LibraryServer } from './support/library-server.ts';

const pictureHost = await startPictureHost();
afterAll(() => pictureHost.close());
const mediaHosts = ['--media-hosts', `${pictureHost.host.host}:${pictureHost.host.port}`];

/** Writes ads as JSON Lines. Each ad has a picture, and a card with another URL of the same picture. */
const writeAds = (pictureUrls: readonly string[]) =>
  pictureUrls
    .map((url, number) => {
      const media = [{ type: 'IMAGE', url }];
      // The picture host ignores leading zeros in the number, so the card has another URL with the same picture.
      const cards = [{ title: 'Card', image_url: url.replace(/(\d+)$/, '0$1') }];
      return JSON.stringify({ id: deriveUuid(`ad ${number}`), headline: `Ad ${number}`, media, cards });
    })
    .join('\n');

const test = databaseTest
  .extend('pictureFolder', ({ database }) => `${database}.pictures`)
  .extend(
    'run',
    ({ database }) =>
      (words: string[], input = '') =>
        runLibraryCommand([...words, '--database', database], { input }),
  )
  /** Serves the database over HTTP. `getAd` requests an ad by its number. */
  .extend('serve', ({ database, run }) => async () => {
    const { origin, readStderr, close } = await serveDatabase(database);
    const [, pagesUrl = ''] = /pages at (\S+)/.exec(readStderr()) ?? [];
    onTestFinished(() => close().then(() => {}));
    const key = (await run(['key', 'create', '--unmetered'])).out.trim();
    const getAd = async (number: number) => {
      const headers = { authorization: `Bearer ${key}` };
      const { body } = await request(`${origin}/v1/ads/${deriveUuid(`ad ${number}`)}`, { headers });
      return body.json() as Promise<{ media: { url: string }[]; cards: { image_url: string }[] }>;
    };
    return { origin, key, getAd, pagesUrl, readStderr };
  });

test('`library import --pictures` stores the pictures of ads, and the local library then serves the pictures', async ({
  pictureFolder,
  run,
  serve,
}) => {
  const bytes = await createJpeg();
  const input = writeAds([pictureHost.serve(bytes), pictureHost.serve(bytes), pictureHost.serve(createPng())]);
  const imported = await run(['import', '-', '--pictures', '--folder', pictureFolder, ...mediaHosts], input);
  expect(imported).toMatchObject({ code: 0 });
  expect(imported.err).toContain(`at most 6 to fetch into ${pictureFolder}, which may hold 2000 MB`);
  expect(imported.err).toMatch(/pictures: 6 pictures stored/);
  // The library stores identical pictures in one file, even if their URLs differ.
  const fileNames = readdirSync(pictureFolder).toSorted();
  expect(fileNames).toEqual(Array(2).fill(expect.stringMatching(/^[\da-f]{64}\.[\da-f]{16}-?\.(jpeg|png)$/)));
  const { origin, key, getAd, pagesUrl } = await serve();
  const { media, cards } = await getAd(0);
  expect(media[0]?.url).toMatch(new RegExp(`^${origin}/media/kept/[\\da-f]{64}\\.[\\da-f]{16}-\\.jpeg$`));
  expect(cards[0]?.image_url).toBe(media[0]?.url);
  const { headers, body } = await request(media[0]?.url ?? '');
  const securityHeaders = {
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
  };
  expect(headers).toMatchObject({ 'content-type': 'image/jpeg', ...securityHeaders });
  expect(Buffer.from(await body.arrayBuffer())).toEqual(Buffer.from(bytes));
  const page = await request(`${pagesUrl}ads/${deriveUuid('ad 0')}`);
  expect(await page.body.text()).toContain('<img src="/media/kept/');
  for (const name of ['..%2fad-library.db', `${'0'.repeat(64)}.${'0'.repeat(16)}.jpeg`, `${'0'.repeat(64)}.svg`])
    expect((await request(`${origin}/media/kept/${name}`)).statusCode).toBe(404);
  // An MCP server reads the perceptual hash from the file name and does not fetch the picture.
  const server = await startServer({ config: { baseUrl: origin, apiKey: key } });
  onTestFinished(server.close);
  await server.call('search_ads');
  const hashQuery = { sql: 'SELECT headline, picture FROM ads ORDER BY 1' };
  const rowsBefore = (await server.call('query_ads', hashQuery)).data.rows as [string, string][];
  expect(rowsBefore.map(([, picture]) => fileNames.some((name) => name.includes(`.${picture}`)))).toEqual([
    true,
    true,
    true,
  ]);
  await server.call('view_ads', { adIds: [0, 1, 2].map((number) => deriveUuid(`ad ${number}`)) });
  expect((await server.call('query_ads', hashQuery)).data.rows).toEqual(rowsBefore);
});

test('`library import --pictures` stores new pictures in the same folder as the pictures stored earlier', async ({
  folder,
  pictureFolder,
  run,
  serve,
}) => {
  const [firstAd = '', secondAd = ''] = writeAds([
    pictureHost.serve(await createJpeg()),
    pictureHost.serve(createPng()),
  ]).split('\n');
  const customFolder = join(folder, 'custom');
  await run(['import', '-', '--pictures', '--folder', customFolder, ...mediaHosts], firstAd);
  expect((await run(['import', '-', '--pictures', ...mediaHosts], secondAd)).err).toContain(customFolder);
  expect(readdirSync(customFolder)).toHaveLength(2);
  expect(existsSync(pictureFolder)).toBe(false);
  const { getAd } = await serve();
  for (const number of [0, 1])
    expect((await request((await getAd(number)).media[0]?.url ?? '')).headers['content-type']).toMatch(/^image\//);
});

test.for(['import', 'pictures'])(
  '`library %s` refuses a new picture folder until the stored pictures have been moved to this folder',
  async (command, { folder, pictureFolder, run, serve }) => {
    const otherFolder = join(folder, 'other');
    const [firstAd = '', secondAd = ''] = writeAds(
      [createPng(), createPng()].map((bytes) => pictureHost.serve(bytes)),
    ).split('\n');
    await run(['import', '-', '--pictures', ...mediaHosts], firstAd);
    const args = command === 'import' ? ['import', '-', '--pictures'] : ['pictures'];
    const runWithOtherFolder = () => run([...args, '--folder', otherFolder, ...mediaHosts], secondAd);
    await expect(runWithOtherFolder()).rejects.toThrow(
      `the library has 1 picture in ${pictureFolder} that ${otherFolder} does not contain, and it reads pictures from one folder. Leave out --folder, or move the files to ${otherFolder} first`,
    );
    expect(existsSync(otherFolder)).toBe(false);
    const { getAd, readStderr } = await serve();
    expect(readStderr()).toContain('holds 1 ad and');
    const readPictureStatus = async () => (await request((await getAd(0)).media[0]?.url ?? '')).statusCode;
    expect(await readPictureStatus()).toBe(200);
    // The command also refuses the folder if another process serves the library.
    await expect(runWithOtherFolder()).rejects.toThrow('Leave out --folder');
    renameSync(pictureFolder, otherFolder);
    expect(await runWithOtherFolder()).toMatchObject({ code: 0 });
    expect(await readPictureStatus()).toBe(200);
  },
);

test('`library pictures` finds the default picture folder after it was moved together with the database', async ({
  folder,
  database,
  run,
}) => {
  await run(['import', '-', '--pictures', ...mediaHosts], writeAds([pictureHost.serve(createPng())]));
  const movedDatabase = join(folder, 'moved.db');
  renameSync(database, movedDatabase);
  renameSync(`${database}.pictures`, `${movedDatabase}.pictures`);
  const { err } = await runLibraryCommand(['pictures', '--database', movedDatabase, ...mediaHosts]);
  expect(err).toContain('none is missing');
  expect(existsSync(`${database}.pictures`)).toBe(false);
});

test('`library import --pictures` stores only files that are valid pictures', async ({ pictureFolder, run }) => {
  const webPage = pictureHost.serve(Buffer.from('<html>'));
  const missingPicture = pictureHost.serve((response) => response.writeHead(410).end());
  const input = writeAds([webPage, missingPicture, 'http://127.0.0.1:9/inside.jpg']);
  const { code, err } = await run(['import', '--pictures', '--folder', pictureFolder, '-', ...mediaHosts], input);
  expect(code).toBe(0);
  const reasons = ['2 × a web page, not a picture', '2 × its host answered 410', '1 × its host is not in AD_LIBRARY_'];
  for (const text of ['0 pictures stored, 0.0 MB; 5 could not be fetched:', ...reasons]) expect(err).toContain(text);
  expect(readdirSync(pictureFolder)).toEqual([]);
  // A second import skips pictures that failed before, but `library pictures` tries them again.
  const secondImport = await run(['import', '-', '--pictures', '--folder', pictureFolder, ...mediaHosts], input);
  expect(secondImport.err).toContain('none is missing');
  expect((await run(['pictures', ...mediaHosts])).err).toContain('at most 5 to fetch');
});

test('the local library returns an ad whose text contains 120,000 incomplete URLs within five seconds', async ({
  pictureFolder,
  run,
  serve,
}) => {
  const [firstLine = ''] = writeAds([pictureHost.serve(createPng())]).split('\n');
  const lineWithLongText = JSON.stringify({
    ...JSON.parse(firstLine),
    id: deriveUuid('ad 1'),
    body: '"http:'.repeat(120_000),
  });
  await run(
    ['import', '-', '--pictures', '--folder', pictureFolder, ...mediaHosts],
    `${firstLine}\n${lineWithLongText}`,
  );
  const { getAd } = await serve();
  await getAd(0);
  const startMs = performance.now();
  const { media } = await getAd(1);
  expect(performance.now() - startMs).toBeLessThan(5000);
  expect(media[0]?.url).toContain('/media/kept/');
});

test('`library pictures` skips expired picture URLs and reports their number', async ({ run }) => {
  // The `oe` parameter of a signed URL is its expiry as a Unix time in hexadecimal digits.
  const expiredUrls = Array.from({ length: 1200 }, (_, index) => `https://scontent.example/${index}.jpg?oe=60000000`);
  const ads = expiredUrls.map((url, index) => ({ id: deriveUuid(`ad ${index}`), media: [{ type: 'IMAGE', url }] }));
  await run(['import', '-'], ads.map((ad) => JSON.stringify(ad)).join('\n'));
  expect((await run(['pictures', ...mediaHosts])).err).toMatch(
    /^pictures: 1,200 addresses have expired and cannot be fetched any more; no other is missing\n/,
  );
});

test('if `library pictures` is killed, its next run fetches only the pictures that are still missing', async ({
  database,
  pictureFolder,
  run,
  serve,
}) => {
  let [requestCount, isBlocked] = [0, true];
  const bytes = await createJpeg();
  // The command saves its progress after each batch of 25 ads, i.e. 50 pictures.
  const blockAfter = 54;
  const servePicture = () =>
    pictureHost.serve((response) => {
      requestCount++;
      if (!isBlocked || requestCount < blockAfter) response.writeHead(200, { 'content-type': 'image/jpeg' }).end(bytes);
    });
  await run(['import', '-'], writeAds(Array.from({ length: 40 }, servePicture)));
  const killed = startCommand(['library', 'pictures', '--database', database, ...mediaHosts]);
  await waitUntil(() => requestCount >= blockAfter);
  killed.child.kill('SIGKILL');
  await killed.ended;
  isBlocked = false;
  const { origin, getAd } = await serve();
  const requestsBefore = pictureHost.requests.length;
  expect((await run(['pictures', ...mediaHosts])).err).toMatch(/pictures: \d+ pictures stored/);
  expect(pictureHost.requests.length - requestsBefore).toBeLessThan(80);
  expect((await getAd(39)).media[0]?.url).toContain(`${origin}/media/kept/`);
  expect((await run(['pictures', ...mediaHosts])).err).toContain('none is missing');
  // The command fetches a picture again if its file was deleted.
  for (const file of readdirSync(pictureFolder)) rmSync(join(pictureFolder, file));
  expect((await run(['pictures', ...mediaHosts])).err).toContain('at most 80 to fetch');
  const [fileName = ''] = readdirSync(pictureFolder).filter((name) => name.endsWith('jpeg'));
  expect(readFileSync(join(pictureFolder, fileName))).toEqual(Buffer.from(bytes));
});

test('after the picture folder has reached the limit of --max-mb, a run with a larger limit fetches the remaining pictures', async ({
  pictureFolder,
  run,
}) => {
  const pictureUrls = await Promise.all(
    Array.from({ length: 20 }, async (_, number) =>
      pictureHost.serve(await createJpeg({ width: 400 + number, height: 400 })),
    ),
  );
  const limitedImport = ['import', '-', '--pictures', '--folder', pictureFolder, '--max-mb', '0.02', ...mediaHosts];
  const { code, err } = await run(limitedImport, writeAds(pictureUrls));
  expect(code).toBe(1);
  expect(err).toContain('the folder is full; run the same command with a larger --max-mb to continue');
  const { length } = readdirSync(pictureFolder);
  expect(length).toBeGreaterThan(0);
  expect(length).toBeLessThan(20);
  expect(await run(['pictures', '--folder', pictureFolder, '--max-mb', '50', ...mediaHosts])).toMatchObject({
    code: 0,
  });
  expect(readdirSync(pictureFolder)).toHaveLength(20);
});

describe('The stored pictures of re-signed URLs', () => {
  const fileName = `${'a'.repeat(64)}.${'b'.repeat(16)}.jpeg`;

  /** Stores the picture of a URL, and imports an ad that has the picture under another URL. Returns the ad's picture. */
  async function importAdWithOtherUrl(libraryServer: LibraryServer, storedUrl: string, adUrl: string) {
    const { pictures } = libraryServer.library;
    pictures.saveFolderPath('/nowhere');
    pictures.savePictures([{ url: storedUrl, fileName, byteCount: 1 }]);
    const id = deriveUuid(storedUrl + adUrl);
    await libraryServer.importRecords({ id, headline: 'Ad', media: [{ type: 'IMAGE', url: adUrl }] });
    const { body } = await libraryServer.get(`/v1/ads/${id}`);
    return { servedUrl: body.media[0].url as string, missingUrls: pictures.findMissing(0, false).urls };
  }

  const metaPath = '/v/t39.35426-6/1_2_n.jpg';
  libraryTest.for([
    [
      'Meta',
      `https://scontent-fra3-1.xx.fbcdn.net${metaPath}?_nc_cat=1&oh=old&oe=60000000`,
      `https://scontent.xx.fbcdn.net${metaPath}?_nc_cat=1&oh=new&oe=7f000000`,
    ],
    [
      'TikTok',
      'https://p16-sign-va.tiktokcdn.com/obj/1~noop.image?x-expires=1&x-signature=old',
      'https://p19-sign-va.tiktokcdn.com/obj/1~noop.image?x-expires=2&x-signature=new',
    ],
    [
      'LinkedIn',
      'https://media.licdn.com/dms/image/v2/D4/image-shrink_1280/0/17?e=1&v=beta&t=old',
      'https://media.licdn.com/dms/image/v2/D4/image-shrink_1280/0/17?e=2&v=beta&t=new',
    ],
  ] as const)(
    'the library serves a stored picture of %s even if the ad now has a picture URL with a new signature',
    async ([_, storedUrl, adUrl], { libraryServer }) => {
      const { servedUrl, missingUrls } = await importAdWithOtherUrl(libraryServer, storedUrl, adUrl);
      expect(servedUrl).toMatch(new RegExp(`/media/kept/${fileName}$`));
      expect(missingUrls).toEqual([]);
    },
  );

  libraryTest.for([
    ['https://shop.example/image?id=1', 'https://shop.example/image?id=2'],
    ['https://one.example/1.jpg?oe=7f000000', 'https://two.example/1.jpg?oe=7f000000'],
    [
      'https://external.xx.fbcdn.net/safe_image.php?url=https://a.example/1.jpg',
      'https://external.xx.fbcdn.net/safe_image.php?url=https://a.example/2.jpg',
    ],
    [`https://scontent.xx.fbcdn.net${metaPath}`, `https://scontent.xx.fbcdn.net.shop.example${metaPath}`],
    [`https://scontent.xx.fbcdn.net${metaPath}`, `https://shop.example/.fbcdn.net${metaPath}`],
    [`https://scontent.xx.fbcdn.net${metaPath}`, `https://scontent.xx.fbcdn.net@shop.example${metaPath}`],
    ['https://scontent.xx.fbcdn.net/1.jpg?a=\\', 'https://scontent.xx.fbcdn.net/2.jpg?a=\\'],
  ] as const)(
    'the library does not serve the picture stored from %s for an ad with the picture URL %s',
    async ([storedUrl, adUrl], { libraryServer }) => {
      const { servedUrl, missingUrls } = await importAdWithOtherUrl(libraryServer, storedUrl, adUrl);
      expect(servedUrl).toBe(adUrl);
      expect(missingUrls).toEqual([adUrl]);
    },
  );

  libraryTest(
    'after a picture could not be fetched, the library tries again if an ad has the picture URL with a new signature',
    async ({ libraryServer }) => {
      const { pictures } = libraryServer.library;
      const [oldUrl, newUrl] = ['old', 'new'].map(
        (oh) => `https://scontent.xx.fbcdn.net${metaPath}?oh=${oh}&oe=7f000000`,
      );
      pictures.savePictures([{ url: oldUrl ?? '', fileName: null, byteCount: 0 }]);
      const importAd = (url: string | undefined) =>
        libraryServer.importRecords({ id: deriveUuid('ad'), media: [{ type: 'IMAGE', url }] });
      await importAd(oldUrl);
      expect(pictures.findMissing(0, false).urls).toEqual([]);
      await importAd(newUrl);
      expect(pictures.findMissing(0, false).urls).toEqual([newUrl]);
    },
  );
});

test.for([
  [['import', '--pictures'], 'name the files to import'],
  [['import', '-', '--pictures', '--max-mb', '0'], '--max-mb takes a number above 0'],
  [['pictures', '--max-mb', 'many'], '--max-mb takes a number above 0'],
  [['pictures', '--folder', ''], '--folder takes the path of a folder'],
] as const)('the library command rejects the arguments %j with an error', async ([args, problem], { run }) => {
  await expect(run([...args])).rejects.toThrow(problem);
});
