import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { buildChartData, type ChartRows } from '../../src/charts/chart-data.ts';
import { findCountColumns } from '../../src/charts/count-columns.ts';

const dayMs = 86_400_000;
const readTable = (table: ChartRows, kind: 'bar' | 'line' = 'line') => {
  const data = buildChartData(kind, table, undefined);
  if (data.problem !== undefined) throw new Error(data.problem);
  return data;
};
/** Returns the name and the first value of each position on the axis. */
const listPlaces = (table: ChartRows) => {
  const { points, series } = readTable(table);
  return points.map(({ name }, index) => [name, series[0]?.values[index]]);
};
const formatIsoDay = (day: number) => new Date(Date.UTC(2024, 0, 1) + day * dayMs).toISOString().slice(0, 10);

/** Each unit of time, with its SQL expression and a function that formats a day number in the same way. */
const units = {
  day: { sql: 'date(startedAt) AS day', nameOf: formatIsoDay },
  month: { sql: 'startedMonth AS month', nameOf: (day: number) => formatIsoDay(day).slice(0, 7) },
  'Monday of the week': {
    sql: "date(startedAt, 'weekday 0', '-6 days') AS week",
    nameOf: (day: number) => formatIsoDay(day - ((new Date(formatIsoDay(day)).getUTCDay() + 6) % 7)),
  },
  'week %Y-%W': {
    sql: "strftime('%Y-%W', startedAt) AS week",
    nameOf: (day: number) => formatMondayWeek(formatIsoDay(day), ''),
  },
  'week %Y-W%W': {
    sql: "strftime('%Y-W%W', startedAt) AS week",
    nameOf: (day: number) => formatMondayWeek(formatIsoDay(day), 'W'),
  },
  'week %G-%V': {
    sql: "strftime('%G-%V', startedAt) AS week",
    nameOf: (day: number) => formatIsoWeek(formatIsoDay(day)).replace('W', ''),
  },
  'week %G-W%V': {
    sql: "strftime('%G-W%V', startedAt) AS week",
    nameOf: (day: number) => formatIsoWeek(formatIsoDay(day)),
  },
};

/** Formats a date like SQLite's `%Y-%W`, by counting the week starts day by day. */
function formatMondayWeek(iso: string, letter: string): string {
  const year = iso.slice(0, 4);
  let week = 0;
  for (let time = Date.parse(`${year}-01-01`); time <= Date.parse(iso); time += dayMs)
    if (new Date(time).getUTCDay() === 1) week++;
  return `${year}-${letter}${String(week).padStart(2, '0')}`;
}

/** Formats a date like SQLite's `%G-W%V`: an ISO week belongs to the year of its Thursday. */
function formatIsoWeek(iso: string): string {
  const time = Date.parse(iso);
  const thursday = new Date(time + (3 - ((new Date(time).getUTCDay() + 6) % 7)) * dayMs);
  const dayOfYear = Math.floor((thursday.getTime() - Date.UTC(thursday.getUTCFullYear(), 0, 1)) / dayMs);
  return `${thursday.getUTCFullYear()}-W${String(Math.floor(dayOfYear / 7) + 1).padStart(2, '0')}`;
}

