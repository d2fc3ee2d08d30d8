import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { renderToString } from '#preact/render-to-string';
import { buildChart, type Chart } from '../../src/charts/chart.ts';
import type { ChartRows } from '../../src/charts/chart-data.ts';
import { type ChartKind, chartKinds } from '../../src/charts/chart-kinds.ts';
import { decodeJpeg } from '../../src/drawing/codecs.ts';
import { ResponsiveChart } from '../../src/reports/report.tsx';
import { getLightColor } from '../../src/ui/palette.ts';
import { openTestPictures } from '../pictures/sample-pictures.ts';
import { freshServiceTest } from '../support/fixtures.ts';

const serviceTest = freshServiceTest();

const drawChart = (...[kind, table, options]: Parameters<typeof buildChart>): Chart => {
  const chart = buildChart(kind, table, options);
  if ('problem' in chart) throw new Error(chart.problem);
  return chart;
};
const formatIsoDay = (day: number) => new Date(Date.UTC(2025, 0, 1 + day)).toISOString().slice(0, 10);
const numberRows = (length: number) => Array.from({ length }, (_, at) => at);
/** Parses rows written as JSON lists without brackets, e.g. `'"Acme", 3'`. */
const createRows = (...texts: string[]): unknown[][] => texts.map((text) => JSON.parse(`[${text}]`));

/** Charts of every type. Each key says what the reviewer of the snapshot must see. */
const drawings: Record<string, [ChartKind, ChartRows['columns'], unknown[][], sql?: string]> = {
  'bars are as long as their numbers, below zero as well, beside their names and before their numbers': [
    'bar',
    ['page', 'ads', 'copies'],
    createRows(
      '"Serra", 40, -10',
      '"広告主", null, 0',
      `"The beginning ${'of a name '.repeat(9)}and the end", -0.5, 1`,
    ),
  ],
  'two pages of the same name have a bar each': ['bar', ['pageName', 'ads'], createRows('"Acme", 5', '"Acme", 7')],
  'bars of dates stand side by side, above and below a line at zero': [
    'bar',
    ['day', 'ads', 'change'],
    createRows('"2025-01-01", 9, -3', '"2025-01-02", null, 4', '"2025-01-06", 2, -9'),
  ],
  'dates stand in their order, with as many labels as fit, and thousands as people write them': [
    'line',
    ['day', 'ads'],
    numberRows(200).map((at) => [formatIsoDay((at * 53) % 200), ((at * 53) % 200) * 9000]),
  ],
  'numbers stand in their order': ['line', ['length', 'ads'], createRows('30, 3', '6, 1', '15, 2')],
  'a line is broken where a number is missing, with a dot where one stands alone': [
    'line',
    ['day', 'ads', 'pages'],
    numberRows(50).map((at) => [formatIsoDay(at), at % 9 === 1 ? null : at, at % 2 === 1 ? null : 1]),
  ],
  'series are named below the title, in as many lines as they need, and the plot below them keeps its height': [
    'line',
    ['name', ...numberRows(8).map((at) => `A series with quite a long name ${at}`)],
    ['x', 'y'].map((name) => [name, ...numberRows(8)]),
  ],
  'numbers are short': ['bar', ['a', 'b'], [0.00001234, 0.1234, 1234.567, -1234567, -1e7].map((one) => ['x', one])],
  'a number beyond all others has its power': ['bar', ['a', 'b'], [['x', -1e20]]],
  'rows without a date are left out, and the title says so': [
    'line',
    ['startedAt', 'ads'],
    createRows('null, 9', '"2025-01-05", 1', '"2025-01-10", 0.004'),
  ],
  ...Object.fromEntries(
    [
      ['count(*) AS ads', 'line'],
      ['avg(daysRunning) AS avgDays', 'line'],
      ['max(daysRunning) AS longest', 'line'],
      ['count(*) AS ads', 'bar'],
    ].map(([expression = '', kind]) => [
      `months without a row are zero in counts and gaps in other numbers, and the unfinished month is dashed or pale (${expression}, ${kind})`,
      [
        kind,
        ['month', expression.split(' AS ')[1] ?? ''],
        createRows('"2026-03", 4', '"2026-07", 2', '"2026-08", 2', '"2026-11", 1'),
        `SELECT startedMonth AS month, ${expression} FROM ads GROUP BY 1`,
      ],
    ]),
  ),
  'each name has a series': [
    'line',
    ['month', 'pageName', 'ads'],
    createRows(
      '"2026-03", "Serra", 4',
      '"2026-04", "Über Image", 2',
      '"2026-05", "Serra", 1',
      '"2026-05", "Über Image", 3',
    ),
    'SELECT startedMonth AS month, pageName, count(*) AS ads FROM ads GROUP BY 1, 2',
  ],
  'each unit has a chart of its own': [
    'bar',
    ['pageName', 'ads', 'avg_days', 'copies'],
    createRows('"Serra", 3, 100, 1', '"Other", 1, 20, 2'),
  ],
};

