import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { searchAll, serveRich, uuid } from './support/served-library.ts';

const { served, key } = await serveRich();
afterAll(() => served.close());

const findIds = async (path: string, body: Record<string, unknown>, from = served, by = key) =>
  (await searchAll(from, path, by, body)).items.map((item: { id: string }) => item.id);

describe('full text', () => {
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
  const ids = Object.fromEntries(Object.keys(copies).map((name, at) => [name, uuid(9000 + at)]));
  beforeAll(() => served.load(...Object.entries(copies).map(([name, body]) => ({ id: ids[name], body }))));

  test.each([
    ['수분', ['korean']],
    ['촉촉', ['korean']],
    ['촉', ['korean']],
    ['세럼 매일', ['korean']],
    ['세분', []],
    ['後味', ['japanese']],
    ['味', ['japanese']],
    ['コーヒー', ['japanese']],
    ['カバー', ['japanese']],
    ['ｶﾊﾞｰ', ['japanese']],
    ['コー豆', []],
    ['特價', ['chinese']],
    ['عطر', ['arabic']],
    ['هدية', ['arabic']],
    ['कारीगरों', ['hindi']],
    ['कारीगर', ['hindi']],
    ['क़ालीन', ['hindi']],
    ['สมุนไพร', ['thai']],
    ['strasse', ['german']],
    ['FUSSE 50', ['german']],
    ['fusse', ['german']],
    ['creme', ['french']],
    ['ilk çay', ['turkish']],
    ['run', ['english']],
    ['"free shipping"', ['english']],
    ['"shipping free"', []],
    ['"run"', []],
    ['shoes -returns', []],
    ['shoes -boots', ['english']],
    ['summer sale bold', ['hidden']],
    [
      '-e -shoes',
      ['korean', 'japanese', 'chinese', 'arabic', 'hindi', 'thai', 'german', 'french', 'turkish', 'hidden'],
    ],
    ['sh', []],
  ])('%s finds %j', async (query, names) => {
    const found = await findIds('/v1/ads/search', { query });
    expect(found.sort()).toEqual(names.map((name) => ids[name]).sort());
  });

  test('never fails, whatever is typed', async () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary', minLength: 1, maxLength: 100 }),
      fc
        .array(
          fc.constantFrom(
            '"',
            '-',
            '*',
            'a b',
            '세럼',
            ' ',
            ':',
            '(',
            ')',
            'NOT',
            'AND',
            'OR',
            '^',
            '{',
            '}',
            '\0',
            "'",
          ),
          { minLength: 1 },
        )
        .map((parts) => parts.join('')),
    );
    await fc.assert(
      fc.asyncProperty(
        text,
        fc.constantFrom('query', 'advertiser', 'domain', 'ctaType', 'pageId'),
        async (text, filter) => {
          const { status } = await served.ask('POST', '/v1/ads/search', { key, body: { [filter]: text, limit: 1 } });
          expect([200, 422]).toContain(status);
        },
      ),
      { numRuns: 300 },
    );
    expect(served.errors).toEqual([]);
  });

  test('finds every word of any stored text', async () => {
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
        await served.load(...bodies.map((body, at) => ({ id: uuid(first + at), body, pageId })));
        const whole = bodies[0] ?? '';
        const words = whole.match(/[\p{L}\p{M}\p{N}\u200d]+/gu) ?? [];
        const word = words[start % Math.max(1, words.length)];
        if (!word || !/[\p{L}\p{N}]/u.test(word)) return;
        expect(await findIds('/v1/ads/search', { query: word, pageId })).toContain(uuid(first));
        // Of a script without spaces, any two neighbours are found too.
        const run = /[수분세럼後味コの]{2,}/u.exec(word)?.[0];
        if (run) {
          const piece = run.slice(length % (run.length - 1)).slice(0, 2);
          expect(await findIds('/v1/ads/search', { query: piece, pageId })).toContain(uuid(first));
        }
      }),
      { numRuns: 200 },
    );
  });
});
