import fc from 'fast-check';
import { expect } from 'vitest';
import { libraryTest as test } from './support/fixtures.ts';
import { createUuid, type LibraryServer } from './support/library-server.ts';

const quoteCell = (text: string) => `"${text.replaceAll('"', '""')}"`;
const padTo2Digits = (number: number) => String(number).padStart(2, '0');

let runNumber = 0;

/** Imports a table with these values in one column. Returns the report and the resulting values of an ad field. */
async function importColumn(libraryServer: LibraryServer, column: string, values: readonly string[], field: string) {
  const advertiser = `Run ${runNumber++}`;
  const rows = values.map(
    (value, index) => `${createUuid(1000 * runNumber + index)},${advertiser},Ad,${quoteCell(value)}`,
  );
  const report = await libraryServer.importRecords(
    ['id,advertiser,headline', ...rows].join('\n').replace('headline', `headline,${column}`),
  );
  const { items } = await libraryServer.searchAll({
    advertiserExact: [advertiser],
    sort: 'duplicates',
    order: 'asc',
    limit: 100,
  });
  const fieldValueById = new Map(items.map((ad) => [ad.id, ad[field]]));
  return { report, fieldValues: values.map((_, index) => fieldValueById.get(createUuid(1000 * runNumber + index))) };
}

const dayArbitrary = fc.record({
  year: fc.integer({ min: 2006, max: 2026 }),
  month: fc.integer({ min: 1, max: 12 }),
  day: fc.integer({ min: 1, max: 28 }),
});
type Day = { year: number; month: number; day: number };
const toIsoDateTime = ({ year, month, day }: Day) =>
  `${year}-${padTo2Digits(month)}-${padTo2Digits(day)}T00:00:00.000Z`;

/** Common notations of dates. `isUnambiguous` returns true if a date in the notation has only one meaning. */
const notations: [name: string, write: (date: Day) => string, isUnambiguous: (date: Day) => boolean][] = [
  ['ISO 8601', ({ year, month, day }) => `${year}-${padTo2Digits(month)}-${padTo2Digits(day)}`, () => true],
  [
    'ISO 8601 with a time',
    ({ year, month, day }) => `${year}-${padTo2Digits(month)}-${padTo2Digits(day)} 00:00:00+0000`,
    () => true,
  ],
  [
    'day, month and year with dots',
    ({ year, month, day }) => `${padTo2Digits(day)}.${padTo2Digits(month)}.${year}`,
    () => true,
  ],
  [
    'day, month and short year with dots',
    ({ year, month, day }) => `${day}.${month}.${padTo2Digits(year % 100)}`,
    // A day from 18 to 28 may also be a two-digit year.
    ({ day }) => day < 18,
  ],
  [
    'the day first',
    ({ year, month, day }) => `${padTo2Digits(day)}/${padTo2Digits(month)}/${year}`,
    ({ day }) => day > 12,
  ],
  ['the month first', ({ year, month, day }) => `${month}/${day}/${year}`, ({ day }) => day > 12],
  ['the month first and a time', ({ year, month, day }) => `${month}/${day}/${year} 12:00 AM`, ({ day }) => day > 12],
  [
    'the day first, with dashes',
    ({ year, month, day }) => `${padTo2Digits(day)}-${padTo2Digits(month)}-${year}`,
    ({ day }) => day > 12,
  ],
  ['unix seconds', (date) => String(Date.parse(toIsoDateTime(date)) / 1000), () => true],
  ['unix milliseconds', (date) => String(Date.parse(toIsoDateTime(date))), () => true],
  [
    'seconds as Python writes them in a column with gaps',
    (date) => `${Date.parse(toIsoDateTime(date)) / 1000}.0`,
    () => true,
  ],
  [
    'English',
    (date) => new Date(toIsoDateTime(date)).toLocaleDateString('en-US', { dateStyle: 'long', timeZone: 'UTC' }),
    () => true,
  ],
  [
    'German',
    (date) => new Date(toIsoDateTime(date)).toLocaleDateString('de', { dateStyle: 'long', timeZone: 'UTC' }),
    () => true,
  ],
  [
    'Spanish',
    (date) => new Date(toIsoDateTime(date)).toLocaleDateString('es', { dateStyle: 'long', timeZone: 'UTC' }),
    () => true,
  ],
  [
    'French',
    (date) => new Date(toIsoDateTime(date)).toLocaleDateString('fr', { dateStyle: 'medium', timeZone: 'UTC' }),
    () => true,
  ],
  [
    'Japanese',
    (date) => new Date(toIsoDateTime(date)).toLocaleDateString('ja', { dateStyle: 'long', timeZone: 'UTC' }),
    () => true,
  ],
  ['Korean', (date) => new Date(toIsoDateTime(date)).toLocaleDateString('ko', { timeZone: 'UTC' }), () => true],
  ['the text of a JavaScript date', (date) => `${new Date(toIsoDateTime(date)).toUTCString()}`, () => true],
];

