import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { strToU8, Zip, ZipDeflate, zipSync } from 'fflate';
import { expect } from 'vitest';
import { formatProgress } from '../../src/cli/library.ts';
import { createWorkbookWriter, type SheetCell } from '../../src/dataset/workbook.ts';
import { importFiles } from '../../src/library/commands/commands.ts';
import { openFile } from '../../src/library/import/sources/open-files.ts';
import { openLibrary } from '../../src/library/open.ts';
import { runLibraryCommand } from './support/command.ts';
import { databaseTest as test } from './support/fixtures.ts';
import { createUuid } from './support/library-server.ts';

const emptyInput = async function* (): AsyncGenerator<Uint8Array> {};
const importPaths = (database: string, paths: string[], options: object = {}) =>
  importFiles({ database, now: () => Date.UTC(2026, 2, 15) }, paths, { stdin: emptyInput(), ...options });

/** Reads all stored ads from a database file. */
async function readAds(database: string) {
  const library = await openLibrary({ database, now: () => Date.UTC(2026, 2, 15) });
  const rows = library.context.database.all<{ json: Uint8Array }>('SELECT json FROM ads_json ORDER BY number');
  library.close();
  // biome-ignore lint/suspicious/noExplicitAny: tests read any field of the ads
  return rows.map(({ json }) => JSON.parse(Buffer.from(json).toString()) as any);
}

const toCsv = (...headlines: string[]) => `advertiser,headline\n${headlines.map((text) => `Tea,${text}\n`).join('')}`;

/** Writes a one-sheet workbook like `export_ads` does. All columns except the first contain plain cells. */
async function packWorkbook(titles: string[], rows: SheetCell[][]): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  const workbook = createWorkbookWriter(async (bytes) => void chunks.push(bytes.slice()));
  const columns = titles.map(
    (title) => ({ title, width: 10, style: title === 'start_date' ? 'day' : 'plain' }) as const,
  );
  await workbook.addSheet({ name: 'Ads', columns, rowBatches: [rows], isTable: true });
  await workbook.end();
  return Buffer.concat(chunks);
}

test('`library import` reads every file in a ZIP archive', async ({ folder, database }) => {
  const archive = join(folder, 'ads.zip');
  await writeFile(
    archive,
    zipSync({
      'week/a.csv': strToU8(toCsv('One')),
      'week/b.json': [strToU8('[{"ad_archive_id":"1"},{"ad_archive_id":"2"}]'), { level: 0 }],
      'week/c.csv.gz': gzipSync(toCsv('Two')),
      'inner.zip': zipSync({ 'd.csv': strToU8(toCsv('Three')) }),
      'picture.png': strToU8('not text'),
      '__MACOSX/week/._a.csv': strToU8('x'),
    }),
  );
  const { files } = await importPaths(database, [archive]);
  expect(files.map(({ name, ads, skipped }) => [name.slice(archive.length), ads, skipped])).toEqual([
    ['/week/a.csv', 1, 0],
    ['/week/b.json', 2, 0],
    ['/week/c.csv.gz', 1, 0],
    ['/inner.zip/d.csv', 1, 0],
  ]);
});

test('`library import` refuses a streamed ZIP archive that contains another ZIP archive', async ({
  folder,
  database,
}) => {
  const innerArchive = zipSync({ 'b.csv': strToU8(toCsv('Two')), 'c.csv': strToU8(toCsv('Three')) }, { level: 0 });
  const chunks: Uint8Array[] = [];
  const zip = new Zip((_, chunk) => void chunks.push(chunk));
  for (const [name, bytes] of Object.entries({ 'a.csv': strToU8(toCsv('One')), 'inner.ZIP': innerArchive })) {
    const entry = new ZipDeflate(name, { level: 0 });
    zip.add(entry);
    entry.push(bytes, true);
  }
  zip.end();
  const archive = join(folder, 'ads.zip');
  await writeFile(archive, Buffer.concat(chunks));
  const { files } = await importPaths(database, [archive]);
  expect(
    files.map(({ name, ads, problems }) => [name.slice(archive.length), ads, problems.map((each) => each.problem)]),
  ).toEqual([
    ['/a.csv', 1, []],
    ['/inner.ZIP', 0, [expect.stringMatching(/was written as a stream and contains another ZIP archive; unpack it/)]],
  ]);
  expect((await readAds(database)).map(({ headline }) => headline)).toEqual(['One']);
});