describe('The date axis of a chart', () => {
  test.each(Object.entries(units))(
    'a chart that counts ads by %s shows zero for dates without ads',
    (_, { sql, nameOf }) => {
      const days = fc.uniqueArray(fc.integer({ min: 0, max: 1000 }), { minLength: 2, maxLength: 60 });
      fc.assert(
        fc.property(days, (days) => {
          const counts = new Map<string, number>();
          for (const day of days) counts.set(nameOf(day), (counts.get(nameOf(day)) ?? 0) + 1);
          const statement = `SELECT ${sql}, count(*) AS ads FROM ads GROUP BY 1`;
          const columns = [/AS (\w+)/.exec(sql)?.[1] ?? '', 'ads'];
          const [first, last] = [Math.min(...days), Math.max(...days)];
          const every = new Set(Array.from({ length: last - first + 1 }, (_, day) => nameOf(first + day)));
          const expected = [...every].map((name) => [name, counts.get(name) ?? 0]);
          expect(listPlaces({ columns, rows: [...counts], sql: statement })).toEqual(expected);
        }),
        { numRuns: 50 },
      );
    },
  );

  test.each(['longest', 'p90', 'price', 'reach', 'typical', 'ads'])(
    'a chart whose values come from the column %s shows a gap, not zero, for a month without rows',
    (name) => {
      const sql = `SELECT startedMonth AS month, max(daysRunning) AS ${name} FROM ads GROUP BY 1`;
      const rows = [
        ['2026-01', 3],
        ['2026-03', 5],
      ];
      expect(listPlaces({ columns: ['month', name], rows, sql })).toEqual([
        ['2026-01', 3],
        ['2026-02', null],
        ['2026-03', 5],
      ]);
    },
  );

  test('a chart of a few dates that are months apart adds no points for the days in between', () => {
    const rows = [
      ['2026-01-03', 3],
      ['2026-03-09', 5],
      ['2026-07-02', 4],
    ];
    expect(listPlaces({ columns: ['gatheredAt', 'ads'], rows })).toEqual(rows);
  });

  test('a chart with one value for each quarter adds no points for the months in between', () => {
    const sql = 'SELECT quarter, count(*) AS ads FROM x GROUP BY 1';
    const rows = [
      ['2026-01', 3],
      ['2026-04', 5],
      ['2026-07', 4],
    ];
    expect(listPlaces({ columns: ['quarter', 'ads'], rows, sql })).toEqual(rows);
    expect(listPlaces({ columns: ['since', 'ads'], rows, sql })).toEqual(rows);
  });

  test('a chart treats a value such as 2026-47 as a week only if all values in the same column are valid weeks', () => {
    const rows = [
      ['2026-47', 3],
      ['2026-80', 5],
    ];
    expect(readTable({ columns: ['model', 'ads'], rows }).axisKind).toBe('names');
  });

  test('the error about a bar chart with too many days suggests longer periods or a line chart', () => {
    const sql = 'SELECT date(startedAt) AS day, count(*) AS ads FROM ads GROUP BY 1';
    const table = {
      columns: ['day', 'ads'],
      rows: [
        ['2026-01-01', 1],
        ['2026-12-01', 2],
      ],
      sql,
    };
    expect(buildChartData('bar', table, undefined).problem).toBe(
      'there are more than 60 places from 2026-01-01 to 2026-12-01; group by longer times, or take a line',
    );
    expect(readTable(table).points).toHaveLength(335);
  });

  test.each([
    ['%Y-W%W', '2026-11-28', true],
    ['%Y-W%W', '2026-11-30', false],
    ['%G-%V', '2026-11-21', true],
    ['%G-%V', '2026-11-23', false],
  ])(
    'a chart of weeks in the format %s that were read on %s marks week 47 as unfinished: %s',
    (format, day, marked) => {
      const sql = `SELECT strftime('${format}', startedAt) AS week, count(*) AS ads FROM ads GROUP BY 1`;
      const letter = format.includes('W%') ? 'W' : '';
      const rows = [46, 47].map((week) => [`2026-${letter}${week}`, 3]);
      const data = buildChartData('bar', { columns: ['week', 'ads'], rows, sql }, Date.parse(day));
      expect(data.problem === undefined && data.points.at(-1)?.isUnfinished).toBe(marked);
    },
  );

  test.each([
    ['%Winter%', '%G-%V', '2026-47', false],
    ['%Vegan%', '%Y-W%W', '2026-W47', true],
  ])(
    'a statement that searches for %s and has the week format %s returns week %s, and its chart marks the week as unfinished: %s',
    (text, format, week, isUnfinished) => {
      const sql = `SELECT strftime('${format}', startedAt) AS week, count(*) AS ads FROM ads WHERE body LIKE '${text}' GROUP BY 1`;
      const rows = [week.replace('47', '46'), week].map((name) => [name, 3]);
      const data = buildChartData('bar', { columns: ['week', 'ads'], rows, sql }, Date.parse('2026-11-23'));
      expect(data.problem === undefined && data.points.at(-1)?.isUnfinished).toBe(isUnfinished);
    },
  );

  test.each([
    ['2026-11', '2026-11-20', true],
    ['2026-11', '2026-12-01', false],
    ['2026-09', '2026-09-10', true],
    ['2026-12', '2026-11-20', true],
  ])(
    'in a chart that ends in %s and shows ads read on %s, the last month is marked as unfinished: %s',
    (month, readOn, isOpen) => {
      const data = buildChartData('bar', { columns: ['month', 'ads'], rows: [[month, 3]] }, Date.parse(readOn));
      expect(data.points?.at(-1)?.isUnfinished).toBe(isOpen);
      expect(data.title).toBe(isOpen ? `by month (${month} so far)` : 'by month');
    },
  );
});

