import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { SqlPool } from '../../../src/dataset/sql/pool.ts';
import { isWord } from '../../../src/views/safe-text.ts';
import { createAds, createSnapshot } from './snapshots.ts';

const pool = new SqlPool();
afterAll(() => pool.close());
const snapshot = createSnapshot('tenant', createAds(3));

/** Runs a statement that must fail and returns its error message. */
const readError = (sql: string): Promise<string> =>
  pool.query(snapshot, { sql }).then(
    () => 'no error',
    (error: Error) => error.message,
  );

describe('SQL errors', () => {
  test.each([
    [
      'a text in double quotes',
      'SELECT * FROM ads WHERE pageName = "EWA"',
      `Double quotes mark a column, and there is no column "EWA". Write a text in single quotes: "'EWA'".`,
    ],
    [
      'a misspelt column',
      'SELECT startDate FROM ads',
      'There is no column startDate. The nearest is startedAt, of ads. If it is a text, write it in single quotes.',
    ],
    [
      'a column of another table',
      'SELECT a.country FROM ads a',
      'There is no column a.country here. country is a column of ad_countries and ad_reach: write the name of its table before it. If the table is missing, add JOIN ad_countries USING (id).',
    ],
    [
      'the column countries, which only pages have',
      "SELECT id FROM ads WHERE countries LIKE '%US%'",
      'There is no column countries here. countries is a column of pages: add JOIN pages USING (pageId). The countries of an ad are in ad_countries: JOIN ad_countries USING (id).',
    ],
    [
      'the column reach, which ads have under another name',
      'SELECT reach FROM ads',
      'There is no column reach here. reach is a column of ad_reach: add JOIN ad_reach USING (id). The total reach of an ad is ads.audienceReach.',
    ],
    ['a misspelt table', 'SELECT * FROM adcountries', 'There is no table adcountries. The nearest is ad_countries.'],
    [
      'an unknown table that resembles no other table',
      'SELECT * FROM advertisers',
      'There is no table advertisers. The tables are ads, ad_countries, ad_platforms, ad_reach, ad_cards, ad_versions, pages, gatherings, gathered, labels, months and current_ads.',
    ],
    [
      'a column that several tables have',
      'SELECT id FROM ads JOIN ad_countries',
      'Several tables of the statement have a column id: write the name of its table before it.',
    ],
    [
      'a sum of integers that exceeds 64 bits',
      'SELECT sum(9223372036854775807) FROM ads',
      'An integer is outside the range of 64 bits. For a large sum, write total(x) instead of sum(x): its result is a decimal number.',
    ],
  ])('the error about an SQL statement with %s suggests how to correct the statement', async (_, sql, expected) => {
    expect(await readError(sql)).toBe(expected);
  });

  test.each(['country', 'platform', 'number', 'pageLikes', 'newest', 'gatheringId', 'label', 'month'])(
    'a statement about ads that selects %s works with the join that its error suggests',
    async (column) => {
      const error = await readError(`SELECT ${column} FROM ads`);
      const join = /: add (JOIN .*)\.$/.exec(error)?.[1];
      expect(join).toBeDefined();
      await expect(pool.query(snapshot, { sql: `SELECT ${column} FROM ads ${join}` })).resolves.toBeDefined();
    },
  );

  test('an SQL error lists all columns only if no column has a similar name', async () => {
    for (const name of ['impressions', 'Stridemoor'])
      expect(await readError(`SELECT id FROM ads WHERE pageName = ${name}`)).toMatch(
        new RegExp(
          `^There is no column ${name}\\. If it is a text, write it in single quotes\\. Tables and columns: ads\\(id, pageId, .*; current_ads\\(the columns of ads\\)\\.$`,
        ),
      );
    for (const sql of ['DELETE FROM ads', '', 'SELECT * FROM nothing_like_it'])
      expect((await readError(sql)).length).toBeLessThan(400);
  });

  test('the error about an SQL statement that exceeds the time limit says how to make the statement faster', async () => {
    const hastyPool = new SqlPool({ limits: { maxStatementMs: 300 } });
    const endless = 'WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n';
    await expect(hastyPool.query(snapshot, { sql: endless })).rejects.toThrow(
      'The statement was stopped after 0.3 seconds. Filter rows first (WHERE), take the distinct rows first (SELECT DISTINCT in a subquery), and compute a subquery once (WITH name AS MATERIALIZED (SELECT …)).',
    );
    await hastyPool.close();
  });

  test('an SQL error puts quotes around every name that could be mistaken for a sentence', async () => {
    const name = fc.string({ unit: fc.constantFrom(...'ab "\'.\n`[]{}:'), minLength: 1, maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(name, async (text) => {
        const quoted = `"${text.replaceAll('"', '""')}"`;
        for (const sql of [`SELECT ${quoted} FROM ads`, `SELECT ads.${quoted} FROM ads`, `SELECT * FROM ${quoted}`]) {
          const error = await readError(sql);
          if (!isWord(text.trim()) && text.trim().length > 1) expect(error.replace(/"[^"]*"/g, '')).not.toContain(text);
          expect(error).not.toContain('\n');
        }
      }),
      { numRuns: 60 },
    );
  });
});