test('`library import` reports a damaged file in a ZIP archive', async ({ folder, database }) => {
  const archive = join(folder, 'ads.zip');
  const bytes = zipSync({
    'a.csv': strToU8(toCsv(...Array.from({ length: 2000 }, (_, index) => `Ad ${index * 7919}`))),
  });
  await writeFile(archive, bytes.subarray(0, bytes.length / 2));
  const { files } = await importPaths(database, [archive]);
  expect(files).toMatchObject([{ skipped: 1 }, { skipped: 1 }]);
  expect(files[0]?.problems.at(-1)?.problem).toMatch(/entry of the ZIP archive is damaged, encrypted or cut off/);
  expect(files[1]?.problems.at(-1)?.problem).toMatch(/the ZIP archive is cut off/);
});

test('`library import` reads the other files of a ZIP archive if one file has an unknown compression', async ({
  folder,
  database,
}) => {
  const archive = join(folder, 'ads.zip');
  const bytes = Buffer.from(zipSync({ 'a.csv': strToU8(toCsv('One')), 'b.csv': strToU8(toCsv('Two')) }));
  const bzip2 = 12;
  bytes.writeUInt16LE(bzip2, 8);
  await writeFile(archive, bytes);
  const { files } = await importPaths(database, [archive]);
  expect(files).toMatchObject([
    { ads: 0, skipped: 1 },
    { ads: 1, skipped: 0 },
  ]);
  expect(files[0]?.problems[0]?.problem).toMatch(/entry of the ZIP archive is damaged, encrypted or cut off/);
});

test('`library import` never treats a truncated ZIP archive as complete', async ({ folder }) => {
  const entries = Array.from({ length: 3 }, (_, index) => [`${index}.csv`, strToU8(toCsv(`Ad ${index}`))] as const);
  const archive = zipSync(Object.fromEntries(entries), { level: 0 });
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: archive.length - 1 }), async (length) => {
      const files: string[] = [];
      const hasProblem = await (async () => {
        try {
          async function* readCutArchive() {
            yield archive.subarray(0, length);
          }
          for await (const { name, bytes } of openFile({ name: join(folder, 'ads.zip'), bytes: readCutArchive() })) {
            files.push(name);
            for await (const _ of bytes);
          }
          return false;
        } catch {
          return true;
        }
      })();
      // The first bytes of an archive are not recognized as an archive. They are no record of any format either.
      expect(hasProblem || (length < 34 && files.length === 1)).toBe(true);
    }),
  );
});

test('importing a ZIP archive whose last files are missing does not mark any ad as gone (no longer listed)', async ({
  folder,
  database,
}) => {
  const [complete, cutOff] = [join(folder, 'complete.zip'), join(folder, 'cut-off.zip')];
  const archive = zipSync({ 'a.csv': strToU8(toCsv('One')), 'b.csv': strToU8(toCsv('Two')) }, { level: 0 });
  const secondEntry = Buffer.from(archive).indexOf('PK\x03\x04', 4);
  await writeFile(complete, archive);
  await writeFile(cutOff, archive.subarray(0, secondEntry));
  const options = { question: 'tea', isComplete: true };
  expect(await importPaths(database, [complete], options)).toMatchObject({
    questionResult: { listedCount: 2, goneCount: 0 },
  });
  const { files, questionResult } = await importPaths(database, [cutOff], options);
  expect(files).toMatchObject([{ skipped: 0 }, { skipped: 1, ads: 0 }]);
  expect(questionResult).toBeUndefined();
});