test('`library import` either reads every date of a column correctly or rejects the column as ambiguous', async ({
  libraryServer,
}) => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...notations),
      fc.array(dayArbitrary, { minLength: 1, maxLength: 6 }),
      async ([, write, isUnambiguous], days) => {
        const { report, fieldValues } = await importColumn(libraryServer, 'start', days.map(write), 'startedAt');
        const isColumnAmbiguous =
          days.some((date) => !isUnambiguous(date) && date.day !== date.month) && !days.some(isUnambiguous);
        if (isColumnAmbiguous) {
          expect(report).toMatchObject({ ads: 0, skipped: 1 });
          expect(report.problems[0]?.problem).toMatch(
            /^the column "start" has days such as .*, which may be .* or .*;/,
          );
        } else expect(fieldValues).toEqual(days.map(toIsoDateTime));
      },
    ),
    { numRuns: 80 },
  );
});

test('`library import` reads a date with dots as day first, even next to dates with the month first', async ({
  libraryServer,
}) => {
  const { fieldValues } = await importColumn(
    libraryServer,
    'start',
    ['05.04.2026', '12/31/2026', '01/02/2026'],
    'startedAt',
  );
  expect(fieldValues).toEqual(['2026-04-05', '2026-12-31', '2026-01-02'].map((date) => `${date}T00:00:00.000Z`));
});

test.for(['1234', '45662', '2026-02-30', 'soon', 'Jan 2025', '31.31.2026', '1970-01-01', '0x68000000'])(
  '`library import` rejects a row with the invalid date "%s" and shows the line number of the row',
  async (value, { libraryServer }) => {
    const { report } = await importColumn(libraryServer, 'start', ['2026-01-05', value], 'startedAt');
    expect(report).toMatchObject({ ads: 1, skipped: 1 });
    expect(report.problems[0]).toMatchObject({
      line: 3,
      problem: expect.stringMatching(/^startedAt: .* is not a date/),
    });
  },
);

const groupThousands = (digits: string, sign: string) => digits.replace(/\B(?=(\d{3})+$)/g, sign);
/** The thousands and decimal separators of several languages. */
const numberNotations: [name: string, thousands: string, decimal: string][] = [
  ['English', ',', '.'],
  ['German', '.', ','],
  ['French', '\u202f', ','],
  ['Swedish', '\u00a0', ','],
  ['Swiss', '’', '.'],
  ['Swiss typewriter', "'", '.'],
  ['SI', ' ', '.'],
  ['without groups', '', '.'],
];
const decorations: ((text: string) => string)[] = [
  (text) => text,
  (text) => `$${text}`,
  (text) => `${text} €`,
  (text) => `EUR ${text}`,
  (text) => ` ${text} `,
];