test('a chart marks every month that was not over when the ads were read as unfinished', () => {
  const rows = ['2026-08', '2026-09', '2026-10', '2026-11'].map((month) => [month, 3]);
  const data = buildChartData('bar', { columns: ['month', 'ads'], rows }, Date.parse('2026-10-05'));
  expect(data.points?.map(({ isUnfinished }) => isUnfinished)).toEqual([false, false, true, true]);
  expect(data.title).toBe('by month (2026-10 to 2026-11 so far)');
});

describe('Dates that a condition of the SQL statement leaves out', () => {
  const conditions: [condition: string, value: number | null][] = [
    ["startedMonth IN ('2026-01', '2026-04')", null],
    ["startedMonth = '2026-01' OR startedMonth = '2026-04'", null],
    ["startedMonth NOT IN ('2026-02', '2026-03')", null],
    ["startedMonth <> '2026-02'", null],
    ["startedMonth LIKE '%-01'", null],
    ["strftime('%m', startedAt) IN ('01', '04')", null],
    ["language = 'de' AND startedAt REGEXP '^2026-0[14]'", null],
    ["'2026-02' <> startedMonth", null],
    ["startedAt < '2026-02-01' OR startedAt > '2026-03-31'", null],
    ["strftime('%m', startedAt) BETWEEN '04' AND '06'", null],
    ["substr(startedAt, 6, 2) > '03'", null],
    ["substring(startedAt, 6, 2) > '03'", null],
    ["(startedAt < '2026-02-01' AND language = 'de') OR (language = 'de' AND startedAt >= '2026-04-01')", null],
    ["startedAt BETWEEN '2026-01-01' AND '2026-01-31' OR language = 'de'", null],
    ["startedAt >= strftime('%Y-%m-%d', 'now', '-90 days')", 0],
    ['length(startedAt) > 3', null],
    ["substr(startedAt, 1, 7) > '2025-12'", 0],
    ["startedAt >= '2026-01-01' AND startedAt < '2027-01-01' AND (language = 'de' OR language = 'fr')", 0],
    ["startedAt >= '2026-01-01' AND language NOT IN ('de')", 0],
    ['endDate IS NULL', 0],
    ["lastSeenAt >= date(startedAt, '+30 days')", 0],
    ["date(startedAt) >= date(current_date, '-30 days')", 0],
    ["[startedMonth] >= '2026-01' AND `startedMonth` < '2027-01'", 0],
    ["startedMonth >= '2026-01'", 0],
    ["'2026-01' <= startedMonth", 0],
    ["startedAt BETWEEN '2026-01-01' AND '2026-05-01' AND language = 'de'", 0],
    ["date(startedAt) > date('now', '-1 year')", 0],
    ['startedMonth IS NOT NULL AND daysRunning > 30', 0],
    ["language = 'de' OR language = 'fr'", 0],
  ];

  test.each(conditions)(
    'a chart of counts from SQL with the condition %s shows %s for a month without a row',
    (condition, value) => {
      const sql = `SELECT startedMonth, count(*) AS ads FROM ads WHERE ${condition} GROUP BY 1`;
      const rows = [
        ['2026-01', 3],
        ['2026-04', 5],
      ];
      expect(listPlaces({ columns: ['startedMonth', 'ads'], rows, sql })).toEqual([
        ['2026-01', 3],
        ['2026-02', value],
        ['2026-03', value],
        ['2026-04', 5],
      ]);
    },
  );
});

