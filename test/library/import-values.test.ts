import fc from 'fast-check';
import { expect } from 'vitest';
import { libraryTest as test } from './support/fixtures.ts';
import { type ServedLibrary, uuid } from './support/served-library.ts';

const cell = (text: string) => `"${text.replaceAll('"', '""')}"`;
const two = (number: number) => String(number).padStart(2, '0');

let run = 0;

/** Imports a table with the values in one column, and returns what the ads have in a field. */
async function importColumn(served: ServedLibrary, column: string, values: readonly string[], field: string) {
  const advertiser = `Run ${run++}`;
  const rows = values.map((value, index) => `${uuid(1000 * run + index)},${advertiser},Ad,${cell(value)}`);
  const report = await served.importRecords(
    ['id,advertiser,headline', ...rows].join('\n').replace('headline', `headline,${column}`),
  );
  const { items } = await served.searchAll({
    advertiserExact: [advertiser],
    sort: 'duplicates',
    order: 'asc',
    limit: 100,
  });
  const byId = new Map(items.map((ad) => [ad.id, ad[field]]));
  return { report, read: values.map((_, index) => byId.get(uuid(1000 * run + index))) };
}

const day = fc.record({
  year: fc.integer({ min: 2006, max: 2026 }),
  month: fc.integer({ min: 1, max: 12 }),
  day: fc.integer({ min: 1, max: 28 }),
});
type Day = { year: number; month: number; day: number };
const isoOf = ({ year, month, day }: Day) => `${year}-${two(month)}-${two(day)}T00:00:00.000Z`;

/** A notation that any program may use for a whole column, and whether one value alone tells how it is meant. */
const notations: [name: string, write: (date: Day) => string, isClear: (date: Day) => boolean][] = [
  ['ISO 8601', ({ year, month, day }) => `${year}-${two(month)}-${two(day)}`, () => true],
  ['ISO 8601 with a time', ({ year, month, day }) => `${year}-${two(month)}-${two(day)} 00:00:00+0000`, () => true],
  ['dots', ({ year, month, day }) => `${two(day)}.${two(month)}.${year}`, () => true],
  ['short dots', ({ year, month, day }) => `${day}.${month}.${two(year % 100)}`, () => true],
  ['the day first', ({ year, month, day }) => `${two(day)}/${two(month)}/${year}`, ({ day }) => day > 12],
  ['the month first', ({ year, month, day }) => `${month}/${day}/${year}`, ({ day }) => day > 12],
  ['the month first and a time', ({ year, month, day }) => `${month}/${day}/${year} 12:00 AM`, ({ day }) => day > 12],
  ['dashes', ({ year, month, day }) => `${two(day)}-${two(month)}-${year}`, ({ day }) => day > 12],
  ['unix seconds', (date) => String(Date.parse(isoOf(date)) / 1000), () => true],
  ['unix milliseconds', (date) => String(Date.parse(isoOf(date))), () => true],
  ['seconds as Python writes them in a column with gaps', (date) => `${Date.parse(isoOf(date)) / 1000}.0`, () => true],
  [
    'English',
    (date) => new Date(isoOf(date)).toLocaleDateString('en-US', { dateStyle: 'long', timeZone: 'UTC' }),
    () => true,
  ],
  [
    'German',
    (date) => new Date(isoOf(date)).toLocaleDateString('de', { dateStyle: 'long', timeZone: 'UTC' }),
    () => true,
  ],
  [
    'Spanish',
    (date) => new Date(isoOf(date)).toLocaleDateString('es', { dateStyle: 'long', timeZone: 'UTC' }),
    () => true,
  ],
  [
    'French',
    (date) => new Date(isoOf(date)).toLocaleDateString('fr', { dateStyle: 'medium', timeZone: 'UTC' }),
    () => true,
  ],
  [
    'Japanese',
    (date) => new Date(isoOf(date)).toLocaleDateString('ja', { dateStyle: 'long', timeZone: 'UTC' }),
    () => true,
  ],
  ['Korean', (date) => new Date(isoOf(date)).toLocaleDateString('ko', { timeZone: 'UTC' }), () => true],
  ['a JavaScript date', (date) => `${new Date(isoOf(date)).toUTCString()}`, () => true],
];

