import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { serveLibrary, uuid } from './support/served-library.ts';

const served = await serveLibrary();
afterAll(() => served.close());

const findIds = async (filters: Record<string, unknown>): Promise<string[]> =>
  (await served.searchAll(filters)).items.map(({ id }) => id);

const copies = {
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
};
const names = Object.keys(copies);
const pageId = 'copies';
await served.importRecords(...Object.values(copies).map((body, at) => ({ id: uuid(at), body, pageId })));

/** What finds each copy alone. */
const finding: Record<string, string[]> = {
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
};

test.each<[query: string, found: string[]]>([
  ...Object.entries(finding).flatMap(([name, queries]) =>
    queries.map((query) => [query, [name]] as [string, string[]]),
  ),
  ...['세분', 'コー豆', '"shipping free"', '"run"', 'shoes -returns', 'sh'].map((query) => [query, []] as [string, []]),
  ['-e -shoes', names.filter((name) => name !== 'english')],
])('%s finds %j', async (query, found) => {
  expect((await findIds({ query, pageId })).map((id) => names[Number(id.slice(-6))]).sort()).toEqual(found.toSorted());
});

test('a search never fails, whatever is typed', async () => {
  const pieces = ['"', '-', '*', 'a b', '세럼', ' ', ':', '(', ')', 'NOT', 'AND', 'OR', '^', '{', '}', '\0', "'"];
  const text = fc.oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 100 }),
    fc.array(fc.constantFrom(...pieces), { minLength: 1 }).map((parts) => parts.join('')),
  );
  const keys = fc.constantFrom('query', 'advertiser', 'domain', 'ctaType', 'pageId');
  await fc.assert(
    fc.asyncProperty(text, keys, async (text, filter) => {
      expect([200, 422]).toContain((await served.search({ [filter]: text, limit: 1 })).status);
    }),
    { numRuns: 200 },
  );
  expect(served.errors).toEqual([]);
});

test('a search finds every word of any stored text', async () => {
  const letters = fc.constantFrom(...'abcßéñ수분세럼後味コのعطرकाไทИж1 -,.!🔥\u0301\u200d');
  const texts = fc.array(
    fc.array(letters, { minLength: 1, maxLength: 30 }).map((all) => all.join('')),
    { minLength: 1, maxLength: 4 },
  );
  let number = 20_000;
  await fc.assert(
    fc.asyncProperty(texts, fc.nat(), fc.nat(), async (bodies, start, length) => {
      const first = number;
      number += bodies.length;
      const pageId = `words-${first}`;
      await served.importRecords(...bodies.map((body, at) => ({ id: uuid(first + at), body, pageId })));
      const words = bodies[0]?.match(/[\p{L}\p{M}\p{N}\u200d]+/gu) ?? [];
      const word = words[start % Math.max(1, words.length)];
      if (!word || !/[\p{L}\p{N}]/u.test(word)) return;
      expect(await findIds({ query: word, pageId })).toContain(uuid(first));
      // Of a script without spaces, any two neighbours are found too.
      const run = /[수분세럼後味コの]{2,}/u.exec(word)?.[0];
      if (run === undefined) return;
      const piece = run.slice(length % (run.length - 1)).slice(0, 2);
      expect(await findIds({ query: piece, pageId })).toContain(uuid(first));
    }),
    { numRuns: 150 },
  );
});