describe('Dates that a join or a set operation of the SQL statement leaves out', () => {
  const statements: [source: string, value: number | null][] = [
    ["ads JOIN labels ON adId = id AND startedMonth IN ('2026-01', '2026-03')", null],
    ['(SELECT max(startedMonth) AS startedMonth FROM ads GROUP BY pageId) JOIN ads USING (startedMonth)', null],
    ['json_each(\'["2026-01", "2026-03"]\') LEFT JOIN ads ON startedMonth = value', null],
    ["(VALUES ('2026-01'), ('2026-03')) LEFT JOIN ads ON true", null],
    ["(SELECT '2026-01' AS startedMonth UNION ALL SELECT '2026-03')", null],
    ['(SELECT startedMonth FROM ads EXCEPT SELECT month FROM months)', null],
    ['ads JOIN labels ON adId = id', 0],
    ["ads JOIN ad_countries USING (id) JOIN labels ON adId = id AND startedMonth >= '2026-01'", 0],
    ["ads JOIN labels ON adId = id WHERE startedMonth >= '2026-01'", 0],
  ];

  test.each(statements)(
    'a chart of counts from the SQL source %s shows %s for a month without a row',
    (source, value) => {
      const sql = `SELECT startedMonth, count(*) AS ads FROM ${source} GROUP BY 1`;
      const rows = [
        ['2026-01', 3],
        ['2026-03', 5],
      ];
      expect(listPlaces({ columns: ['startedMonth', 'ads'], rows, sql })).toEqual([
        ['2026-01', 3],
        ['2026-02', value],
        ['2026-03', 5],
      ]);
    },
  );
});

test('a chart of counts from SQL shows zero for a month without a row if only a FILTER clause limits the dates', () => {
  const sql = "SELECT startedMonth, count(*) FILTER (WHERE endDate = '2026-05-01') AS ads FROM ads GROUP BY 1";
  const rows = [
    ['2026-01', 3],
    ['2026-03', 5],
  ];
  expect(listPlaces({ columns: ['startedMonth', 'ads'], rows, sql })).toEqual([
    ['2026-01', 3],
    ['2026-02', 0],
    ['2026-03', 5],
  ]);
});

describe('The rows of a chart', () => {
  test('a chart with two rows for the same date or category is rejected with an error', () => {
    const cell = fc.constantFrom('Acme', 'Serra', '2026-01', '2026-02', '2026-W03', null, 1, 2);
    const name = fc.constantFrom('x', 'y', null);
    const table = fc.array(fc.tuple(cell, name, fc.integer({ min: 1, max: 99 })), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(table, fc.boolean(), (rows, isNamed) => {
        const shownRows = isNamed ? rows : rows.map(([cell, , value]) => [cell, value]);
        const columns = isNamed ? ['place', 'name', 'ads'] : ['place', 'ads'];
        const data = buildChartData('line', { columns, rows: shownRows }, undefined);
        if (data.problem !== undefined) {
          expect(data.problem).toMatch(/^rows \d+ and \d+ are both for /);
          return;
        }
        const drawn = data.series.flatMap(({ values }) => values).filter((value) => value !== null);
        const withPlace = data.axisKind === 'names' ? rows : rows.filter(([cell]) => cell !== null);
        expect(drawn.sort()).toEqual(withPlace.map(([, , value]) => value).sort());
      }),
    );
  });
});

describe('The row numbers of a chart with named series', () => {
  const columns = ['pageName', 'format', 'ads'];

  test('points and series have the numbers of their first rows in the result', () => {
    const rows = [
      ['அம்மா', 'VIDEO', 4],
      ['அம்மா', 'IMAGE', 3],
      ['ஆடு', 'VIDEO', 2],
      ['ஆடு', 'பட', 1],
    ];
    const { points, series } = readTable({ columns, rows });
    expect(points.map(({ rowNumber }) => rowNumber)).toEqual([1, 3]);
    expect(series.map(({ fallbackTitle }) => fallbackTitle)).toEqual(['row 1', 'row 2', 'row 4']);
  });

  test('the title counts each row of the result that has no date', () => {
    const rows = [
      [null, 'VIDEO', 4],
      [null, 'IMAGE', 3],
      ['2026-01', 'VIDEO', 2],
      ['2026-01', 'IMAGE', 1],
    ];
    const { title, points } = readTable({ columns: ['month', 'format', 'ads'], rows });
    expect(title).toContain('without 2 rows that have none');
    expect(points.map(({ rowNumber }) => rowNumber)).toEqual([3]);
  });
});