test('dates of one column are read as they were written, or the column is refused with both readings', async ({
  served,
}) => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...notations),
      fc.array(day, { minLength: 1, maxLength: 6 }),
      async ([, write, isClear], days) => {
        const { report, read } = await importColumn(served, 'start', days.map(write), 'startedAt');
        const isUnclear = days.some((date) => !isClear(date) && date.day !== date.month) && !days.some(isClear);
        if (isUnclear) {
          expect(report).toMatchObject({ ads: 0, skipped: 1 });
          expect(report.problems[0]?.problem).toMatch(
            /^the column "start" has days such as .*, which may be .* or .*;/,
          );
        } else expect(read).toEqual(days.map(isoOf));
      },
    ),
    { numRuns: 80 },
  );
});

test('dots mean the day first, whatever other days of the column show', async ({ served }) => {
  const { read } = await importColumn(served, 'start', ['05.04.2026', '12/31/2026', '01/02/2026'], 'startedAt');
  expect(read).toEqual(['2026-04-05', '2026-12-31', '2026-01-02'].map((date) => `${date}T00:00:00.000Z`));
});

test.for(['1234', '45662', '2026-02-30', 'soon', 'Jan 2025', '31.31.2026', '1970-01-01', '0x68000000'])(
  'a row whose date is %s is refused and named',
  async (value, { served }) => {
    const { report } = await importColumn(served, 'start', ['2026-01-05', value], 'startedAt');
    expect(report).toMatchObject({ ads: 1, skipped: 1 });
    expect(report.problems[0]).toMatchObject({
      line: 3,
      problem: expect.stringMatching(/^startedAt: .* is not a date/),
    });
  },
);

const groupBy3 = (digits: string, sign: string) => digits.replace(/\B(?=(\d{3})+$)/g, sign);
/** How a country or a program writes the thousands and the decimals of a number. */
const locales: [name: string, thousands: string, decimal: string][] = [
  ['English', ',', '.'],
  ['German', '.', ','],
  ['French', '\u202f', ','],
  ['Swedish', '\u00a0', ','],
  ['Swiss', '’', '.'],
  ['Swiss typewriter', "'", '.'],
  ['SI', ' ', '.'],
  ['a program', '', '.'],
];
const around: ((text: string) => string)[] = [
  (text) => text,
  (text) => `$${text}`,
  (text) => `${text} €`,
  (text) => `EUR ${text}`,
  (text) => ` ${text} `,
];

test('amounts of one column are read as they were written, or the column is refused with both readings', async ({
  served,
}) => {
  const cents = fc.integer({ min: 0, max: 9_999_999_99 });
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...locales),
      fc.array(fc.tuple(cents, fc.boolean(), fc.constantFrom(...around)), { minLength: 1, maxLength: 6 }),
      async ([, thousands, decimal], amounts) => {
        const numbers = amounts.map(([cents, hasCents]) => (hasCents ? cents / 100 : Math.floor(cents / 100)));
        const texts = amounts.map(([cents, hasCents, decorate], index) => {
          const whole = groupBy3(String(Math.floor(cents / 100)), thousands);
          return decorate(hasCents ? `${whole}${decimal}${two((amounts[index]?.[0] ?? 0) % 100)}` : whole);
        });
        const { report, read } = await importColumn(served, 'spend', texts, 'adSpendMax');
        if (report.ads > 0) expect(read).toEqual(numbers);
        else
          expect(report.problems[0]?.problem).toMatch(
            /^the column "spend" has numbers such as .*, which may be .* or /,
          );
        // Only a point before three digits is unclear.
        if (thousands !== '.') expect(report.ads).toBe(numbers.length);
      },
    ),
    { numRuns: 80 },
  );
});

test.for<[column: string, values: string[], field: string, read: unknown[]]>([
  ['reach', ['1.234', '12.000', '999'], 'audienceReach', [1234, 12_000, 999]],
  ['reach', ['1,234', '12,000'], 'audienceReach', [1234, 12_000]],
  ['reach', ['12K', '1.5M', '2 Mio.'], 'audienceReach', [12_000, 1_500_000, 2_000_000]],
  ['reach', ['12,34,567', '1,00,000'], 'audienceReach', [1_234_567, 100_000]],
  ['copies', ['12.0', '5.0'], 'duplicates', [12, 5]],
  ['spend', ['1,999', '$199'], 'adSpendMin', [1999, 199]],
  ['spend', ['100-199', '€1K – €1.5K', '>1M', '<100'], 'adSpendMin', [100, 1000, 1_000_000, undefined]],
  ['spend', ['1e5', '1E+05'], 'adSpendMax', [100_000, 100_000]],
  ['spend', ['NA', 'n/a', '-', 'None', '7'], 'adSpendMax', [undefined, undefined, undefined, undefined, 7]],
])('the column %s with %j is read as %s = %j', async ([column, values, field, read], { served }) => {
  expect((await importColumn(served, column, values, field)).read).toEqual(read);
});

