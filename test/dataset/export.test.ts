import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { strFromU8, unzipSync } from 'fflate';
import { parquetMetadata, parquetReadObjects } from 'hyparquet';
import readSheet from 'read-excel-file/node';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type ExportFormat, type ExportStatement, writeExport } from '../../src/dataset/export.ts';
import type { Cell } from '../../src/dataset/tables.ts';

/** Creates a statement that returns the same rows each time it runs. */
const statement = (columns: string[], batches: Iterable<Cell[][]>): ExportStatement => ({
  name: 'Ads',
  sql: '',
  runStatement: (readRows) =>
    readRows({
      columns,
      isAboutAds: true,
      rows: (async function* () {
        yield* batches;
      })(),
    }),
});

const createMethodRows = () => [[{ bold: 'Method' }]];

async function writeToBuffer(format: ExportFormat, columns: string[], ...batches: Cell[][][]) {
  const chunks: Uint8Array[] = [];
  const target = {
    format,
    maxBytes: 1e7,
    writeBytes: (bytes: Uint8Array) => void chunks.push(bytes),
    buildMethodRows: createMethodRows,
  };
  const [counts] = await writeExport([statement(columns, batches)], target);
  expect(counts).toMatchObject({ columns, rowCount: batches.flat().length, firstRows: batches.flat().slice(0, 3) });
  return { bytes: Buffer.concat(chunks), counts };
}

const exportAsText = async (format: ExportFormat, columns: string[], ...batches: Cell[][][]) =>
  (await writeToBuffer(format, columns, ...batches)).bytes.toString();

test('a CSV export follows RFC 4180 and starts with a byte order mark', async () => {
  const rows: Cell[][] = [
    ['a,b', 'say "hi"', 'one\ntwo', null, 1.5, '2026-06-14T12:30:05.000Z'],
    ['', ' c ', 'é;😀', '2026-06-15T00:00:00.000Z', -3, '2026-06-15T00:00:00.123Z'],
  ];
  const columns = ['pageName', 'b,c', 'landing_domain', 'id', 'e', 'startedAt'];
  expect(await exportAsText('csv', columns, rows.slice(0, 1), [], rows.slice(1))).toBe(
    '\ufeffPage name,"B,c",Landing domain,ID,E,Started at\r\n"a,b","say ""hi""","one\ntwo",,1.5,2026-06-14 12:30:05\r\n, c ,"é;😀",2026-06-15,-3,2026-06-15 00:00:00.123\r\n',
  );
});

/** Parses CSV as RFC 4180 specifies it. */
function parseCsv(csv: string): string[][] {
  const rows: string[][] = [[]];
  for (const [, quoted, plain = '', end] of csv.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    rows.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain);
    if (end !== ',') rows.push([]);
  }
  return rows.slice(0, -1);
}