describe('Columns with counts in chart data', () => {
  test.each<[string, string[]]>([
    ['SELECT month, count(*) AS ads FROM ads GROUP BY 1', ['ads']],
    ['select month, COUNT( DISTINCT pageId ) "ads" from ads', ['ads']],
    ['SELECT month, count(*) FILTER (WHERE active = 1) AS ads, avg(daysRunning) n FROM ads', ['ads']],
    ['SELECT month, count(CASE WHEN (a = 1) THEN 1 END) ads, count(*) n FROM ads -- AS ads', ['ads', 'n']],
    ['WITH m AS (SELECT month, count(*) AS ads FROM ads GROUP BY 1) SELECT month, ads FROM m', []],
    ["SELECT 'count(*) AS ads, x' AS month, max(x) AS ads FROM ads", []],
    ['SELECT month, max(daysRunning) AS ads FROM ads', []],
    ['SELECT month, count(*) / 2 AS ads FROM ads', []],
    ['SELECT month, 100.0 * count(*) AS ads FROM ads', []],
    ['SELECT month, sum(x) AS ads FROM ads', []],
    ['SELECT month, count(*) OVER (ORDER BY month) AS ads FROM ads', []],
    ['SELECT month, count(*) AS ads FROM ads GROUP BY 1 HAVING count(*) > 2', []],
    ['SELECT * FROM (SELECT month, count(*) AS ads FROM ads GROUP BY 1) WHERE ads > 2', []],
    ["SELECT '2026-01' AS month, 3 AS ads UNION SELECT month, count(*) AS ads FROM ads GROUP BY 1", []],
    ['SELECT month, count(*) AS ads FROM ads JOIN labels l ON l.adId = ads.id GROUP BY 1', ['ads']],
    ['SELECT month, count(*) AS ads FROM ads GROUP BY 1 ORDER BY 2 DESC LIMIT 3', []],
    ['SELECT month, count(*) AS ads FROM ads GROUP BY 1 ORDER BY 1 LIMIT 100', ['ads']],
    ['SELECT month, max(daysRunning) AS desc FROM ads GROUP BY month ORDER BY 1, count(*) DESC', []],
    ['SELECT month, max(daysRunning) AS asc FROM ads GROUP BY month ORDER BY 1, count(*) ASC', []],
    ['', []],
  ])('the columns of the SQL statement "%s" that contain counts are recognized as %j', (sql, expected) => {
    expect([...findCountColumns({ columns: ['month', 'ads', 'n', 'count', 'asc', 'desc'], sql, rowCount: 3 })]).toEqual(
      expected,
    );
  });

  test('a name that the SQL statement gives to two columns is not recognized as a count', () => {
    const sql = 'SELECT month, count(*) AS ads, max(daysRunning) AS ADS FROM ads GROUP BY 1';
    expect([...findCountColumns({ columns: ['month', 'ads', 'ADS'], sql, rowCount: 3 })]).toEqual([]);
  });

  test('an expression that only begins with a count is not recognized as a count', () => {
    const columns = [
      'month',
      'count(*)',
      'count(DISTINCT (pageId)) FILTER (WHERE active)',
      'count(*) / 2',
      'count(*)*(2)',
    ];
    const sql = `SELECT ${columns.join(', ')} FROM ads GROUP BY 1`;
    expect([...findCountColumns({ columns, sql, rowCount: 3 })]).toEqual(columns.slice(1, 3));
  });

  test('if the SQL statement is unknown, a chart treats only a column with a name such as count(*) as a count', () => {
    expect([...findCountColumns({ columns: ['month', 'count(*)', 'max(count)'], rowCount: 3 })]).toEqual(['count(*)']);
  });
});
