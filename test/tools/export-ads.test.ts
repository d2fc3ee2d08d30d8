import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import readSheet from 'read-excel-file/node';
import { describe, expect } from 'vitest';
import { freshServiceTest } from '../support/fixtures.ts';
import type { TestServer } from '../support/server.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const root = createTemporaryFolder();
let folders = 0;
const test = freshServiceTest();
/** Defines tests of a server that has a data folder and five ads in its dataset. */
const testWithFolder = test
  .extend('folder', () => join(root, `files-${++folders}`))
  .extend('server', async ({ start, folder }) => {
    const server = await start({ files: folder });
    await server.call('search_ads', { limit: 5 });
    return server;
  });

describe('export_ads without a data folder', () => {
  test('an exported file can be read as a resource only with the API key of the call that created the file', async ({
    server,
    service,
  }) => {
    await server.call('search_ads', { limit: 5 });
    const { data, text } = await server.call('export_ads', { name: 'my ads' });
    expect(data).toMatchObject({ rows: 5 });
    expect(text).toContain('"my ads.csv": 5 rows');
    for (const address of [data.uri, data.methods]) expect(text).toContain(address);
    const lines = (await server.readResource(data.uri)).text.split('\r\n');
    expect(lines).toHaveLength(7);
    expect(lines[0]).toMatch(/^\ufeffID,Page ID,Page name,Headline.*,Gathered at$/);
    expect(lines[0]).not.toMatch(/json/i);
    expect((await server.readResource(data.methods)).text).toContain('## Gatherings');
    const listResourceNames = async ({ client }: Pick<TestServer, 'client'>) =>
      (await client.listResources()).resources.map(({ name }) => name);
    expect(await listResourceNames(server)).toEqual(['board', 'my ads-methods.md', 'my ads.csv']);
    const otherServer = await server.connectAs(service.createKey());
    await expect(otherServer.readResource(data.uri)).rejects.toThrow('There is no resource');
    expect(await listResourceNames(otherServer)).toEqual(['board']);
  });

  test('export_ads shows the number of rows, the first rows and how many ads were read', async ({ server }) => {
    await server.call('gather_ads', { filters: {}, maxAds: 60, maxCredits: 100 });
    const sql = 'SELECT displayFormat, count(*) AS ads FROM ads GROUP BY 1 ORDER BY 2 DESC';
    const { data, text } = await server.call('export_ads', { sql });
    const rows = await server.queryRows(sql);
    expect(data).toMatchObject({ columns: ['displayFormat', 'ads'], first: rows.slice(0, 3), rows: rows.length });
    expect(data.coverage).toMatchObject({ gatherings: 1, partial: [{ read: 60 }] });
    expect(text).toContain(`first rows of displayFormat | ads:\n${rows[0]?.join(' | ')}\n`);
    const all = await server.call('export_ads');
    expect([all.data.rows, all.data.first]).toEqual([60, undefined]);
  });

  test('export_ads writes the result of each SQL statement to its own Excel sheet', async ({ server }) => {
    await server.call('gather_ads', { filters: {}, maxAds: 20, maxCredits: 100 });
    const sheets = [
      { name: 'Ads', sql: 'SELECT id, startedAt FROM ads' },
      { name: 'Ünï & <2> _x0041_ 長', sql: 'SELECT displayFormat, count(*) AS ads FROM ads GROUP BY 1 ORDER BY 1' },
    ];
    const { data, text } = await server.call('export_ads', { sheets });
    const { blob = '' } = await server.readResource(data.uri);
    const readSheets = await readSheet(Buffer.from(blob, 'base64'));
    expect(readSheets.map(({ sheet }) => sheet)).toEqual(['Ads', sheets[1]?.name, 'Method']);
    const [ads, formats, method] = readSheets.map(({ data }) => data);
    expect(data).toMatchObject({ rows: (ads?.length ?? 0) - 1 + (formats?.length ?? 0) - 1 });
    expect(data.sheets).toMatchObject([
      { name: 'Ads', rows: 20 },
      { name: sheets[1]?.name, first: formats?.slice(1, 4) },
    ]);
    expect(text).toContain('"Ünï & <2> _x0041_ 長", ');
    const cells = method?.flat().filter((cell) => cell !== null);
    expect(cells).toEqual(expect.arrayContaining(['Statement of Ads, 20 rows', sheets[1]?.sql, 'found']));
    for (const [args, problem] of [
      [{ sheets, format: 'csv' }, 'leave out format'],
      [{ sheets: [sheets[0], { ...sheets[1], name: 'ADS' }] }, 'each name once'],
      [{ sheets: [{ ...sheets[0], name: 'method' }] }, 'neither Method nor History'],
      ...['a/b', 'x'.repeat(32), "'a", ' ', '[x]'].map((name) => [
        { sheets: [{ ...sheets[0], name }] },
        'have 1 to 31',
      ]),
      [{ sheets: Array(11).fill(sheets[0]) }, 'sheets'],
      [{ sheets, sql: 'SELECT 1' }, 'sql and sheets cannot be combined'],
    ] as [object, string][]) {
      const { text, error } = await server.call('export_ads', args as Record<string, unknown>);
      expect([error?.kind, text]).toEqual(['invalid_request', expect.stringContaining(problem)]);
    }
  });

  test('the note that explains how exported ads were collected lists only the searches that found these ads', async ({
    server,
  }) => {
    const gatherAds = async (filters: object) =>
      (await server.call('gather_ads', { filters, maxAds: 100, maxCredits: 100 })).data.gathering as string;
    const [runningGathering, endedGathering] = [await gatherAds({ active: true }), await gatherAds({ active: false })];
    const readNote = async (sql: string) =>
      (await server.readResource((await server.call('export_ads', { sql })).data.methods)).text;
    const noteOfOneGathering = await readNote(`SELECT adId FROM gathered WHERE gatheringId = '${endedGathering}'`);
    expect(noteOfOneGathering).toContain(endedGathering);
    expect(noteOfOneGathering).not.toContain(runningGathering);
    expect(noteOfOneGathering).toContain('1 other gathering of the dataset read none of these ads.');
    expect(await readNote('SELECT count(*) FROM ads')).toContain(runningGathering);
  });

  test('the note that explains how exported ads were collected repeats the warnings of the result', async ({
    server,
  }) => {
    await server.call('gather_ads', { filters: { active: false }, maxAds: 50, maxCredits: 100 });
    const sql = 'SELECT id, countries.country FROM ads LEFT JOIN ad_countries AS countries USING (id)';
    const { data, text } = await server.call('export_ads', { sql });
    const { partial, notes } = data.coverage as { partial: { note: string }[]; notes: string[] };
    expect([partial, notes]).toEqual([[expect.anything()], [expect.stringContaining('Known for some of')]]);
    const methodNote = (await server.readResource(data.methods)).text;
    for (const warning of [...partial.map(({ note }) => note), ...notes])
      expect([text, methodNote]).toEqual([expect.stringContaining(warning), expect.stringContaining(warning)]);
  });

  test('the note that explains how exported ads were collected warns about an incomplete gathering that is too old for the result', async ({
    server,
  }) => {
    const gatherAds = async (filters: object) =>
      (await server.call('gather_ads', { filters, maxAds: 10, maxCredits: 10 })).data.gathering as string;
    const oldest = await gatherAds({ active: false });
    for (let days = 1; days <= 6; days++) await gatherAds({ active: true, daysRunningFrom: days });
    const sql = `SELECT adId FROM gathered WHERE gatheringId = '${oldest}'`;
    const { data } = await server.call('export_ads', { sql });
    expect(data.coverage).toMatchObject({ morePartial: 2 });
    const methodNote = (await server.readResource(data.methods)).text;
    expect(methodNote).toMatch(new RegExp(`^- ${oldest}: .*\\b10 of `, 'm'));
  });

  test('export_ads rejects a file name with invalid characters or too many characters', async ({ server }) => {
    for (const name of ['../ads', 'a/b', '.hidden', 'nul\u0000', 'x'.repeat(81), 'ads.exe']) {
      const { isError, text } = await server.call('export_ads', { name });
      expect([isError, text]).toEqual([true, expect.stringContaining('must be 1 to 80 letters')]);
    }
    expect((await server.call('export_ads', { name: '' })).isError).toBe(false);
  });

  test('export_ads in demo mode writes its file into the data folder', async ({ start }) => {
    const files = join(root, 'demo');
    const server = await start({ files, demo: true });
    await server.call('search_ads', { limit: 1 });
    expect((await server.call('export_ads', { name: 'tea' })).data.file).toBe(join(files, 'exports', 'tea.csv'));
    expect(readdirSync(files)).toEqual(['exports']);
  });
});