test('`library import` reads the first sheet of an Excel workbook and rejects ids that Excel has rounded', async ({
  folder,
  database,
}) => {
  const workbook = join(folder, 'ads.xlsx');
  await writeFile(
    workbook,
    await packWorkbook(
      ['ad_archive_id', 'page_name', 'collation_count', 'start_date'],
      [
        ['123456789012345678', 'Tea', 3, 46_027],
        ['123456789012345670', 'Tea', 2, 46_027],
        [1.23456789012345e17, 'Rounded', 1, null],
      ],
    ),
  );
  const { files } = await importPaths(database, [workbook]);
  expect(files).toMatchObject([{ ads: 2, skipped: 1 }]);
  expect(files[0]?.problems[0]?.problem).toMatch(/is a rounded number, so the id is lost/);
  expect(await readAds(database)).toMatchObject([
    { adArchiveId: '123456789012345678', duplicates: 3, startedAt: '2026-01-05T00:00:00.000Z' },
    { adArchiveId: '123456789012345670', duplicates: 2 },
  ]);
});

test('`library import` reads a number with three decimals in an Excel workbook as a decimal number', async ({
  folder,
  database,
}) => {
  const workbook = join(folder, 'ads.xlsx');
  await writeFile(
    workbook,
    await packWorkbook(
      ['headline', 'spend'],
      [
        ['One', 11.305],
        ['Two', 119],
      ],
    ),
  );
  expect((await importPaths(database, [workbook])).files).toMatchObject([{ ads: 2, problems: [] }]);
  expect(await readAds(database)).toMatchObject([{ adSpendMin: 11.305 }, { adSpendMin: 119 }]);
});

test('the report about an Excel workbook contains the row numbers of the sheet, despite empty rows and line breaks in cells', async ({
  folder,
  database,
}) => {
  const workbook = join(folder, 'ads.xlsx');
  const rows = [
    ['One\n\n"two"\r\nthree', 'x', 1],
    [null, null, null],
    ['No amount', null, 'many'],
    ['Last\nline', 'y', 2],
    [null, null, 3],
  ];
  await writeFile(workbook, await packWorkbook(['headline', 'my\nnote', 'spend'], rows));
  const { files } = await importPaths(database, [workbook]);
  expect(files).toMatchObject([{ ads: 2, skipped: 2, problems: [{ line: 4 }, { line: 6 }] }]);
  expect((await readAds(database)).map(({ headline }) => headline)).toEqual(['One\n\n"two"\nthree', 'Last\nline']);
});

test('if `library import` cannot read an Excel workbook, it names the file and gives the reason', async ({
  folder,
  database,
}) => {
  const [oldWorkbook, brokenWorkbook] = [join(folder, 'old.xls'), join(folder, 'broken.xlsx')];
  await writeFile(oldWorkbook, Buffer.from('d0cf11e0a1b11ae1', 'hex'));
  await writeFile(brokenWorkbook, zipSync({ '[Content_Types].xml': strToU8('<Types/>') }));
  const { files } = await importPaths(database, [oldWorkbook, brokenWorkbook]);
  expect(files.map(({ problems }) => problems[0]?.problem)).toEqual([
    'a workbook in the old format .xls; save it as .xlsx or CSV, and import the new file',
    expect.stringMatching(/^not a workbook that can be read/),
  ]);
});

test('`library import` reads tables encoded as Windows-1252', async ({ folder, database }) => {
  const table = join(folder, 'excel.csv');
  const text = 'advertiser;headline\r\nCafé;Größe M für 5 €\r\n';
  await writeFile(table, Buffer.from(text.replace('€', '\u0080'), 'latin1'));
  const { files } = await importPaths(database, [table]);
  expect(files).toMatchObject([
    { ads: 1, notes: [expect.stringContaining('was read as Windows-1252, which is a guess')] },
  ]);
  expect(await readAds(database)).toMatchObject([{ headline: 'Größe M für 5 €', page: { pageName: 'Café' } }]);
});