const anyCell = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 300 }),
  fc.constantFrom('2026-01', '2026-05', '2026-05-04', '2026-W07', '2026-06-30T12:00:00Z'),
  fc.double(),
  fc.constant(null),
);
const anyNumber = fc.oneof(fc.double({ noNaN: true }), fc.integer(), fc.constant(null));
/** Generates rows with any first cell and one to nine numbers. */
const anyTable = fc
  .integer({ min: 1, max: 9 })
  .chain((length) => fc.array(fc.tuple(anyCell, fc.array(anyNumber, { minLength: length, maxLength: length }))))
  .map((read) => read.map(([name, values]) => [name, ...values]));

describe('A chart', () => {
  test('every chart type is drawn exactly as in the snapshot file drawings.html', async () => {
    const readAtMs = Date.UTC(2026, 10, 20);
    const drawnCharts = Object.entries(drawings).map(([label, [kind, columns, rows, sql]]) => {
      const table = { columns, rows, ...(sql !== undefined && { sql }) };
      const [wide, phoneChart] = [{ readAtMs }, { readAtMs, isNarrow: true, isDemo: true }].map((options) =>
        drawChart(kind, table, options),
      ) as [Chart, Chart];
      return `<h2>${label}</h2>${renderToString(ResponsiveChart({ label, wide, narrow: phoneChart }))}`;
    });
    await expect(`${drawnCharts.join('').replaceAll('><', '>\n<')}\n`).toMatchFileSnapshot('drawings.html');
  });

  test('a chart label with characters that the font cannot draw is replaced by its row or column number', () => {
    const { shapes } = drawChart('line', {
      columns: ['day', '広告', 'ads'],
      rows: createRows('"一", 1, 2', '"二", 3, 4'),
    });
    const fallbackLabels = shapes.flatMap((shape) =>
      shape.kind === 'text' && shape.fallbackText ? [shape.fallbackText] : [],
    );
    expect(fallbackLabels).toEqual(['column 2', 'column 3', 'row 1', 'row 2']);
  });

  test('every shape in a chart stays inside the image, for any data', () => {
    const names = fc.array(fc.string({ unit: 'grapheme', maxLength: 200 }), { minLength: 10, maxLength: 10 });
    fc.assert(
      fc.property(anyTable, names, fc.constantFrom(...chartKinds), fc.boolean(), (rows, names, kind, isNarrow) => {
        const columns = (rows[0] ?? []).map((_, index) => names[index] ?? '');
        const chart = buildChart(kind, { columns, rows }, { isNarrow });
        if ('problem' in chart) return;
        for (const shape of chart.shapes) {
          const points = shape.kind === 'line' ? [...shape.points] : [[shape.x, shape.y] as const];
          if (shape.kind === 'rect') points.push([shape.x + shape.width, shape.y + shape.height]);
          for (const [x, y] of points) {
            expect(Math.min(x, y)).toBeGreaterThanOrEqual(0);
            expect(x).toBeLessThanOrEqual(chart.width + 0.001);
            expect(y).toBeLessThanOrEqual(chart.height + 0.001);
          }
        }
      }),
      { numRuns: 300 },
    );
  });

  test('long category names do not make the bars of a chart much shorter', () => {
    const listBars = ({ shapes }: Chart) =>
      shapes.flatMap((shape) => (shape.kind === 'rect' && typeof shape.color === 'number' ? [shape.height] : []));
    const name = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 90 });
    fc.assert(
      fc.property(fc.uniqueArray(name, { minLength: 8, maxLength: 8 }), fc.boolean(), (names, isNarrow) => {
        const values = names.map(() => 40);
        const chartOfOne = drawChart('bar', { columns: ['day', 'ads'], rows: [['2026-05-04', 40]] }, { isNarrow });
        const columns = ['day', ...names.map((name) => `x ${name.replaceAll(/\P{L}/gu, 'a')}`)];
        const chartOfMany = buildChart('bar', { columns, rows: [['2026-05-04', ...values]] }, { isNarrow });
        if ('problem' in chartOfMany || chartOfMany.shapes.length === 0) return;
        expect(Math.max(...listBars(chartOfMany))).toBeGreaterThan(0.5 * Math.max(...listBars(chartOfOne)));
      }),
    );
  });

  test.each<[string, ChartKind, unknown[][], RegExp]>([
    ['no rows', 'bar', [], /no rows/],
    ['no numbers', 'line', [['x', 'y']], /holds only numbers; select one/],
    ['200 series', 'bar', [['x', ...numberRows(200)]], /at most 8/],
    ['too many bars', 'bar', numberRows(41).map((n) => [`page ${n}`, n]), /at most 40 with LIMIT/],
    ['numbers that are too far apart', 'bar', createRows('"x", 1e308', '"y", -1e308'), /too far apart/],
    [
      'two rows for a date',
      'line',
      createRows('"2026-03", 4', '"2026-04", 1', '"2026-03-01", 2'),
      /rows 1 and 3 .* 2026-03;/,
    ],
    [
      'two rows for a number',
      'line',
      createRows('7, 4', '7, 1'),
      /rows 1 and 2 are both for 7; select one row for each/,
    ],
    [
      'two rows for a date and a name',
      'bar',
      createRows('"2026-03", "Acme", 5', '"2026-03", "Acme", 7'),
      /rows 1 and 2 are both for 2026-03 and Acme; group by both columns/,
    ],
  ])('a chart request with %s is rejected with an error that says how to correct it', (_, kind, rows, problem) => {
    const columns = (rows[0] ?? ['a', 'b']).map((_, index) => `column ${index}`);
    expect(buildChart(kind, { columns, rows } as ChartRows)).toEqual({ problem: expect.stringMatching(problem) });
  });
});

