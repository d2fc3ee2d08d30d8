import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { renderToString } from '#preact/render-to-string';
import { type Chart, type ChartRows, chartOf } from '../../src/charts/chart.ts';
import { decodeJpeg } from '../../src/drawing/codecs.ts';
import { ChartSvg } from '../../src/reports/report.tsx';
import { freshServiceTest } from '../support/fixtures.ts';

const serviceTest = freshServiceTest();

const drawn = (...[kind, table, options]: Parameters<typeof chartOf>): Chart => {
  const chart = chartOf(kind, table, options);
  if ('problem' in chart) throw new Error(chart.problem);
  return chart;
};
const isoDay = (day: number) => new Date(Date.UTC(2025, 0, 1 + day)).toISOString().slice(0, 10);
const numbered = (length: number) => Array.from({ length }, (_, at) => at);
/** Each row as JSON without its brackets. */
const rows = (...texts: string[]): unknown[][] => texts.map((text) => JSON.parse(`[${text}]`));

/** What every kind of chart has to draw, by what is to be seen in it. */
const drawings: Record<string, ['bar' | 'line', ChartRows['columns'], unknown[][]]> = {
  'bars are as long as their numbers, below zero as well, beside their names and before their numbers': [
    'bar',
    ['page', 'ads', 'copies'],
    rows('"Serra", 40, -10', '"広告主", null, 0', `"The beginning ${'of a name '.repeat(9)}and the end", -0.5, 1`),
  ],
  'bars of dates stand side by side, above and below a line at zero': [
    'bar',
    ['day', 'ads', 'change'],
    rows('"2025-01-01", 9, -3', '"2025-01-02", null, 4', '"2025-01-06", 2, -9'),
  ],
  'dates stand in their order, with as many labels as fit, and thousands as people write them': [
    'line',
    ['day', 'ads'],
    numbered(200).map((at) => [isoDay((at * 53) % 200), ((at * 53) % 200) * 9000]),
  ],
  'numbers stand in their order': ['line', ['length', 'ads'], rows('30, 3', '6, 1', '15, 2')],
  'a line is broken where a number is missing, with a dot where one stands alone': [
    'line',
    ['day', 'ads', 'pages'],
    numbered(50).map((at) => [isoDay(at), at % 9 === 1 ? null : at, at % 2 === 1 ? null : 1]),
  ],
  'series are named below the title, in as many lines as they need': [
    'line',
    ['name', ...numbered(8).map((at) => `A series with quite a long name ${at}`)],
    ['x', 'y'].map((name) => [name, ...numbered(8)]),
  ],
  'numbers are short': ['bar', ['a', 'b'], [0.00001234, 0.1234, 1234.567, -1234567, -1e7].map((one) => ['x', one])],
  'a number beyond all others has its power': ['bar', ['a', 'b'], [['x', -1e20]]],
  'rows without a date are left out, and said': [
    'line',
    ['startedAt', 'ads'],
    rows('null, 9', '"2025-01-05", 1', '"2025-01-10", 0.004'),
  ],
  ...Object.fromEntries(
    [
      ['ads', 'line'],
      ['avgDays', 'line'],
      ['ads', 'bar'],
    ].map(([column = '', kind]) => [
      `months without a row are zero in counts and gaps in averages, and one that is not over is apart (${column}, ${kind})`,
      [kind, ['month', column], rows('"2026-03", 4', '"2026-07", 2', '"2026-08", 2', '"2026-11", 1')],
    ]),
  ),
  'each name has a series': [
    'line',
    ['month', 'pageName', 'ads'],
    rows('"2026-03", "Serra", 4', '"2026-04", "Über Image", 2', '"2026-05", "Serra", 1', '"2026-05", "Über Image", 3'),
  ],
  'each unit has a chart of its own': [
    'bar',
    ['pageName', 'ads', 'avg_days', 'copies'],
    rows('"Serra", 3, 100, 1', '"Other", 1, 20, 2'),
  ],
};

