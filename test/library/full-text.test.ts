import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { createUuid, startLibraryServer } from './support/library-server.ts';

const libraryServer = await startLibraryServer();
afterAll(() => libraryServer.close());

const searchIds = async (filters: Record<string, unknown>): Promise<string[]> =>
  (await libraryServer.searchAll(filters)).items.map(({ id }) => id);

/** The ad texts that the test searches, one for each language. */
const adTexts = {
  korean: '매일 촉촉한 수분 세럼을 만나보세요',
  japanese: 'すっきりした後味のコーヒー豆、カバー付き',
  chinese: '全館免運，今日特價',
  arabic: 'عطرٌ فاخر من الواحة، هديّة جميلة',
  hindi: 'राजस्थान के कारीगरों की क़ालीन',
  thai: 'สบู่สมุนไพรไทย',
  german: 'Jetzt für die Straße: Füße warm, 50 % günstiger',
  french: 'Crème légère à l’eau de rose',
  turkish: 'İLK HASAT ÇAY',
  english: 'Running shoes with free shipping, no returns needed',
  hidden: 'Sum\u200bmer sa\u00adle 𝐁𝐎𝐋𝐃',
  emoji: '✔\ufe0fGratis 1\ufe0f\u20e3Schritt ❤\ufe0fListo',
  variant: '葛\u{e0100}飾区',
  hebrew: 'חופשה בתל־אביב',
  persian: 'کتاب ۵۰',
  european: 'Łazienka Køkken Điện ÆSOP мʼясо',
  hyphen: 'Scarpe e borse per iPhone',
};
const names = Object.keys(adTexts);
const pageId = 'copies';
await libraryServer.importRecords(
  ...Object.values(adTexts).map((body, index) => ({ id: createUuid(index), body, pageId })),
);

/** Queries that must find only the ad text in their language. */
const queriesByName: Record<string, string[]> = {
  korean: ['수분', '촉촉', '촉', '세럼 매일'],
  japanese: ['後味', '味', 'コーヒー', 'カバー', 'ｶﾊﾞｰ'],
  chinese: ['特價'],
  arabic: ['عطر', 'هدية'],
  hindi: ['कारीगरों', 'कारीगर', 'क़ालीन'],
  thai: ['สมุนไพร'],
  german: ['strasse', 'FUSSE 50'],
  french: ['creme'],
  turkish: ['ilk çay'],
  english: ['run', '"free shipping"', 'shoes -boots'],
  hidden: ['summer sale bold'],
  emoji: ['gratis', '"schritt"', 'listo', '❤\ufe0f gratis'],
  variant: ['葛飾'],
  hebrew: ['אביב'],
  persian: ['كتاب', '50 کتاب'],
  european: ['lazienka', 'kokken', 'dien', 'aesop', "м'ясо"],
  hyphen: ['scarpe -e-mail', 'borse -iPhoneケース'],
};

test.each<[query: string, matches: string[]]>([
  ...Object.entries(queriesByName).flatMap(([name, queries]) =>
    queries.map((query) => [query, [name]] as [string, string[]]),
  ),
  ...['세분', 'コー豆', '"shipping free"', '"run"', 'shoes -returns', 'sh', 'scarpe -e-borse'].map(
    (query) => [query, []] as [string, []],
  ),
  ['-e -shoes', names.filter((name) => !['english', 'hyphen'].includes(name))],
])('the full-text search for %s finds exactly the example ads %j', async (query, matches) => {
  expect((await searchIds({ query, pageId })).map((id) => names[Number(id.slice(-6))]).sort()).toEqual(
    matches.toSorted(),
  );
});

test('a search for a phrase finds no ad in which the phrase begins in one field and ends in another', async () => {
  const pageId = 'phrases';
  await libraryServer.importRecords({
    ...{ id: createUuid(900), pageId, headline: 'Summer sale', body: 'Shoes for running' },
    ...{ linkDescription: '無料配送', productTitle: '返品無料', bylines: ['Friends of Tea', 'House'] },
  });
  for (const query of ['"summer sale"', '"shoes for running"', 'sale shoes', '"無料配送"', '料', '"friends of tea"'])
    expect(await searchIds({ query, pageId }), query).toHaveLength(1);
  for (const query of ['"sale shoes"', '"running 無料"', '"配送 返品"', '"tea house"'])
    expect(await searchIds({ query, pageId }), query).toEqual([]);
  expect(await searchIds({ query: 'summer -"sale shoes"', pageId })).toHaveLength(1);
});

test('a full-text search for random text never causes an internal error', async () => {
  const pieces = ['"', '-', '*', 'a b', '세럼', ' ', ':', '(', ')', 'NOT', 'AND', 'OR', '^', '{', '}', '\0', "'"];
  const text = fc.oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 100 }),
    fc.array(fc.constantFrom(...pieces), { minLength: 1 }).map((parts) => parts.join('')),
  );
  const keys = fc.constantFrom('query', 'advertiser', 'domain', 'ctaType', 'pageId');
  await fc.assert(
    fc.asyncProperty(text, keys, async (text, filterKey) => {
      expect([200, 422]).toContain((await libraryServer.search({ [filterKey]: text, limit: 1 })).status);
    }),
    { numRuns: 200 },
  );
  expect(libraryServer.errors).toEqual([]);
});

test('a full-text search for any word of an ad finds this ad', async () => {
  const letters = fc.constantFrom(...'abcßéñ수분세럼後味コのعطرकाไทИж1 -,.!🔥\u0301\u200d');
  const texts = fc.array(
    fc.array(letters, { minLength: 1, maxLength: 30 }).map((characters) => characters.join('')),
    { minLength: 1, maxLength: 4 },
  );
  let nextNumber = 20_000;
  await fc.assert(
    fc.asyncProperty(texts, fc.nat(), fc.nat(), async (bodies, start, length) => {
      const firstNumber = nextNumber;
      nextNumber += bodies.length;
      const pageId = `words-${firstNumber}`;
      await libraryServer.importRecords(
        ...bodies.map((body, index) => ({ id: createUuid(firstNumber + index), body, pageId })),
      );
      const words = bodies[0]?.match(/[\p{L}\p{M}\p{N}\u200d]+/gu) ?? [];
      const word = words[start % Math.max(1, words.length)];
      if (!word || !/[\p{L}\p{N}]/u.test(word)) return;
      expect(await searchIds({ query: word, pageId })).toContain(createUuid(firstNumber));
      // In scripts without spaces between words, a query of any two adjacent characters must find the text.
      const run = /[수분세럼後味コの]{2,}/u.exec(word)?.[0];
      if (run === undefined) return;
      const pair = run.slice(length % (run.length - 1)).slice(0, 2);
      expect(await searchIds({ query: pair, pageId })).toContain(createUuid(firstNumber));
    }),
    { numRuns: 150 },
  );
});
