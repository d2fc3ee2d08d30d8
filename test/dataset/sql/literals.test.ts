import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isMatchingAdvertiser, readStatementLiterals } from '../../../src/dataset/sql/literals.ts';

const readTexts = (condition: string) =>
  readStatementLiterals(`SELECT 1 FROM ads WHERE ${condition}`).advertiserCondition?.exactValues;

test('text values in SQL statements are read as SQLite reads them, and comments and quoted names are skipped', () => {
  expect(readTexts("pageName = 'O''Neil' OR pageId IN ('p1', 123456)")).toEqual(["o'neil", 'p1', '123456']);
  expect(readTexts("ads.\"pageName\" = -- 'comment'\n/* 'more' */ 'Text'")).toEqual(['text']);
  expect(readTexts("pageName = '-- no comment' COLLATE NOCASE")).toEqual(['-- no comment']);
});

test.each([
  "pageName <> 'A'",
  "NOT pageName = 'A'",
  "pageName IS NOT 'A'",
  "pageName NOT IN ('A', 'B')",
  "pageName NOT LIKE 'A'",
  "pageName = 'A' OR startedAt > '2026'",
  "(pageName = 'A') = 0",
  "CASE WHEN pageName = 'A' THEN 1 ELSE 1 END",
  "daysRunning > (SELECT median(daysRunning) FROM ads WHERE pageName = 'A')",
  "country = 'A'",
  "pageName LIKE 'A_'",
  "ifnull(pageName, 'A') = 'A'",
])('the SQL condition "%s" is not treated as a filter for one advertiser', (condition) => {
  expect(readTexts(condition)).toBeUndefined();
});

test.each([
  "SELECT pageName = 'A', count(*) FROM ads GROUP BY 1",
  "SELECT sum(pageName = 'A') FROM ads",
  "SELECT count(*) FILTER (WHERE pageName = 'A') FROM ads",
  "SELECT pageName FROM ads GROUP BY 1 HAVING pageName = 'A'",
  "SELECT 1 FROM ads WHERE pageName = 'A' UNION SELECT 1 FROM ads",
])(
  'the SQL statement "%s" is not treated as a filter for advertisers, because it may read the ads of any advertiser',
  (sql) => {
    expect(readStatementLiterals(sql).advertiserCondition).toBeUndefined();
  },
);

interface Row {
  pageName: string;
  pageId: string;
  country: string;
  days: number;
}

/** A condition in SQL, with the same condition as a function. */
interface Condition {
  sql: string;
  isMet(row: Row): boolean;
}

const rows: Row[] = ['Acme', 'Bolt', 'Acme Shop'].flatMap((pageName, at) =>
  ['DE', 'Acme'].flatMap((country) => [1, 30].map((days) => ({ pageName, pageId: `page ${at}`, country, days }))),
);
const simpleConditions: Condition[] = [
  { sql: "pageName = 'Acme'", isMet: ({ pageName }) => pageName === 'Acme' },
  { sql: "'bolt' = lower(pageName)", isMet: ({ pageName }) => pageName === 'Bolt' },
  { sql: "pageName LIKE 'acme%'", isMet: ({ pageName }) => pageName.startsWith('Acme') },
  { sql: "pageId IN ('page 1', 'page 2')", isMet: ({ pageId }) => pageId !== 'page 0' },
  { sql: "country = 'Acme'", isMet: ({ country }) => country === 'Acme' },
  { sql: 'days BETWEEN 1 AND 7', isMet: ({ days }) => days <= 7 },
];
const { condition } = fc.letrec<{ condition: Condition }>((tie) => {
  const combine = (word: 'AND' | 'OR') =>
    fc.tuple(tie('condition'), tie('condition')).map(
      ([left, right]): Condition => ({
        sql: `(${left.sql} ${word} ${right.sql})`,
        isMet: (row) => (word === 'AND' ? left.isMet(row) && right.isMet(row) : left.isMet(row) || right.isMet(row)),
      }),
    );
  return {
    condition: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom(...simpleConditions),
      combine('AND'),
      combine('OR'),
      tie('condition').map(({ sql, isMet }): Condition => ({ sql: `NOT ${sql}`, isMet: (row) => !isMet(row) })),
      tie('condition').map(
        ({ sql, isMet }): Condition => ({ sql: `CASE WHEN ${sql} THEN 0 ELSE 1 END`, isMet: (row) => !isMet(row) }),
      ),
    ),
  };
});

test('if advertisers are recognized in an SQL condition, no row of another advertiser meets the condition', () => {
  fc.assert(
    fc.property(condition, ({ sql, isMet }) => {
      const { advertiserCondition } = readStatementLiterals(`SELECT pageName FROM ads WHERE ${sql} ORDER BY days`);
      for (const row of rows.filter(isMet))
        expect(
          advertiserCondition === undefined || isMatchingAdvertiser(advertiserCondition, row),
          JSON.stringify(row),
        ).toBe(true);
    }),
    { numRuns: 500 },
  );
});

test('an SQL condition on the advertiser is also recognized if it is combined with other conditions by AND', () => {
  for (const { sql } of simpleConditions.slice(0, 4)) {
    const { advertiserCondition } = readStatementLiterals(
      `SELECT 1 FROM ads WHERE days > 3 AND (${sql} OR ${sql}) AND country = 'DE'`,
    );
    expect(advertiserCondition).toBeDefined();
  }
});

test('a LIKE pattern on pageName is recognized as a filter for advertisers if its wildcards are only at its ends', () => {
  const includes = (pattern: string, pageName: string) => {
    const { advertiserCondition } = readStatementLiterals(
      `SELECT 1 FROM ads WHERE lower(a.pageName) LIKE '${pattern}'`,
    );
    return advertiserCondition && isMatchingAdvertiser(advertiserCondition, { pageId: null, pageName });
  };
  expect(['ACME shop', 'The Acme'].map((name) => includes('Acme%', name))).toEqual([true, false]);
  expect(['ACME shop', 'The Acme'].map((name) => includes('%acme', name))).toEqual([false, true]);
  expect(['ACME shop', 'Alphabeta Co'].map((name) => includes('%beta%', name))).toEqual([false, true]);
  expect(includes('G_mma', 'Gamma')).toBeUndefined();
});

test('the ad fields that an SQL statement reads with JSON functions and operators are recognized', () => {
  const sql =
    "SELECT json_extract(json, '$.lastSeenAt', '$.\"end date\"'), json ->> 'headline', json -> '$.page.pageName', json_extract(json, '$.cards[0].title') FROM ads WHERE body = 'no.path'";
  expect([...readStatementLiterals(sql).jsonFields].sort()).toEqual([
    'cards',
    'end date',
    'headline',
    'lastSeenAt',
    'page',
  ]);
});

test('reading the text values of an SQL statement takes linear time', () => {
  for (const part of [
    "'",
    "''",
    '"',
    '[',
    '`',
    '/*',
    '*',
    '--',
    '(',
    '()',
    "x'",
    'a',
    "'a' ",
    '->',
    '%',
    'or ',
    'case ',
  ])
    for (const start of ['', 'select where ']) readStatementLiterals(start + part.repeat(20_000 / part.length));
  fc.assert(
    fc.property(fc.string({ unit: 'binary', minLength: 1, maxLength: 200 }), (text) => {
      expect(readTexts(`pageName = '${text.replaceAll("'", "''")}'`)).toEqual([text.toLowerCase()]);
    }),
  );
});