const windows1252Records = [
  ['a JSON document', (record: object) => JSON.stringify([record], null, 2)],
  ['JSON Lines', (record: object) => `${JSON.stringify({ ad_archive_id: '1' })}\n${JSON.stringify(record)}\n`],
] as const;

test.for(windows1252Records)(
  '`library import` reads %s in the encoding Windows-1252 and says so in its report',
  async ([_, format], { folder, database }) => {
    const file = join(folder, 'ads.json');
    const text = format({ ad_archive_id: '2', snapshot: { title: 'Größe M für 5 €' } });
    await writeFile(file, Buffer.from(text.replace('€', '\u0080'), 'latin1'));
    const { files } = await importPaths(database, [file]);
    expect(files[0]).toMatchObject({ skipped: 0, problems: [] });
    expect(files[0]?.notes.join()).toContain('the text is not UTF-8 and was read as Windows-1252, which is a guess');
    expect((await readAds(database)).at(-1)).toMatchObject({ headline: 'Größe M für 5 €' });
  },
);

/** Entries of a ZIP archive that contain no records, and that an import must not count as failures. */
const otherEntries = {
  'README.txt': '# Socks\n\nDownloaded by [me](https://socks.example).\n',
  'week/LICENSE': 'Free to use',
  'week/notes.pdf': '%PDF-1.7',
  'week/.DS_Store': '\0\0Bud1',
  '__MACOSX/week/._a.csv': '\0\x05\x16',
  'week/picture.png': 'PNG',
};

test('an import of a ZIP archive lists the files without records and can still count as complete', async ({
  folder,
  database,
}) => {
  const archive = join(folder, 'ads.zip');
  const packEntries = (entries: Record<string, string>) =>
    writeFile(
      archive,
      zipSync(Object.fromEntries(Object.entries(entries).map(([name, text]) => [name, strToU8(text)]))),
    );
  const options = ['import', archive, '--question', 'tea', '--complete', '--database', database];
  await packEntries({ 'a.csv': toCsv('One', 'Two') });
  await runLibraryCommand(options);
  await packEntries({ ...otherEntries, 'a.csv': toCsv('One') });
  const { code, err } = await runLibraryCommand(options);
  expect(code).toBe(0);
  for (const name of Object.keys(otherEntries)) expect(err).toContain(`${archive}/${name}`);
  expect(err).toContain('question tea: 1 ad listed, 1 gone\n');
});

test.for([
  ['JSON that is cut off', 'b.json', '[{"ad_archive_id":"1",'],
  ['JSON with the extension of a text', 'b.txt', '[{"ad_archive_id":"1",'],
  ['a table without known columns', 'b.csv', 'one,two\n1,2\n'],
  ['a table of which no row can be read', 'b.txt', 'advertiser,headline\nTea\n'],
  ['a format that an import cannot read', 'b.parquet', 'PAR1'],
  ['an archive that an import cannot read', 'b.tar.gz', 'x'],
] as const)(
  'an import of a ZIP archive with %s does not mark any ad as gone (no longer listed)',
  async ([_, name, text], { folder, database }) => {
    const archive = join(folder, 'ads.zip');
    const options = ['import', archive, '--question', 'tea', '--complete', '--database', database];
    await writeFile(archive, zipSync({ 'a.csv': strToU8(toCsv('One', 'Two')) }));
    await runLibraryCommand(options);
    await writeFile(archive, zipSync({ 'a.csv': strToU8(toCsv('One')), [name]: strToU8(text) }));
    const { code, err } = await runLibraryCommand(options);
    expect(code).toBe(1);
    expect(err).toContain(`no ad was marked as gone, because ${archive}/${name} was not read completely`);
  },
);