describe('export_ads with a data folder', () => {
  testWithFolder(
    'an exported file can be read as a resource, and only its owner can open the file in the data folder',
    async ({ server, folder }) => {
      const kinds = { jsonl: 'application/jsonl', xlsx: 'openxmlformats', parquet: 'application/vnd.apache.parquet' };
      for (const [format, mimeType] of Object.entries(kinds)) {
        const { data, text } = await server.call('export_ads', { name: format, format });
        const file = join(folder, 'exports', `${format}.${format}`);
        expect(data).toMatchObject({ file, rows: 5, bytes: statSync(file).size });
        expect(text).toContain(file);
        expect([statSync(file).mode & 0o777, statSync(join(folder, 'exports')).mode & 0o777]).toEqual([0o600, 0o700]);
        const resource = await server.readResource(data.uri);
        expect(resource.mimeType).toContain(mimeType);
        const isText = format === 'jsonl';
        expect(isText ? resource.text : resource.blob).toBe(readFileSync(file, isText ? 'utf8' : 'base64'));
        if (isText) expect(resource.text.match(/^\{"id":.*\}$/gm)).toHaveLength(5);
      }
    },
  );

  testWithFolder(
    'export_ads never overwrites a file or follows a link, and the names of both files of an export have the same number',
    async ({ server, folder }) => {
      const getPath = (file: string) => join(folder, 'exports', file);
      const target = join(folder, 'target');
      for (const [stem, format] of Object.entries({ tea: 'csv', 'tea-3': 'csv', 'tea-2': 'jsonl' })) {
        const sql = `SELECT '${stem}' AS name`;
        const { data, text } = await server.call('export_ads', { name: 'tea', format, sql });
        expect(data.file).toBe(getPath(`${stem}.${format}`));
        expect(text).toContain(`${stem}.${format}: 1 row`);
        expect(text).toContain(`${stem}-methods.md beside it`);
        expect((await server.readResource(data.methods)).text).toContain(sql);
        expect(readFileSync(getPath(`${stem}-methods.md`), 'utf8')).toContain(sql);
        if (stem !== 'tea') continue;
        writeFileSync(target, 'mine');
        symlinkSync(target, getPath('tea-2.csv'));
      }
      expect(readFileSync(target, 'utf8')).toBe('mine');
      expect(readFileSync(getPath('tea.csv'), 'utf8')).toContain('Name\r\ntea\r\n');
    },
  );

  testWithFolder.for(['a link', 'a folder', 'a pipe', 'a longer file', 'nothing'] as const)(
    'reading an exported file fails if the file was replaced by %s',
    async (place, { server, folder }) => {
      const { data } = await server.call('export_ads', { name: 'tea' });
      const file = data.file as string;
      const target = join(folder, 'target');
      // Give the target the length of the export, so that the length does not reveal the replacement.
      writeFileSync(target, 'mine'.padEnd(data.bytes as number));
      if (place === 'a longer file') writeFileSync(file, ' ', { flag: 'a' });
      else rmSync(file);
      if (place === 'a link') symlinkSync(target, file);
      if (place === 'a folder') mkdirSync(file);
      if (place === 'a pipe') execFileSync('mkfifo', [file]);
      const problem = `${file} is no longer the file that was written. Export it again.`;
      await expect(server.readResource(data.uri)).rejects.toThrow(problem);
    },
  );

  testWithFolder(
    'an export that fails leaves no file behind and says which folder cannot be written',
    async ({ server, folder }) => {
      const exports = join(folder, 'exports');
      expect((await server.call('export_ads', { sql: 'SELECT nothing FROM ads' })).isError).toBe(true);
      expect(readdirSync(exports)).toEqual([]);
      rmSync(exports, { recursive: true });
      writeFileSync(exports, '');
      const { text, error } = await server.call('export_ads', {});
      expect(error).toMatchObject({ kind: 'unavailable', retryable: true });
      expect(text).toContain(`No file can be written in ${exports}: a file is in the way.`);
      expect(text).toContain('Ask the user to make the folder writable');
      expect(text).not.toContain('The call is not valid');
    },
  );

  testWithFolder(
    'an exported file appears under its final name only after the file is complete',
    async ({ server, folder }) => {
      const sizes = new Set<number>();
      let isOver = false;
      const sql = 'WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n LIMIT 30000) SELECT i FROM n';
      const exported = server.call('export_ads', { name: 'tea', sql }).finally(() => {
        isOver = true;
      });
      for (; !isOver; await delay(1))
        sizes.add(statSync(join(folder, 'exports', 'tea.csv'), { throwIfNoEntry: false })?.size ?? 0);
      const { data } = await exported;
      for (const size of sizes) expect([0, data.bytes]).toContain(size);
    },
  );
});
