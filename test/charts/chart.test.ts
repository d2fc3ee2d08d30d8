import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Chart, type ChartRows, type ChartText, chartOf } from '../../src/charts/chart.ts';
import { decodeJpeg } from '../../src/raster/codecs.ts';
import { freshServiceTest } from '../support/fixtures.ts';

const serviceTest = freshServiceTest();

const drawn = (kind: 'bar' | 'line', table: ChartRows): Chart => {
  const chart = chartOf(kind, table);
  if ('problem' in chart) throw new Error(chart.problem);
  return chart;
};
const textsOf = ({ shapes }: Chart) => shapes.flatMap((shape) => (shape.is === 'text' ? [shape.text] : []));
const barsOf = ({ shapes }: Chart, series: number) =>
  shapes.flatMap((shape) => (shape.is === 'rect' && shape.colour === series ? [shape] : []));

describe('a chart', () => {
  test('has bars as long as their numbers, below zero as well', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -1000, max: 1000 }), { minLength: 1, maxLength: 40 }), (numbers) => {
        fc.pre(numbers.some((number) => number !== 0));
        const bars = barsOf(drawn('bar', { columns: ['name', 'n'], rows: numbers.map((n) => ['a', n]) }), 0);
        const unit = Math.max(...bars.map(({ width }) => width)) / Math.max(...numbers.map(Math.abs));
        numbers.forEach((number, index) => {
          const { width = 0 } = bars[index] ?? {};
          expect(width).toBeCloseTo(number === 0 ? 0 : Math.max(2, Math.abs(number) * unit), 3);
        });
      }),
    );
  });

  test('of dates and of numbers stands in their order, whatever the order of the rows', () => {
    const days = fc.uniqueArray(fc.integer({ min: 0, max: 3000 }), { minLength: 2, maxLength: 30 });
    fc.assert(
      fc.property(days, fc.boolean(), (days, asDates) => {
        const cell = (day: number) => (asDates ? new Date(day * 86_400_000).toISOString().slice(0, 10) : day);
        const { shapes } = drawn('line', { columns: ['day', 'n'], rows: days.map((day) => [cell(day), day]) });
        const [line] = shapes.flatMap((shape) => (shape.is === 'line' ? [shape.points] : []));
        const sorted = days.toSorted((a, b) => a - b);
        expect(line).toHaveLength(days.length);
        const [from = 0, to = 0] = [line?.[0]?.[0], line?.at(-1)?.[0]];
        const reach = (sorted.at(-1) ?? 0) - (sorted[0] ?? 0);
        for (const [index, day] of sorted.entries())
          expect(line?.[index]?.[0]).toBeCloseTo(from + ((to - from) * (day - (sorted[0] ?? 0))) / reach, 3);
      }),
    );
  });

  test('stays inside its picture, for any rows', () => {
    const cell = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 300 }),
      fc.double(),
      fc.integer(),
      fc.constant(null),
    );
    const number = fc.oneof(fc.double({ noNaN: true }), fc.integer(), fc.constant(null));
    const rows = fc
      .integer({ min: 1, max: 9 })
      .chain((columns) => fc.array(fc.tuple(cell, fc.array(number, { minLength: columns, maxLength: columns }))));
    fc.assert(
      fc.property(rows, fc.constantFrom('bar' as const, 'line' as const), (rows, kind) => {
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

  test('writes thousands and dates as people do, and as many labels as fit', () => {
    const rows = Array.from({ length: 200 }, (_, day) => [
      new Date(Date.UTC(2025, 0, 1 + day)).toISOString(),
      day * 9000,
    ]);
    const texts = textsOf(drawn('line', { columns: ['day', 'ads'], rows }));
    expect(texts).toContain('Ads by day');
    expect(texts).toContain('500,000');
    expect(texts).toContain('2M');
    expect(texts).toContain('2025-01-01');
    expect(texts.filter((text) => /^2025-/.test(text)).length).toBeLessThan(9);
  });

  test('cuts long names in the middle, and knows the row of one that it may have no letters for', () => {
    const chart = drawn('bar', {
      columns: ['page', 'ads'],
      rows: [[`The beginning ${'of a name '.repeat(9)}and the end`, 1]],
    });
    expect(textsOf(chart)).toContainEqual(expect.stringMatching(/^The beginning.*….*the end$/));
    const [name] = drawn('bar', { columns: ['page', 'ads'], rows: [['広告主', 1]] }).shapes.filter(
      (shape) => shape.is === 'text' && shape.text === '広告主',
    );
    expect(name).toMatchObject({ instead: 'row 1' });
  });

  const isoDay = (day: number) => new Date(day * 86_400_000).toISOString().slice(0, 10);
  /** Rows of one to four numbers, some of them missing. */
  const tables = (most: number) =>
    fc
      .integer({ min: 1, max: 4 })
      .chain((series) =>
        fc.array(fc.array(fc.option(fc.integer({ min: -50, max: 50 })), { minLength: series, maxLength: series }), {
          minLength: 2,
          maxLength: most,
        }),
      )
      // A column without a number is none.
      .filter((rows) => rows[0]?.every((_, column) => rows.some((row) => row[column] !== null)) ?? false);
  type Numbers = (number | null)[][];
  const tableOf = (rows: Numbers, nameOf: (row: number) => string): ChartRows => ({
    columns: ['name', ...(rows[0] ?? []).map((_, column) => `series ${column}`)],
    rows: rows.map((values, row) => [nameOf(row), ...values]),
  });
  /** The bars of a series without its square in the legend. */
  const ownBars = (chart: Chart, series: number) => barsOf(chart, series).filter(({ height }) => height !== 14);
  const overlaps = (bars: ReturnType<typeof barsOf>) =>
    bars.some((one, at) =>
      bars.slice(at + 1).some((other) => {
        const isApart = (place: 'x' | 'y', length: 'width' | 'height') =>
          one[place] + one[length] <= other[place] + 0.01 || other[place] + other[length] <= one[place] + 0.01;
        return !isApart('x', 'width') && !isApart('y', 'height');
      }),
    );

  test('has each name beside its bars, and each number at the end of its bar', () => {
    fc.assert(
      fc.property(tables(12), (rows) => {
        const chart = drawn(
          'bar',
          tableOf(rows, (row) => `name ${row}`),
        );
        const all = chart.shapes;
        for (const [row, values] of rows.entries()) {
          const own = values.flatMap((_, series) => ownBars(chart, series)[row] ?? []);
          expect(own).toHaveLength(values.length);
          const name = all.find((shape) => shape.is === 'text' && shape.text === `name ${row}`) as { y: number };
          const [top, bottom] = [own[0]?.y ?? 0, (own.at(-1)?.y ?? 0) + (own[0]?.height ?? 0)];
          expect(Math.abs(name.y - 6 - (top + bottom) / 2)).toBeLessThan(3);
          for (const [series, bar] of own.entries()) {
            const value = values[series] ?? null;
            const label = all[all.indexOf(bar) + 1] as ChartText;
            expect(label.text).toBe(value === null ? '–' : `${value}`.replace('-', '−'));
            expect(label.y > bar.y && label.y < bar.y + bar.height).toBe(true);
            if ((value ?? 0) < 0) expect([label.anchor, label.x < bar.x]).toEqual(['end', true]);
            else expect([label.anchor, label.x > bar.x + bar.width]).toEqual(['start', true]);
          }
        }
        expect(overlaps(rows.flatMap((_, series) => ownBars(chart, series)))).toBe(false);
      }),
    );
  });

  test('of dates has its bars side by side, above and below a line at zero', () => {
    fc.assert(
      fc.property(tables(20), (rows) => {
        const chart = drawn(
          'bar',
          tableOf(rows, (row) => isoDay(row)),
        );
        const [zero, ...others] = chart.shapes.flatMap((shape) =>
          shape.is === 'rect' && shape.colour === 'soft' ? [shape] : [],
        );
        expect([zero?.height, others]).toEqual([1, []]);
        const bars = (rows[0] ?? []).map((_, series) => ownBars(chart, series));
        for (const [series, own] of bars.entries()) {
          const values = rows.flatMap((row) => row[series] ?? []);
          expect(own).toHaveLength(values.length);
          for (const [at, value] of values.entries()) {
            const { y = 0, height = 0 } = own[at] ?? {};
            expect(value > 0 ? y + height : y).toBeCloseTo(zero?.y ?? 0, 3);
          }
        }
        expect(overlaps(bars.flat())).toBe(false);
      }),
    );
  });

  test('has a line for each series, broken where a number is missing, and a dot for one that stands alone', () => {
    fc.assert(
      fc.property(tables(60), (rows) => {
        const chart = drawn(
          'line',
          tableOf(rows, (row) => isoDay(row)),
        );
        for (const series of rows[0]?.keys() ?? []) {
          const runs = rows
            .map((row) => (row[series] === null ? ' ' : 'x'))
            .join('')
            .split(' ')
            .filter(Boolean);
          const lines = chart.shapes.flatMap((shape) =>
            shape.is === 'line' && shape.colour === series ? [shape.points.length] : [],
          );
          expect(lines).toEqual(runs.map(({ length }) => length).filter((length) => length > 1));
          const dotted = rows.length <= 40 ? runs : runs.filter((run) => run.length === 1);
          expect(ownBars(chart, series)).toHaveLength(dotted.join('').length);
        }
      }),
      { examples: [[Array.from({ length: 50 }, (_, row) => [row % 9 === 1 ? null : row, row % 2 === 1 ? null : 1])]] },
    );
  });

  test('names the colours of its series below its title, in as many lines as they need', () => {
    const names = [1, 2, 3, 4, 5, 6, 7, 8].map((number) => `A series with quite a long name ${number}`);
    const { shapes } = drawn('line', { columns: ['name', ...names], rows: [['x', ...names.map((_, at) => at)]] });
    const legend = shapes.flatMap((shape) =>
      shape.is === 'text' && shape.instead?.startsWith('column') ? [shape] : [],
    );
    expect(legend.map(({ instead }) => instead)).toEqual([2, 3, 4, 5, 6, 7, 8, 9].map((column) => `column ${column}`));
    for (const { x, y } of legend) {
      expect(x).toBeLessThan(800);
      expect(legend.filter((one) => one.y === y && Math.abs(one.x - x) < 250)).toHaveLength(1);
    }
  });

  test.each([
    [0.00001234, '1.23E−5'],
    [0.1234, '0.123'],
    [1234.567, '1,234.57'],
    [-1234567, '−1.235M'],
    [-1e20, '−1E20'],
  ])('writes %d as %s', (number, text) => {
    expect(textsOf(drawn('bar', { columns: ['a', 'b'], rows: [['x', number]] }))).toContain(text);
  });

  const many = (length: number) => Array.from({ length }, (_, index) => index);
  test.each<[string, 'bar' | 'line', unknown[][], RegExp]>([
    ['no rows', 'bar', [], /no rows/],
    ['no numbers', 'line', [['x', 'y']], /holds only numbers; select one/],
    ['200 series', 'bar', [['x', ...many(200)]], /at most 8/],
    ['too many bars', 'bar', many(41).map((n) => [`page ${n}`, n]), /at most 40 with LIMIT/],
    [
      'numbers beyond all',
      'bar',
      [
        ['x', 1e308],
        ['y', -1e308],
      ],
      /too far apart/,
    ],
  ])('is refused with what to do: %s', (_, kind, rows, problem) => {
    const columns = (rows[0] ?? ['a', 'b']).map((_, index) => `column ${index}`);
    expect(chartOf(kind, { columns, rows } as ChartRows)).toEqual({ problem: expect.stringMatching(problem) });
  });

  test('keeps the axis of dates where some have none, and says how many', () => {
    const rows = [
      [null, 9],
      ['2026-01-05T00:00:00.000Z', 1],
      ['2026-06-05T00:00:00.000Z', 0.004],
    ];
    const texts = textsOf(drawn('line', { columns: ['startedAt', 'ads'], rows }));
    const title = 'Ads by started at (without 1 row that has none)';
    expect(texts).toEqual(expect.arrayContaining([title, '2026-01-05', '2026-06-05']));
    expect(texts).not.toContain('none');
  });
});

describe('a chart of months', () => {
  const now = Date.UTC(2026, 10, 20);
  const months = (column: string, rows: unknown[][], kind: 'bar' | 'line' = 'line') => {
    const chart = chartOf(kind, { columns: ['month', column], rows }, { now });
    if ('problem' in chart) throw new Error(chart.problem);
    return chart;
  };
  const linesOf = ({ shapes }: Chart) => shapes.flatMap((shape) => (shape.is === 'line' ? [shape] : []));

  test('is zero where nothing was counted, has a gap where nothing was averaged, and what is not over is dashed', () => {
    const rows = [
      ['2026-03', 4],
      ['2026-07', 2],
      ['2026-08', 2],
      ['2026-11', 1],
    ];
    const counts = linesOf(months('ads', rows));
    expect(counts.map(({ points, isDashed }) => [points.length, isDashed])).toEqual([
      [8, undefined],
      [2, true],
    ]);
    const ys = counts[0]?.points.map(([, y]) => y) ?? [];
    expect(new Set([1, 2, 3, 6, 7].map((at) => ys[at])).size).toBe(1);
    expect(linesOf(months('avgDays', rows)).map(({ points }) => points.length)).toEqual([2]);
    expect(textsOf(months('ads', rows))).toContain('Ads by month (2026-11 so far)');
    const bars = barsOf(months('ads', rows, 'bar'), 0);
    expect(bars.map(({ isPale }) => isPale)).toEqual([...Array.from({ length: 8 }, () => undefined), true]);
  });

  test('has a series for each name, and a small chart for each unit', () => {
    const rows = [
      ['2026-03', 'Serra', 4],
      ['2026-04', 'Über Image', 2],
      ['2026-05', 'Serra', 1],
      ['2026-05', 'Über Image', 3],
    ];
    const named = drawn('line', { columns: ['month', 'pageName', 'ads'], rows });
    expect(textsOf(named)).toEqual(expect.arrayContaining(['Ads by month and page name', 'Serra', 'Über Image']));
    expect(linesOf(named).map(({ points, colour }) => [points.length, colour])).toEqual([
      [3, 0],
      [3, 1],
    ]);
    for (const kind of ['bar', 'line'] as const) {
      const columns = ['pageName', 'ads', 'avg_days', 'copies'];
      const units = drawn(kind, {
        columns,
        rows: [
          ['Serra', 3, 100, 1],
          ['Other', 1, 20, 2],
        ],
      });
      expect(textsOf(units)).toEqual(expect.arrayContaining(['Ads and copies by page name', 'Avg days by page name']));
    }
  });

  test('fits a phone, and says where its data is generated', () => {
    const columns = ['pageName', 'ads'];
    const rows = Array.from({ length: 12 }, (_, row) => [`${'A long name '.repeat(9)}${row}`, 10 ** row]);
    for (const kind of ['bar', 'line'] as const) {
      const chart = chartOf(kind, { columns, rows }, { isNarrow: true, isDemo: true });
      if ('problem' in chart) throw new Error(chart.problem);
      expect(chart.width).toBe(330);
      expect(textsOf(chart)).toContain('demo data');
      for (const { x = 0, width = 0 } of barsOf(chart, 0)) expect(x + width).toBeLessThanOrEqual(330);
    }
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
    for (const [name, isNumbered] of [
      ['🔥🎁', true],
      ['🔥 広告主', false],
      ['Ελληνικά', false],
      ['Müller – “Bücher” …', false],
    ] as const) {
      const { text } = await server.call('query_ads', { sql: `SELECT '${name}' AS page, -3 AS ads`, chart: 'bar' });
      expect(text.includes('stand there as row 1, row 2'), name).toBe(isNumbered);
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
