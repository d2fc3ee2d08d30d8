import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { strToU8, zipSync } from 'fflate';
import { expect } from 'vitest';
import { importFiles } from '../../src/library/commands/commands.ts';
import { openLibrary } from '../../src/library/open.ts';
import { databaseTest as test } from './support/fixtures.ts';

const now = () => Date.UTC(2026, 2, 15);
const emptyInput = async function* (): AsyncGenerator<Uint8Array> {};
const importPaths = (database: string, paths: string[], options: object = {}) =>
  importFiles({ database, now }, paths, { stdin: emptyInput(), ...options });

/** Reads all stored ads from a database file. */
async function readAds(database: string): Promise<unknown[]> {
  const library = await openLibrary({ database, now });
  const rows = library.context.database.all<{ json: Uint8Array }>('SELECT json FROM ads_json ORDER BY number');
  library.close();
  return rows.map(({ json }) => JSON.parse(Buffer.from(json).toString()));
}

const toCsv = (...headlines: string[]) => `advertiser,headline\n${headlines.map((text) => `Tea,${text}\n`).join('')}`;

test('`library import` reports any single wrong byte in an entry of a ZIP archive', async ({ folder, database }) => {
  const archive = join(folder, 'ads.zip');
  for (const level of [0, 6] as const) {
    const table = strToU8(toCsv('First headline', 'Second headline', 'Third headline'));
    const bytes = zipSync({ 'a.csv': [table, { level }], 'b.csv': strToU8(toCsv('Other')) });
    const entryStart = 30 + 'a.csv'.length;
    const entryEnd = Buffer.from(bytes).indexOf('PK\x03\x04', 4);
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: entryStart, max: entryEnd - 1 }),
        fc.integer({ min: 1, max: 255 }),
        async (index, mask) => {
          await writeFile(
            archive,
            bytes.map((byte, position) => (position === index ? byte ^ mask : byte)),
          );
          const { files } = await importPaths(database, [archive]);
          expect(files.flatMap(({ problems }) => problems.map(({ problem }) => problem)).join()).toMatch(
            /the entry (?:a\.csv )?of the ZIP archive is damaged/,
          );
        },
      ),
      { numRuns: 10 },
    );
  }
});

test('`library import` refuses an Excel workbook in which one byte is wrong', async ({ folder, database }) => {
  const workbook = join(folder, 'ads.xlsx');
  const bytes = Buffer.from(
    zipSync({
      ...{ '[Content_Types].xml': strToU8('<Types/>'), 'xl/workbook.xml': strToU8('<workbook/>') },
      'xl/worksheets/sheet1.xml': [strToU8('<c>12345</c>'), { level: 0 }],
    }),
  );
  bytes.write('9', bytes.indexOf('12345'));
  await writeFile(workbook, bytes);
  const { files } = await importPaths(database, [workbook]);
  expect(files).toMatchObject([
    { ads: 0, skipped: 1, problems: [{ problem: expect.stringContaining('do not match their checksum') }] },
  ]);
});

test.for([
  ['German', 'Größe für Füße, schön', 'Gr\x9a\xa7e f\x9fr F\x9f\xa7e, sch\x9an'],
  ['French', 'Été à la crème, café', '\x83t\x8e \x88 la cr\x8fme, caf\x8e'],
  ['Spanish', 'mañana más fácil, ¿sí?', 'ma\x96ana m\x87s f\x87cil, \xc0s\x92?'],
] as const)(
  '`library import` reads a %s table encoded as Mac Roman',
  async ([_, headline, bytes], { folder, database }) => {
    const table = join(folder, 'mac.csv');
    await writeFile(table, Buffer.from(`advertiser;headline\rTea;"${bytes}"\r`, 'latin1'));
    const { files } = await importPaths(database, [table]);
    expect(files[0]?.notes.join()).toContain('was read as Mac Roman, which is a guess');
    expect(await readAds(database)).toMatchObject([{ headline }]);
  },
);

test('`library import --complete` marks no ads as gone (no longer listed) if it read only the first sheet of a workbook', async ({
  folder,
  database,
}) => {
  const workbook = join(folder, 'ads.xlsx');
  const sheet = (headline: string) =>
    strToU8(
      `<worksheet xmlns="${spreadsheet}"><sheetData>${['headline', headline]
        .map(
          (text, index) => `<row r="${index + 1}"><c r="A${index + 1}" t="inlineStr"><is><t>${text}</t></is></c></row>`,
        )
        .join('')}</sheetData></worksheet>`,
    );
  const relation = (id: number) =>
    `<Relationship Id="r${id}" Type="${documents}/relationships/worksheet" Target="worksheets/sheet${id}.xml"/>`;
  await writeFile(
    workbook,
    zipSync({
      '[Content_Types].xml': strToU8('<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'),
      'xl/workbook.xml': strToU8(
        `<workbook xmlns="${spreadsheet}" xmlns:r="${documents}/relationships"><sheets><sheet name="One" sheetId="1" r:id="r1"/><sheet name="Two" sheetId="2" r:id="r2"/></sheets></workbook>`,
      ),
      'xl/_rels/workbook.xml.rels': strToU8(
        `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">${relation(1)}${relation(2)}</Relationships>`,
      ),
      'xl/worksheets/sheet1.xml': sheet('First'),
      'xl/worksheets/sheet2.xml': sheet('Second'),
    }),
  );
  const { files, incompleteReason } = await importPaths(database, [workbook], { question: 'tea', isComplete: true });
  expect(files).toMatchObject([{ ads: 1, skipped: 0 }]);
  expect(files[0]?.notes).toContain('only the first of 2 sheets was read; save the other sheets as files of their own');
  expect(incompleteReason).toBe(`${workbook} has 2 sheets, and only the first one was read`);
});

const spreadsheet = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main';
const documents = 'http://schemas.openxmlformats.org/officeDocument/2006';