test('`library import` either reads every amount of a column correctly or rejects the column as ambiguous', async ({
  libraryServer,
}) => {
  const centsArbitrary = fc.integer({ min: 0, max: 9_999_999_99 });
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...numberNotations),
      fc.array(fc.tuple(centsArbitrary, fc.boolean(), fc.constantFrom(...decorations)), { minLength: 1, maxLength: 6 }),
      async ([, thousands, decimal], amounts) => {
        const numbers = amounts.map(([cents, hasCents]) => (hasCents ? cents / 100 : Math.floor(cents / 100)));
        const texts = amounts.map(([cents, hasCents, decorate], index) => {
          const wholePart = groupThousands(String(Math.floor(cents / 100)), thousands);
          return decorate(
            hasCents ? `${wholePart}${decimal}${padTo2Digits((amounts[index]?.[0] ?? 0) % 100)}` : wholePart,
          );
        });
        const { report, fieldValues } = await importColumn(libraryServer, 'spend', texts, 'adSpendMax');
        if (report.ads > 0) expect(fieldValues).toEqual(numbers);
        else
          expect(report.problems[0]?.problem).toMatch(
            /^the column "spend" has numbers such as .*, which may be .* or /,
          );
        // Only a dot before three digits is ambiguous.
        if (thousands !== '.') expect(report.ads).toBe(numbers.length);
      },
    ),
    { numRuns: 80 },
  );
});

test.for<[column: string, values: string[], field: string, expected: unknown[]]>([
  ['reach', ['1.234', '12.000', '999'], 'audienceReach', [1234, 12_000, 999]],
  ['reach', ['1.000', '200'], 'audienceReach', [1000, 200]],
  ['reach', ['1,234', '12,000'], 'audienceReach', [1234, 12_000]],
  ['reach', ['12K', '1.5M', '2 Mio.'], 'audienceReach', [12_000, 1_500_000, 2_000_000]],
  ['reach', ['12,34,567', '1,00,000'], 'audienceReach', [1_234_567, 100_000]],
  ['copies', ['12.0', '5.0'], 'duplicates', [12, 5]],
  ['spend', ['1,999', '$199'], 'adSpendMin', [1999, 199]],
  ['spend', ['100-199', '€1K – €1.5K', '>1M', '<100'], 'adSpendMin', [100, 1000, 1_000_000, undefined]],
  ['spend', ['1M+', '€1.5K +', '+7'], 'adSpendMin', [1_000_000, 1500, 7]],
  ['spend', ['1e5', '1E+05'], 'adSpendMax', [100_000, 100_000]],
  ['spend', ['NA', 'n/a', '-', 'None', '7'], 'adSpendMax', [undefined, undefined, undefined, undefined, 7]],
])(
  '`library import` reads the column "%s" with the values %j into the %s field as %j',
  async ([column, values, field, expected], { libraryServer }) => {
    expect((await importColumn(libraryServer, column, values, field)).fieldValues).toEqual(expected);
  },
);

test.for<[range: string, min: number, max: number]>([
  ['10-15K', 10_000, 15_000],
  ['10 – 15k', 10_000, 15_000],
  ['€10—€15K', 10_000, 15_000],
  ['$10 to $15 K', 10_000, 15_000],
  ['10 - 15K EUR', 10_000, 15_000],
  ['10 € - 15K €', 10_000, 15_000],
  ['1-1.5M', 1_000_000, 1_500_000],
  ['1.5-2M', 1_500_000, 2_000_000],
  ['100-999 Tsd.', 100_000, 999_000],
  ['500-1,000K', 500_000, 1_000_000],
  ['0-1K', 0, 1000],
  ['1K-1.5M', 1000, 1_500_000],
  // The suffix cannot apply to the lower bound, because 900K is above 1K.
  ['900-1K', 900, 1000],
  ['1-1K', 1, 1000],
  ['1,200-2K', 1200, 2000],
  ['10-15,000', 10, 15_000],
  ['10,000-15,000', 10_000, 15_000],
])(
  '`library import` reads the amount spent "%s" as the range from %d to %d',
  async ([range, min, max], { libraryServer }) => {
    const { report, fieldValues } = await importColumn(libraryServer, 'spend', [range], 'adSpendMin');
    expect(report.problems).toEqual([]);
    expect(fieldValues).toEqual([min]);
    expect((await importColumn(libraryServer, 'spend', [range], 'adSpendMax')).fieldValues).toEqual([max]);
  },
);