test('a spreadsheet program never runs a cell of a CSV export as a formula', async () => {
  const starts = ['=cmd|x', '-1', '+', '@a', '＝1', '- free', '(x)', 'Hi', ' '];
  const separators = [';', '\t', '|', ',', '\n', '\r\n', '"', "'"];
  const part = fc.constantFrom(...starts, ...separators);
  const text = fc.array(part, { minLength: 1, maxLength: 6 }).map((parts) => parts.join(''));
  const formula = /^[=+\-@＝＋－＠]/;
  const plain = (cells: string[]) => cells.map((cell) => cell.replaceAll("'", ''));
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(text, text), { minLength: 1 }), async (rows) => {
      const cells = rows.map((texts) => ['x', ...texts]);
      const csv = await exportAsText('csv', ['id', 'a', 'b'], cells);
      const [, ...readRows] = parseCsv(csv);
      expect(readRows.map(([, ...texts]) => plain(texts))).toEqual(rows.map(plain));
      for (const cell of readRows.flat()) expect(cell).not.toMatch(formula);
      for (const cell of csv.split(/[;|\t\r\n]/).map((part) => part.replace(/^"+/, '')))
        if (!/^[+-] [^(]*$/.test(cell)) expect(cell).not.toMatch(formula);
    }),
    { numRuns: 300 },
  );
});

test('CSV escaping gives the same result whether the text arrives in one chunk or in many', async () => {
  const signs = fc.constantFrom('=', '-', ';', '\n', '\r\n', '"', '""', "'", 'a', '|', '- a');
  const text = fc.array(signs, { minLength: 1, maxLength: 12 }).map((parts) => parts.join(''));
  const cellOf = async (cell: string) =>
    (await exportAsText('csv', ['a'], [[cell]])).slice('\ufeffA\r\n'.length, -'\r\n'.length);
  await fc.assert(
    fc.asyncProperty(text, fc.integer({ min: 32_700, max: 33_000 }), text, async (start, length, end) => {
      // Both cells contain "(x", which looks like a function call, so both use the stricter escaping.
      const filler = '(x'.repeat(length / 2);
      const [long, short] = [await cellOf(`${filler}${start}${end}`), await cellOf(`(x${start}${end}`)];
      expect(long.replace(filler, '(x')).toBe(short);
      const repeated = await cellOf(`(${start.repeat(Math.ceil(40_000 / start.length))}`);
      const once = await cellOf(`(${start.repeat(3)}`);
      expect(repeated.length - once.length).toBe(
        (Math.ceil(40_000 / start.length) - 3) * measureRepetition(await cellOf(`(${start.repeat(4)}`), once),
      );
    }),
    { numRuns: 50 },
  );
});

const measureRepetition = (four: string, three: string) => four.length - three.length;

test.each(['csv', 'xlsx'] as const)(
  'the server stays responsive while it exports long texts (format: %s)',
  async (format) => {
    let eventLoopTurns = 0;
    const runOtherWork = () => {
      eventLoopTurns++;
      next = setImmediate(runOtherWork);
    };
    let next = setImmediate(runOtherWork);
    onTestFinished(() => clearImmediate(next));
    const text = (format === 'csv' ? '|=' : '\r"').repeat(16_000);
    const before = eventLoopTurns;
    // This batch has the maximum size that an export writes at once.
    await writeToBuffer(
      format,
      ['a'],
      Array.from({ length: 60 }, () => [text]),
    );
    expect(eventLoopTurns - before).toBeGreaterThan(5);
  },
);

test('a JSON Lines export contains one JSON object per row', async () => {
  const text = await exportAsText('jsonl', ['id', '__proto__'], [['a\n\u2028', 1]], [[null, '=1']]);
  const lines = text.trimEnd().split('\n');
  expect(lines.map((line) => Object.entries(JSON.parse(line)).flat())).toEqual([
    ['id', 'a\n\u2028', '__proto__', 1],
    ['id', null, '__proto__', '=1'],
  ]);
});

test('an export fails if its file exceeds the size limit or cannot be written', async () => {
  const noise = Array.from({ length: 500 }, (_, index) => [randomBytes(30).toString('hex') + index]);
  const source = statement(['a'], [noise, noise]);
  for (const format of ['csv', 'jsonl', 'xlsx', 'parquet'] as const) {
    const write = () => {};
    await expect(
      writeExport([source], { format, maxBytes: 10_000, writeBytes: write, buildMethodRows: createMethodRows }),
    ).rejects.toThrow('10000 bytes');
    const full = () => Promise.reject(new Error('the disk is full'));
    await expect(
      writeExport([source], { format, maxBytes: 1e9, writeBytes: full, buildMethodRows: createMethodRows }),
    ).rejects.toThrow('disk is full');
  }
});

const [noon, morning] = ['2026-06-14T12:30:05.000Z', '2026-06-15T00:00:00.000Z'];

describe('A sheet of an Excel export', () => {
  const exportSheet = async (columns: string[], ...batches: Cell[][][]) => {
    const { bytes, counts } = await writeToBuffer('xlsx', columns, ...batches);
    const [sheet] = await readSheet(bytes, { trim: false });
    return { rows: sheet?.data, counts, xml: strFromU8(unzipSync(bytes)['xl/worksheets/sheet1.xml'] as Uint8Array) };
  };

  test('an Excel export stores dates, numbers and texts in cells of the matching type', async () => {
    const { rows, xml } = await exportSheet(
      ['id', 'startedAt', 'count', 'share', 'mixed'],
      [['00042', noon, 3, 0.5, 'one']],
      [Array(5).fill(null), ['x', morning, -7, 2, 2]],
    );
    expect(rows).toEqual([
      ['ID', 'Started at', 'Count', 'Share', 'Mixed'],
      ['00042', new Date(noon), 3, 0.5, 'one'],
      [null, null, null, null, null],
      ['x', new Date(morning), -7, 2, 2],
    ]);
    expect(xml).toMatch(/<pane ySplit="1"[^>]* state="frozen"/);
    expect(xml).toContain('<c r="B1" s="1" t="inlineStr"');
    expect(xml).toContain('<autoFilter ref="A1:E4"/>');
  });

  test.each([
    ['a text that is not a date', [noon, 'unknown']],
    ['a day without a time', [noon, '2026-06-14']],
    ['a number', [noon, 20260614]],
    ['a date before the first date of Excel', [noon, '1899-12-31T00:00:00.000Z']],
    ['a day that does not exist', [noon, '2026-02-31T99:00:00.000Z']],
  ])('an Excel export writes a column of dates as text if the column contains %s', async (_, cells) => {
    const column = cells.map((cell) => [cell]);
    const { rows } = await exportSheet(['at'], column);
    expect(rows).toEqual([['At'], ...column]);
  });

  test('an Excel export never contains formulas', async () => {
    const hostile = ['=1+1', '=cmd|"/C calc"!A0', '@SUM(A1)', '<f>1+1</f>', ']]><f>1</f>', '_x003D_1', '&#61;1', '+1'];
    const cells = hostile.map((text) => [text, text]);
    const { rows, xml } = await exportSheet(['=A1', 'text'], cells);
    expect(rows).toEqual([['=A1', 'Text'], ...cells]);
    expect(xml).not.toMatch(/<f[ >]/);
  });

  test('an Excel export is well-formed XML for any cell text', async () => {
    const text = fc.string({ unit: 'binary', maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 5 }), async (texts) => {
        const cells = texts.map((text, index) => [index, text]);
        const { rows, xml } = await exportSheet(['n', 'a'], cells);
        // biome-ignore lint/suspicious/noControlCharactersInRegex: XML must not contain these characters.
        expect(xml).not.toMatch(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/);
        expect(rows).toHaveLength(texts.length + 1);
      }),
      { numRuns: 20 },
    );
  });

  test('an Excel export writes numbers with many digits as text and truncates long texts', async () => {
    const long = 'x'.repeat(40_000);
    const { rows, counts } = await exportSheet(
      ['n', 'a'],
      [[1_234_567_890_123_456, long]],
      [[999_999_999_999_999, 'short']],
    );
    expect(rows?.[1]).toEqual(['1234567890123456', 'x'.repeat(32_767)]);
    expect(rows?.[2]).toEqual([999_999_999_999_999, 'short']);
    expect(counts?.truncatedCellCount).toBe(1);
  });

  test('an Excel export with too many rows is rejected', async () => {
    const batch = Array.from({ length: 1000 }, () => [1]);
    const source = statement(['a'], Array(1050).fill(batch));
    const target = { format: 'xlsx', maxBytes: 1e9, writeBytes: () => {}, buildMethodRows: createMethodRows } as const;
    await expect(writeExport([source], target)).rejects.toThrow('1048575 rows below its header');
  });
});

