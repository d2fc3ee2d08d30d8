import { afterAll, describe, expect, test } from 'vitest';
import { type ExportFormat, everyAdSql, writeExport } from '../../src/dataset/export.ts';
import { SqlPool } from '../../src/dataset/sql/pool.ts';
import type { Cell } from '../../src/dataset/tables.ts';
import { snapshotOf, someAds } from './sql/snapshots.ts';

async function exported(format: ExportFormat, columns: string[], ...batches: Cell[][][]) {
  const parts: Uint8Array[] = [];
  async function* rows() {
    yield* batches;
  }
  const target = { format, maxBytes: 1e6, write: (bytes: Uint8Array) => void parts.push(bytes) };
  const counts = await writeExport({ columns, rows: rows() }, target);
  const bytes = Buffer.concat(parts);
  expect(counts).toEqual({ rows: batches.flat().length, bytes: bytes.length });
  return bytes.toString();
}

describe('CSV', () => {
  test('follows RFC 4180 behind a byte order mark', async () => {
    const rows: Cell[][] = [
      ['a,b', 'say "hi"', 'one\ntwo', null, 1.5],
      ['', ' c ', 'x;y', 'é😀', -3],
    ];
    expect(await exported('csv', ['a', 'b,c', 'd', 'e', 'f'], [rows[0] ?? []], [], [rows[1] ?? []])).toBe(
      '\ufeffa,"b,c",d,e,f\r\n"a,b","say ""hi""","one\ntwo",,1.5\r\n, c ,"x;y",é😀,-3\r\n',
    );
  });

  test.each(['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '\n=1', '＝1', '=cmd|"/C calc"!A0'])(
    'makes the formula %j harmless',
    async (formula) => {
      const text = await exported('csv', ['a'], [[formula]]);
      expect(text).toMatch(/\r\n"?'/);
      expect(text.replaceAll("'", '')).toContain(formula.replaceAll('"', '""').replaceAll("'", ''));
    },
  );

  test('a column is named by the statement, and may pose as a formula too', async () => {
    expect(await exported('csv', ['=1+1'])).toBe("\ufeff'=1+1\r\n");
  });
});

test('JSON Lines hold an object a row, by the names of the columns', async () => {
  const text = await exported('jsonl', ['id', '__proto__'], [['a\n\u2028', 1]], [[null, '=1']]);
  expect(
    text
      .trimEnd()
      .split('\n')
      .map((line) => Object.entries(JSON.parse(line))),
  ).toEqual([
    [
      ['id', 'a\n\u2028'],
      ['__proto__', 1],
    ],
    [
      ['id', null],
      ['__proto__', '=1'],
    ],
  ]);
});

test('an export that grows too large fails, and what cannot be written ends it', async () => {
  const source = () => ({
    columns: ['a'],
    rows: (async function* () {
      for (;;) yield [['x'.repeat(1000)]];
    })(),
  });
  const write = () => {};
  await expect(writeExport(source(), { format: 'jsonl', maxBytes: 10_000, write })).rejects.toThrow('10000 bytes');
  const full = () => Promise.reject(new Error('the disk is full'));
  await expect(writeExport(source(), { format: 'csv', maxBytes: 1e9, write: full })).rejects.toThrow('disk is full');
});

describe('every ad of a dataset', () => {
  const pool = new SqlPool();
  afterAll(() => pool.close());

  test('is exported without its JSON', async () => {
    const snapshot = snapshotOf('tenant', someAds(700));
    const parts: Uint8Array[] = [];
    const target = { format: 'csv' as const, maxBytes: 1e9, write: (bytes: Uint8Array) => void parts.push(bytes) };
    const counts = await pool.export(snapshot, { sql: everyAdSql }, (rows) => writeExport(rows, target));
    expect(counts.rows).toBe(700);
    const [head = '', first = ''] = Buffer.concat(parts).toString().split('\r\n');
    expect(head).toMatch(/^\ufeffid,pageId,.*,gatheredAt$/);
    expect(head).not.toContain('json');
    expect(first).toMatch(/^ad-0,page-0,/);
  });
});