test('`library import` reads the range "1.5-2K" as 1,500 to 2,000', async ({ libraryServer }) => {
  const { fieldValues } = await importColumn(libraryServer, 'impressions', ['1.5-2K', '900'], 'impressionsMin');
  expect(fieldValues).toEqual([1500, 900]);
});

test.for([
  ['reach', '0x10', /^audienceReach: "0x10" is not a whole number/],
  ['reach', '-5', /^audienceReach: "-5" is below 0/],
  ['copies', '1.5', /^duplicates: "1.5" is not a whole number/],
  ['spend', '(12)', /^spend: "\(12\)" is below 0/],
  ['spend', '12%', /^spend: "12%" is not a number/],
  ['reach', 'lots', /^audienceReach: "lots" is not a whole number/],
] as const)(
  '`library import` rejects a row whose column "%s" contains the invalid value "%s"',
  async ([column, value, problem], { libraryServer }) => {
    const { report } = await importColumn(libraryServer, column, [value, '7'], 'audienceReach');
    expect(report).toMatchObject({ ads: 1, problems: [{ line: 2, problem: expect.stringMatching(problem) }] });
  },
);

test.for([
  ['spend', ['1.234', '12.500'], /^the column "spend" has numbers such as 1.234, which may be 1.234 or 1234;/],
  ['reach', ['12.000', '5.000'], /^the column "reach" has numbers such as 12.000, which may be 12 or 12000;/],
  ['spend', ['1.234,50', '1,234.50'], /^the column "spend" has numbers such as 1.234,50 and 1,234.50, which cannot/],
] as const)(
  '`library import` rejects a table if its column "%s" contains ambiguous or contradictory values such as %j',
  async ([column, values, problem], { libraryServer }) => {
    const { report } = await importColumn(libraryServer, column, values, 'audienceReach');
    expect(report).toMatchObject({ ads: 0, pages: 0, problems: [{ problem: expect.stringMatching(problem) }] });
  },
);

test.for(['/', '.', '-'])(
  'the import reads dates that begin with a two-digit year and have the separator "%s", unless they are ambiguous',
  async (separator, { libraryServer }) => {
    const write = (dates: string[]) => dates.map((date) => date.replaceAll('-', separator));
    const { fieldValues } = await importColumn(libraryServer, 'start', write(['26-01-05', '26-01-31']), 'startedAt');
    expect(fieldValues).toEqual(['2026-01-05T00:00:00.000Z', '2026-01-31T00:00:00.000Z']);
    const { report } = await importColumn(libraryServer, 'start', write(['26-01-05', '26-02-13']), 'startedAt');
    expect(report).toMatchObject({
      ads: 0,
      problems: [{ problem: expect.stringMatching(/26 January 2005.*5 January 2026|5 January 2026.*26 January 2005/) }],
    });
  },
);

test('`library import` infers the order of day and month from all dates of a JSON file together', async ({
  libraryServer,
}) => {
  const createRecord = (id: number, start: string) => ({ ad_archive_id: String(id), ad_delivery_start_time: start });
  const ambiguousReport = await libraryServer.importRecords(createRecord(1, '05/04/2026'));
  expect(ambiguousReport).toMatchObject({
    ads: 0,
    problems: [{ problem: expect.stringMatching(/5 April 2026 or 4 May 2026/) }],
  });
  expect(await libraryServer.importRecords(createRecord(1, '05/04/2026'), createRecord(2, '31/03/2026'))).toMatchObject(
    {
      ads: 2,
      notes: [expect.any(String)],
    },
  );
  const { items } = await libraryServer.searchAll({});
  expect(items.map(({ startedAt }) => startedAt.slice(0, 10))).toEqual(['2026-04-05', '2026-03-31']);
});

