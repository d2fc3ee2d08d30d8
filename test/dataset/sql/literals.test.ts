import fc from 'fast-check';
import { expect, test } from 'vitest';
import { matchesPattern, readLiterals } from '../../../src/dataset/sql/literals.ts';

const readTexts = (sql: string) => [...readLiterals(sql).comparedTexts].sort();

test('the literal reader parses SQL strings as SQLite does and skips comments and quoted names', () => {
  expect(readTexts("SELECT 1 FROM ads WHERE pageName = 'O''Neil' OR pageId IN ('p1', 123456)")).toEqual([
    '123456',
    "o'neil",
    'p1',
  ]);
  expect(readTexts(`SELECT "it's" AS [a 'b'], \`c 'd'\` FROM ads -- 'comment'\n/* 'more' */ WHERE x = 'Text'`)).toEqual(
    ['text'],
  );
  expect(readTexts("SELECT x'41', '-- no comment', '/* none */'")).toEqual(['-- no comment', '/* none */']);
});

test('the literal reader ignores values that an SQL statement excludes', () => {
  expect(
    readTexts(
      "SELECT 1 FROM ads WHERE pageName <> 'A' AND pageName != 'B' AND pageName IS NOT 'C' AND pageName NOT IN ('D', ('E')) AND pageName NOT LIKE 'F' AND pageName IN ('G') AND pageName IS 'H'",
    ),
  ).toEqual(['g', 'h']);
});

test('LIKE patterns on pageName are read if their wildcards are only at the ends', () => {
  const sql =
    "SELECT 1 FROM ads WHERE pageName LIKE 'Acme%' AND lower(a.pageName) LIKE '%beta%' AND \"pageName\" LIKE 'G_mma' AND body LIKE '%sale%' AND pageName NOT LIKE '%delta'";
  const { namePatterns } = readLiterals(sql);
  expect(namePatterns.map(({ text }) => text)).toEqual(['acme', 'beta']);
  const [start = { text: '', startsWithAny: false, endsWithAny: false }, inside = start] = namePatterns;
  expect(['ACME shop', 'The Acme', 'alphabeta'].map((name) => matchesPattern(name, start))).toEqual([
    true,
    false,
    false,
  ]);
  expect(['ACME shop', 'Alphabeta Co'].map((name) => matchesPattern(name, inside))).toEqual([false, true]);
});

test('the first field of each JSON path is read from SQL functions and operators', () => {
  const sql =
    "SELECT json_extract(json, '$.lastSeenAt', '$.\"end date\"'), json ->> 'headline', json -> '$.page.pageName', json_extract(json, '$.cards[0].title') FROM ads WHERE body = 'no.path'";
  expect([...readLiterals(sql).jsonFields].sort()).toEqual(['cards', 'end date', 'headline', 'lastSeenAt', 'page']);
});

test('the literals of any SQL statement are read in linear time', () => {
  for (const part of ["'", "''", '"', '[', '`', '/*', '*', '--', '(', "x'", 'a', "'a' ", '->', '%'])
    readLiterals(part.repeat(20_000 / part.length));
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
      expect(readLiterals(`SELECT '${text.replaceAll("'", "''")}'`).comparedTexts).toContain(text.toLowerCase());
    }),
  );
});