test('`library import` reads all files in a folder and merges records of the same ad', async ({ folder, database }) => {
  const downloads = join(folder, 'downloads');
  await mkdir(join(downloads, 'more'), { recursive: true });
  const write = (name: string, record: object) => writeFile(join(downloads, name), JSON.stringify(record));
  await write('week-2.json', { ad_archive_id: '1', snapshot: { title: 'New title' } });
  await write('week-10.json', { ad_archive_id: '1', snapshot: { title: 'Newest title' } });
  await write('more/metrics.json', { ad_archive_id: '1', spend: { lower_bound: '5', upper_bound: '9' } });
  await writeFile(join(downloads, 'notes.md'), '# Notes');
  const { files } = await importPaths(database, [downloads]);
  expect(files.map(({ ads, repeated, problems }) => [ads, repeated, problems.length])).toEqual([
    [1, 0, 0],
    [0, 1, 0],
    [0, 1, 0],
  ]);
  expect(files.map(({ name }) => name.slice(downloads.length + 1))).toEqual([
    join('more', 'metrics.json'),
    'week-2.json',
    'week-10.json',
  ]);
  expect(await readAds(database)).toMatchObject([
    {
      ...{ headline: 'Newest title', adSpendMin: 5, adSpendMax: 9 },
      changes: { headline: [{ value: 'New title' }, { value: null }] },
    },
  ]);
});

test('the history of an ad contains an earlier headline even if the service sends an empty object as its changes', async ({
  folder,
  database,
}) => {
  const file = join(folder, 'ad.json');
  for (const headline of ['Old', 'New']) {
    await writeFile(file, JSON.stringify({ id: createUuid(1), headline, changes: {} }));
    await importPaths(database, [file]);
  }
  expect(await readAds(database)).toMatchObject([{ headline: 'New', changes: { headline: [{ value: 'Old' }] } }]);
});

test("importing an older version of a stored ad adds it to the ad's history and keeps the newer version", async ({
  folder,
  database,
}) => {
  const write = async (name: string, headline: string, lastSeenAt: string) => {
    const id = '00000000-0000-4000-8000-000000000001';
    await writeFile(join(folder, name), JSON.stringify({ id, headline, lastSeenAt }));
    return join(folder, name);
  };
  const newFile = await write('new.json', 'New', '2026-03-10');
  const oldFile = await write('old.json', 'Old', '2026-03-01');
  await importPaths(database, [newFile]);
  expect((await importPaths(database, [oldFile])).files).toMatchObject([{ ads: 1, older: 1 }]);
  expect(await readAds(database)).toMatchObject([
    {
      ...{ headline: 'New', lastSeenAt: '2026-03-10' },
      changes: { headline: [{ value: 'Old', lastSeenAt: '2026-03-01', replacedAt: '2026-03-15T00:00:00.000Z' }] },
    },
  ]);
});

test.for([
  ['after two newer versions', [['Third'], ['Fourth'], ['Second'], ['First'], ['Second']]],
  ['from the newest to the oldest', [['Fourth'], ['Third'], ['Second'], ['First']]],
  ['from the oldest to the newest', [['First'], ['Second'], ['Third'], ['Fourth']]],
  ['in one import', [['Third', 'First', 'Fourth', 'Second']]],
] as const)(
  'the history of an ad contains all headlines in the order of their dates if its versions are imported %s',
  async ([_, imports], { folder, database }) => {
    const days = { First: '2026-03-01', Second: '2026-03-04', Third: '2026-03-07', Fourth: '2026-03-10' };
    for (const headlines of imports) {
      const files = headlines.map(async (headline) => {
        const file = join(folder, `${headline}.json`);
        await writeFile(file, JSON.stringify({ id: createUuid(1), headline, lastSeenAt: days[headline] }));
        return file;
      });
      await importPaths(database, await Promise.all(files));
    }
    const [ad] = await readAds(database);
    expect(ad).toMatchObject({ headline: 'Fourth', lastSeenAt: days.Fourth });
    expect(ad?.changes.headline).toMatchObject(
      (['Third', 'Second', 'First'] as const).map((value) => ({ value, lastSeenAt: days[value] })),
    );
  },
);