/** Formats a JSON value as a Python literal. */
const toPython = (value: unknown): string => {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') {
    const escapedText = JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"').replaceAll('\\/', '/');
    return value.includes("'") && !value.includes('"') ? `"${escapedText}"` : `'${escapedText.replaceAll("'", "\\'")}'`;
  }
  if (Array.isArray(value)) return `[${value.map(toPython).join(', ')}]`;
  return `{${Object.entries(value as object)
    .map(([key, child]) => `${toPython(key)}: ${toPython(child)}`)
    .join(', ')}}`;
};

test('`library import` reads JSON objects that are written in the notation of Python', async ({ libraryServer }) => {
  const value = fc.jsonValue({ maxDepth: 3, noUnicodeString: false }).map((json) => JSON.parse(JSON.stringify(json)));
  await fc.assert(
    fc.asyncProperty(value, fc.string({ unit: 'grapheme' }), async (extra, body) => {
      const record = {
        ad_archive_id: String(++runNumber),
        snapshot: { title: 'T', body: { text: `x${body}` }, extra },
      };
      await libraryServer.importRecords(record);
      const id = (await libraryServer.searchAll({ query: 'T' })).items.find(
        ({ adArchiveId }) => adArchiveId === String(runNumber),
      )?.id;
      const { body: adFromJson } = await libraryServer.get(`/v1/ads/${id}`);
      await libraryServer.importRecords(toPython(record));
      expect((await libraryServer.get(`/v1/ads/${id}`)).body).toEqual(adFromJson);
      await libraryServer.importRecords(`ad_archive_id,snapshot\n${runNumber},${quoteCell(toPython(record.snapshot))}`);
      expect((await libraryServer.get(`/v1/ads/${id}`)).body).toEqual(adFromJson);
    }),
    { numRuns: 25 },
  );
});

/** Unicode spaces that JSON does not allow between tokens. */
const unusualSpaces = [...'\u000b\u000c\u00a0\u1680\u2000\u2003\u2009\u2028\u2029\u202f\u205f\u3000\ufeff'];

test('`library import` accepts JSON with unusual white space between tokens', async ({ libraryServer }) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom(...unusualSpaces), { minLength: 5, maxLength: 5 }),
      fc.boolean(),
      async ([before = '', afterBracket = '', afterComma = '', afterColon = '', atEnd = ''], isList) => {
        const advertiser = `Run ${runNumber++}`;
        const createRecord = (index: number) =>
          `{"id":${afterColon}"${createUuid(1000 * runNumber + index)}",${afterComma}"pageName":"${advertiser}","body":"a\u2028b"}`;
        const records = [createRecord(0), createRecord(1)];
        const text = isList
          ? `${before}[\n${afterBracket}${records.join(`,${afterComma}\n`)}\n]${atEnd}`
          : `${before}${records.join(`${afterComma}\n`)}${atEnd}\n`;
        await libraryServer.importRecords(text);
        const { items } = await libraryServer.searchAll({ advertiserExact: [advertiser], limit: 100 });
        expect(items).toHaveLength(2);
        expect(items[0]?.body).toBe('a\u2028b');
      },
    ),
  );
});

test('`library import` removes an access token from a URL, no matter how the token is written', async ({
  libraryServer,
}) => {
  const names = ['access_token', 'ACCESS_TOKEN', 'accessToken', 'access-token', 'access%5Ftoken', 'access_token[]'];
  const separators = ['&', '&amp;', '&#38;', '#'];
  const urls = ['fb_access_token', ...names].flatMap((name) =>
    separators.map((separator) => `https://x.example/?a=1${separator}${name}=SECRET${separator}b=2`),
  );
  const { fieldValues } = await importColumn(libraryServer, 'note', urls, 'note');
  const { items } = await libraryServer.searchAll({ limit: 100 });
  expect(JSON.stringify([fieldValues, items])).not.toContain('SECRET');
});