const exportParquet = async (columns: string[], ...batches: Cell[][][]) => {
  const { bytes } = await writeToBuffer('parquet', columns, ...batches);
  const file = new Uint8Array(bytes).buffer;
  const schema = parquetMetadata(file).schema.slice(1);
  return { rows: await parquetReadObjects({ file }), types: schema.map(({ type }) => type) };
};

test('all cells of a Parquet column are stored with a type that fits every value in the column', async () => {
  const { rows, types } = await exportParquet(
    ['id', 'startedAt', 'count', 'share', 'mixed', 'nothing', 'id (2)'],
    [['00042', noon, 3, 1, 'one', null, 'a']],
    [Array(7).fill(null), ['é😀', morning, -7, 0.5, 2, null, 'b']],
  );
  expect(types).toEqual(['BYTE_ARRAY', 'INT64', 'INT64', 'DOUBLE', 'BYTE_ARRAY', 'BYTE_ARRAY', 'BYTE_ARRAY']);
  const empty = { id: null, startedAt: null, count: null, share: null, mixed: null, nothing: null, 'id (2)': null };
  expect(rows).toEqual([
    { ...empty, id: '00042', startedAt: new Date(noon), count: 3n, share: 1, mixed: 'one', 'id (2)': 'a' },
    empty,
    { ...empty, id: 'é😀', startedAt: new Date(morning), count: -7n, share: 0.5, mixed: '2', 'id (2)': 'b' },
  ]);
});

test('a Parquet export of many rows contains all of the rows', async () => {
  const cells = Array.from({ length: 25_000 }, (_, index): Cell[] => [index, `ad-${index}`]);
  const { rows } = await exportParquet(['n', 'id'], cells.slice(0, 15_000), cells.slice(15_000));
  expect(rows).toHaveLength(25_000);
  expect(rows[24_999]).toEqual({ n: 24_999n, id: 'ad-24999' });
  expect((await exportParquet(['n', 'id'])).rows).toEqual([]);
});

test('a Parquet export fails if its SQL statement returns different rows when the server runs it a second time', async () => {
  let runs = 0;
  const source: ExportStatement = {
    ...statement([], []),
    runStatement: (read) => statement(['a'], [[[runs++ === 0 ? 1 : 'one']]]).runStatement(read),
  };
  const target = { format: 'parquet', maxBytes: 1e6, writeBytes: () => {}, buildMethodRows: createMethodRows } as const;
  await expect(writeExport([source], target)).rejects.toThrow('random()');
});