describe('a chart', () => {
  test('is drawn for a wide screen, and for a phone with the mark of demo data, as drawings.html shows', async () => {
    const now = Date.UTC(2026, 10, 20);
    const shown = Object.entries(drawings).map(([label, [kind, columns, rows]]) => {
      const [wide, narrow] = [{ now }, { now, isNarrow: true, isDemo: true }].map((options) =>
        drawn(kind, { columns, rows }, options),
      ) as [Chart, Chart];
      return `<h2>${label}</h2>${renderToString(ChartSvg({ label, wide, narrow }))}`;
    });
    await expect(`${shown.join('').replaceAll('><', '>\n<')}\n`).toMatchFileSnapshot('drawings.html');
  });

  test('knows the row or the column of a name that the picture may have no letters for', () => {
    const { shapes } = drawn('line', { columns: ['day', '広告', 'ads'], rows: rows('"一", 1, 2', '"二", 3, 4') });
    const instead = shapes.flatMap((shape) => (shape.is === 'text' && shape.instead ? [shape.instead] : []));
    expect(instead).toEqual(['column 2', 'column 3', 'row 1', 'row 2']);
  });

  test('stays inside its picture, for any rows', () => {
    const number = fc.oneof(fc.double({ noNaN: true }), fc.integer(), fc.constant(null));
    const cell = fc.oneof(fc.string({ unit: 'grapheme', maxLength: 300 }), fc.double(), number);
    const table = fc
      .integer({ min: 1, max: 9 })
      .chain((columns) => fc.array(fc.tuple(cell, fc.array(number, { minLength: columns, maxLength: columns }))));
    fc.assert(
      fc.property(table, fc.constantFrom('bar' as const, 'line' as const), (rows, kind) => {
        const columns = ['x'.repeat(500), ...(rows[0]?.[1] ?? []).map((_, index) => `column ${index}`)];
        const chart = chartOf(kind, { columns, rows: rows.map(([name, values]) => [name, ...values]) });
        if ('problem' in chart) return;
        for (const shape of chart.shapes) {
          const places = shape.is === 'line' ? shape.points.flat() : [shape.x, shape.y];
          if (shape.is === 'rect') places.push(shape.x + shape.width, shape.y + shape.height);
          for (const place of places) {
            expect(place).toBeGreaterThanOrEqual(0);
            expect(place).toBeLessThanOrEqual(Math.max(chart.width, chart.height));
          }
        }
      }),
      { numRuns: 200 },
    );
  });

  test.each<[string, 'bar' | 'line', unknown[][], RegExp]>([
    ['no rows', 'bar', [], /no rows/],
    ['no numbers', 'line', [['x', 'y']], /holds only numbers; select one/],
    ['200 series', 'bar', [['x', ...numbered(200)]], /at most 8/],
    ['too many bars', 'bar', numbered(41).map((n) => [`page ${n}`, n]), /at most 40 with LIMIT/],
    ['numbers beyond all', 'bar', rows('"x", 1e308', '"y", -1e308'), /too far apart/],
  ])('is refused with what to do: %s', (_, kind, rows, problem) => {
    const columns = (rows[0] ?? ['a', 'b']).map((_, index) => `column ${index}`);
    expect(chartOf(kind, { columns, rows } as ChartRows)).toEqual({ problem: expect.stringMatching(problem) });
  });
});

describe('query_ads with a chart', () => {
  serviceTest('brings one picture after a text that is complete without it', async ({ server }) => {
    await server.call('search_ads', { limit: 20 });
    const sql = 'SELECT displayFormat, count(*) AS ads FROM ads GROUP BY 1 ORDER BY 2 DESC, 1';
    const plain = await server.call('query_ads', { sql });
    const { raw: result, text, data } = await server.call('query_ads', { sql, chart: 'bar' });
    const [first, picture, ...others] = result.content as { type: string; mimeType?: string; data?: string }[];
    expect([first?.type, picture?.type, others]).toEqual(['text', 'image', []]);
    expect(picture?.mimeType).toBe('image/jpeg');
    const bytes = Buffer.from(picture?.data ?? '', 'base64');
    expect(bytes.length).toBeLessThanOrEqual(200_000);
    expect(await decodeJpeg(bytes)).toMatchObject({ width: 1000 });
    expect(data.rows).toEqual(plain.data.rows);
    for (const row of data.rows as unknown[][]) expect(text).toContain(row.join(' | '));
  });

  serviceTest('says whether the picture can write all names, and where there is none why', async ({ server }) => {
    for (const name of ['🔥🎁', '🔥 広告主', 'Ελληνικά', 'Müller – “Bücher” …']) {
      const { text } = await server.call('query_ads', { sql: `SELECT '${name}' AS page, -3 AS ads`, chart: 'bar' });
      expect(text.includes('are row 1, row 2'), name).toBe(name === '🔥🎁');
    }
    await server.call('search_ads', { limit: 5 });
    const sql = 'SELECT id, headline FROM ads';
    const { raw, text, data, isError } = await server.call('query_ads', { sql, chart: 'line' });
    expect(isError).toBe(false);
    expect(data.rows).toHaveLength(5);
    expect(data.chart).toContain('No chart: no column after the first (id) holds only numbers');
    expect(text).toContain(`\n${data.chart}\n`);
    expect(raw.content).toHaveLength(1);
  });
});