test('the history of an ad lists a headline twice only if another headline was seen in between', async ({
  folder,
  database,
}) => {
  const versions = [
    ...[
      ['New', '2026-03-10'],
      ['Sale', '2026-03-05'],
      ['New', '2026-03-01'],
      ['Sale', '2026-03-06'],
    ],
    ...[
      ['New', '2026-03-09'],
      ['Sale', '2026-03-04'],
    ],
  ];
  for (const [headline, lastSeenAt] of versions) {
    await writeFile(join(folder, 'ad.json'), JSON.stringify({ id: createUuid(1), headline, lastSeenAt }));
    await importPaths(database, [join(folder, 'ad.json')]);
  }
  const [ad] = await readAds(database);
  expect(ad?.changes.headline).toMatchObject([
    { value: 'Sale', lastSeenAt: '2026-03-06' },
    { value: 'New', lastSeenAt: '2026-03-01' },
  ]);
});

test('the progress of an import shows the bytes read, the records stored and the remaining time', async ({
  folder,
  database,
}) => {
  const file = join(folder, 'ads.csv');
  await writeFile(file, toCsv(...Array.from({ length: 3000 }, (_, index) => `Ad ${index}`)));
  const steps: object[] = [];
  await importPaths(database, [file], { onProgress: (progress: object) => steps.push({ ...progress }) });
  expect(steps.at(0)).toMatchObject({ isStoring: false, storedRecords: 0 });
  expect(steps.at(-1)).toMatchObject({ isStoring: true, readRecords: 3000 });
  const progress = { readBytes: 1e6, totalBytes: 4e6, readRecords: 100, storedRecords: 0, isStoring: false };
  expect(formatProgress(progress, 2000)).toBe('import  1.0 MB of 4.0 MB read, 100 records, about 22 s left');
  expect(formatProgress({ ...progress, totalBytes: undefined }, 2000)).toBe('import  1.0 MB read, 100 records');
  expect(formatProgress({ ...progress, isStoring: true, storedRecords: 50 }, 120_000)).toBe(
    'import  50 of 100 records stored, about 2 min left',
  );
});

test('`library import` reads each file in a folder only once, even if the folder contains a link to itself', async ({
  folder,
  database,
}) => {
  const downloads = join(folder, 'downloads');
  await mkdir(join(downloads, 'week'), { recursive: true });
  await writeFile(join(downloads, 'week', 'a.csv'), toCsv('One'));
  await symlink(downloads, join(downloads, 'week', 'parent'));
  await symlink(join(downloads, 'nowhere'), join(downloads, 'broken'));
  const { files } = await importPaths(database, [downloads]);
  expect(files.map(({ name }) => name)).toEqual([join(downloads, 'week', 'a.csv')]);
});

test('`library import` reads a ZIP archive that is compressed with gzip', async ({ folder, database }) => {
  const archive = gzipSync(zipSync({ 'a.csv': strToU8(toCsv('One')) }));
  await writeFile(join(folder, 'ads.zip.gz'), archive);
  await writeFile(join(folder, 'cut.zip.gz'), archive.subarray(0, archive.length / 2));
  const { files } = await importPaths(database, [join(folder, 'ads.zip.gz'), join(folder, 'cut.zip.gz')]);
  expect(files).toMatchObject([
    { ads: 1, skipped: 0 },
    { ads: 0, skipped: 1 },
  ]);
  expect(files[1]?.problems[0]?.problem).toBe('the compressed data is cut off; import an undamaged copy');
});