describe('query_ads with a chart', () => {
  serviceTest(
    'query_ads returns a chart picture after a text that is complete without the picture',
    async ({ server }) => {
      await server.call('search_ads', { limit: 20 });
      const sql = 'SELECT displayFormat, count(*) AS ads FROM ads GROUP BY 1 ORDER BY 2 DESC, 1';
      const plain = await server.call('query_ads', { sql });
      const { raw: result, text, data } = await server.call('query_ads', { sql, chart: 'bar' });
      const [first, picture, ...otherBlocks] = result.content as { type: string; mimeType?: string; data?: string }[];
      expect([first?.type, picture?.type, otherBlocks]).toEqual(['text', 'image', []]);
      expect(picture?.mimeType).toBe('image/jpeg');
      const bytes = Buffer.from(picture?.data ?? '', 'base64');
      expect(bytes.length).toBeLessThanOrEqual(200_000);
      expect(await decodeJpeg(bytes)).toMatchObject({ width: 1000 });
      expect(data.rows).toEqual(plain.data.rows);
      for (const row of data.rows as unknown[][]) expect(text).toContain(row.join(' | '));
    },
  );

  test('the picture of a line chart shows the line through all unfinished days', async () => {
    const rows = numberRows(60).map((day) => [formatIsoDay(day), 10]);
    const chart = drawChart('line', { columns: ['day', 'ads'], rows }, { readAtMs: Date.UTC(2025, 0, 1 + 30) });
    const pictures = openTestPictures([]);
    const { signal } = new AbortController();
    const drawing = await pictures.forTenant('tenant').drawChart(chart, { signal, getRemainingMs: () => 30_000 });
    await pictures.close();
    const { width, height, data } = await decodeJpeg('jpeg' in drawing ? drawing.jpeg : new Uint8Array());
    const lineColor = getLightColor(0);
    const hasLineColor = (x: number, y: number) =>
      lineColor.every((value, channel) => Math.abs(value - (data[4 * (y * width + x) + channel] ?? 0)) < 60);
    const columnsWithLine = numberRows(width).filter((x) => numberRows(height).some((y) => hasLineColor(x, y)));
    expect(columnsWithLine.filter((x) => x > 700).length).toBeGreaterThan(100);
  });

  serviceTest(
    'query_ads says how to draw a column of integers above 2^53, which its result contains as texts',
    async ({ server }) => {
      const sql = "SELECT 'Serra' AS page, 9007199254740993 AS total";
      const { data } = await server.call('query_ads', { sql, chart: 'bar' });
      expect(data.rows).toEqual([['Serra', '9007199254740993']]);
      expect(data.chart).toContain('or CAST(x AS REAL) if x is an integer above 2^53, which is returned as text');
      const castSql = "SELECT 'Serra' AS page, CAST(9007199254740993 AS REAL) AS total";
      const { raw } = await server.call('query_ads', { sql: castSql, chart: 'bar' });
      expect(raw.content).toMatchObject([{}, { type: 'image' }]);
    },
  );

  test.each([
    ['ids', ['page', 'sourcePageExternalId'], [['Serra', '100064873519284412']]],
    [
      'texts of which one has only digits',
      ['page', 'headline'],
      [
        ['Serra', '100064873519284412'],
        ['Serra', 'Sale'],
      ],
    ],
  ])('a chart request whose only other column has %s gets no advice to cast it to a number', (_, columns, rows) => {
    const { problem } = buildChart('bar', { columns, rows }) as { problem: string };
    expect(problem).toContain('holds only numbers; select one, such as count(*)');
    expect(problem).not.toContain('CAST');
  });

  serviceTest(
    'query_ads returns its rows and a reason for the missing chart if no time is left to draw the chart',
    async ({ start }) => {
      // From the second call on, the clock advances by a minute each time it is read, so every deadline has passed.
      let [time, step] = [0, 0];
      const server = await start({}, { monotonicNow: () => (time += step) });
      const sql = "SELECT 'Serra' AS page, 3 AS ads";
      await server.call('query_ads', { sql });
      step = 60_000;
      const { raw, text, data, isError } = await server.call('query_ads', { sql, chart: 'bar' });
      expect([isError, data.rows, raw.content.length]).toEqual([false, [['Serra', 3]], 1]);
      expect(data.chart).toMatch(/^No chart: the server is busy, and drawing it took too long; .*\.$/);
      expect(text).toContain(`Serra | 3\n`);
      expect(text).toContain(`\n${data.chart}`);
    },
  );

  serviceTest(
    'query_ads says which names a chart could not draw, and gives the reason if the chart is missing',
    async ({ server }) => {
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
    },
  );
});