test.for([
  ['reach', '0x10', /^audienceReach: "0x10" is not a whole number/],
  ['reach', '-5', /^audienceReach: "-5" is below 0/],
  ['copies', '1.5', /^duplicates: "1.5" is not a whole number/],
  ['spend', '(12)', /^spend: "\(12\)" is below 0/],
  ['spend', '12%', /^spend: "12%" is not a number/],
  ['reach', 'lots', /^audienceReach: "lots" is not a whole number/],
] as const)('a row whose %s is %s is refused and named', async ([column, value, problem], { served }) => {
  const { report } = await importColumn(served, column, [value, '7'], 'audienceReach');
  expect(report).toMatchObject({ ads: 1, problems: [{ line: 2, problem: expect.stringMatching(problem) }] });
});

test.for([
  ['spend', ['1.234', '12.500'], /^the column "spend" has numbers such as 1.234, which may be 1.234 or 1234;/],
  ['reach', ['12.000', '5.000'], /^the column "reach" has numbers such as 12.000, which may be 12 or 12000;/],
  ['spend', ['1.234,50', '1,234.50'], /^the column "spend" has numbers such as 1.234,50 and 1,234.50, which cannot/],
] as const)(
  'the column %s with %j is refused, and nothing is stored',
  async ([column, values, problem], { served }) => {
    const { report } = await importColumn(served, column, values, 'audienceReach');
    expect(report).toMatchObject({ ads: 0, pages: 0, problems: [{ problem: expect.stringMatching(problem) }] });
  },
);

test('dates and numbers of archives in JSON are decided by their keys, too', async ({ served }) => {
  const record = (id: number, start: string) => ({ ad_archive_id: String(id), ad_delivery_start_time: start });
  const unclear = await served.importRecords(record(1, '05/04/2026'));
  expect(unclear).toMatchObject({
    ads: 0,
    problems: [{ problem: expect.stringMatching(/5 April 2026 or 4 May 2026/) }],
  });
  expect(await served.importRecords(record(1, '05/04/2026'), record(2, '31/03/2026'))).toMatchObject({
    ads: 2,
    notes: [expect.any(String)],
  });
  const { items } = await served.searchAll({});
  expect(items.map(({ startedAt }) => startedAt.slice(0, 10))).toEqual(['2026-04-05', '2026-03-31']);
});

const pythonOf = (value: unknown): string => {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') {
    const inside = JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"').replaceAll('\\/', '/');
    return value.includes("'") && !value.includes('"') ? `"${inside}"` : `'${inside.replaceAll("'", "\\'")}'`;
  }
  if (Array.isArray(value)) return `[${value.map(pythonOf).join(', ')}]`;
  return `{${Object.entries(value as object)
    .map(([key, one]) => `${pythonOf(key)}: ${pythonOf(one)}`)
    .join(', ')}}`;
};

test('objects in the notation of Python are read as in JSON, in lines and in cells', async ({ served }) => {
  const value = fc.jsonValue({ maxDepth: 3, noUnicodeString: false }).map((one) => JSON.parse(JSON.stringify(one)));
  await fc.assert(
    fc.asyncProperty(value, fc.string({ unit: 'grapheme' }), async (extra, body) => {
      const record = { ad_archive_id: String(++run), snapshot: { title: 'T', body: { text: `x${body}` }, extra } };
      await served.importRecords(record);
      const id = (await served.searchAll({ query: 'T' })).items.find(
        ({ adArchiveId }) => adArchiveId === String(run),
      )?.id;
      const { body: asJson } = await served.get(`/v1/ads/${id}`);
      await served.importRecords(pythonOf(record));
      expect((await served.get(`/v1/ads/${id}`)).body).toEqual(asJson);
      await served.importRecords(`ad_archive_id,snapshot\n${run},${cell(pythonOf(record.snapshot))}`);
      expect((await served.get(`/v1/ads/${id}`)).body).toEqual(asJson);
    }),
    { numRuns: 25 },
  );
});
