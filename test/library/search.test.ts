import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packNumbers, unpackNumbers } from '../../src/library/pack.ts';
import { type ServedLibrary, searchAll, serveLibrary, startOfTests, uuid } from './support/served-library.ts';

let served: ServedLibrary;
let key: string;
beforeAll(async () => {
  served = await serveLibrary();
  key = served.key({ credits: 1e9, hourlyLimit: 1e9, dailyLimit: 1e9 });
});
afterAll(() => served.close());

const day = 86_400_000;
const isoDay = (offset: number) => new Date(startOfTests + offset * day).toISOString();
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

  it.each([
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

  it('never fails, whatever is typed', async () => {
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
          {
            minLength: 1,
          },
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

  it('finds every word of any text that is kept', async () => {
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

describe('filters and sorting', () => {
  type Model = {
    id: string;
    countries?: string[];
    publisherPlatform?: string[];
    ctaType?: string | null;
    startedAt?: string | null;
    endDate?: string | null;
    duplicates?: number | null;
    adSpendMin?: number;
    adSpendMax?: number;
    website?: { siteDomain: string };
  };
  const orMissing = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });
  const ads = fc
    .array(
      fc.record({
        countries: orMissing(fc.subarray(['US', 'DE', 'KR', 'BR'])),
        publisherPlatform: orMissing(fc.subarray(['FACEBOOK', 'INSTAGRAM'])),
        ctaType: orMissing(fc.constantFrom('SHOP_NOW', 'LEARN_MORE', null)),
        startedAt: orMissing(fc.integer({ min: -5, max: 5 }).map(isoDay)),
        endDate: orMissing(fc.option(fc.integer({ min: -5, max: 5 }).map(isoDay))),
        duplicates: orMissing(fc.option(fc.integer({ min: 0, max: 4 }))),
        adSpendMin: orMissing(fc.integer({ min: 0, max: 5 })),
        adSpendMax: orMissing(fc.integer({ min: 5, max: 9 })),
        website: orMissing(
          fc.constantFrom('a.example', 'shop.a.example', 'b.example').map((siteDomain) => ({ siteDomain })),
        ),
      }),
      { maxLength: 25 },
    )
    .map((list): Model[] => list.map((ad, at) => JSON.parse(JSON.stringify({ id: uuid(at), ...ad }))));

  const rules = {
    countries: [
      fc.subarray(['us', 'DE', 'KR'], { minLength: 1 }),
      (ad: Model, any: string[]) => any.some((one) => ad.countries?.includes(one.toUpperCase())),
    ],
    publisherPlatform: [fc.constantFrom('INSTAGRAM'), (ad: Model, one: string) => ad.publisherPlatform?.includes(one)],
    ctaType: [
      fc.constantFrom(['SHOP_NOW'], ['shop_now', 'LEARN_MORE']),
      (ad: Model, any: string[]) => any.some((one) => ad.ctaType === one.toUpperCase()),
    ],
    domain: [
      fc.constantFrom('a.example', 'shop.a.example', 'example', 'xa.example'),
      (ad: Model, one: string) => `.${ad.website?.siteDomain}`.endsWith(`.${one}`),
    ],
    duplicatesFrom: [fc.integer({ min: 0, max: 4 }), (ad: Model, least: number) => (ad.duplicates ?? -1) >= least],
    duplicatesTo: [fc.integer({ min: 0, max: 4 }), (ad: Model, most: number) => (ad.duplicates ?? 99) <= most],
    adSpendFrom: [
      fc.integer({ min: 0, max: 9 }),
      (ad: Model, least: number) => (ad.adSpendMax ?? ad.adSpendMin ?? -1) >= least,
    ],
    adSpendTo: [
      fc.integer({ min: 0, max: 9 }),
      (ad: Model, most: number) => (ad.adSpendMin ?? ad.adSpendMax ?? 99) <= most,
    ],
    startedAtFrom: [
      fc.integer({ min: -5, max: 5 }).map(isoDay),
      (ad: Model, from: string) => (ad.startedAt ?? '') >= from,
    ],
    startedAtTo: [
      fc.integer({ min: -5, max: 5 }).map((offset) => isoDay(offset).slice(0, 10)),
      (ad: Model, to: string) => ad.startedAt != null && ad.startedAt.slice(0, 10) <= to,
    ],
    active: [fc.boolean(), (ad: Model, active: boolean) => (ad.endDate == null || ad.endDate > isoDay(0)) === active],
    // biome-ignore lint/suspicious/noExplicitAny: each rule has a value of its own type
  } as Record<string, [fc.Arbitrary<any>, (ad: Model, value: any) => boolean | undefined]>;
  const filters = fc.record(Object.fromEntries(Object.entries(rules).map(([name, [value]]) => [name, value])), {
    requiredKeys: [],
  });
  const sorting = fc.record(
    { sort: fc.constantFrom('duplicates', 'startedAt', 'adSpend'), order: fc.constantFrom('asc', 'desc') },
    { requiredKeys: [] },
  );

  function expected(all: Model[], wanted: Record<string, unknown>, { sort = 'startedAt', order = 'desc' }) {
    const value = (ad: Model) => (sort === 'adSpend' ? ad.adSpendMax : ad[sort as 'duplicates' | 'startedAt']) ?? null;
    const sign = order === 'asc' ? 1 : -1;
    return all
      .filter((ad) => Object.entries(wanted).every(([name, given]) => rules[name]?.[1](ad, given)))
      .map((ad, at) => ({ id: ad.id, value: value(ad), at }))
      .sort((left, right) => {
        if (left.value === null || right.value === null) {
          return left.value === right.value ? sign * (left.at - right.at) : left.value === null ? 1 : -1;
        }
        return sign * (left.value < right.value ? -1 : left.value > right.value ? 1 : left.at - right.at);
      })
      .map(({ id }) => id);
  }

  it('answers what a plain reading of the filters answers, page by page', async () => {
    await fc.assert(
      fc.asyncProperty(ads, filters, sorting, fc.integer({ min: 1, max: 30 }), async (all, wanted, sorted, limit) => {
        const own = await serveLibrary();
        try {
          await own.load(...all);
          const by = own.key();
          const { items, totalHits } = await searchAll(own, '/v1/ads/search', by, { ...wanted, ...sorted, limit });
          const ids = items.map((item: { id: string }) => item.id);
          expect(ids).toEqual(expected(all, wanted, sorted));
          expect(totalHits).toBe(ids.length);
        } finally {
          await own.close();
        }
      }),
      { numRuns: 150 },
    );
  }, 60_000);
});

describe('cursors', () => {
  it('lose and repeat nothing while records are added and replaced', async () => {
    const step = fc.record({
      limit: fc.integer({ min: 1, max: 7 }),
      added: fc.array(fc.option(fc.nat(5)), { maxLength: 4 }),
    });
    const start = fc.array(fc.option(fc.nat(5)), { minLength: 1, maxLength: 30 });
    let number = 100_000;
    await fc.assert(
      fc.asyncProperty(
        start,
        fc.array(step, { minLength: 1 }),
        fc.constantFrom('asc', 'desc'),
        async (first, steps, order) => {
          const pageId = `cursor-${number}`;
          const put = async (values: (number | null)[]) => {
            const made = values.map((duplicates) => ({ id: uuid(number++), pageId, duplicates, headline: 'Paged' }));
            await served.load(...made);
            return made;
          };
          const begun = await put(first);
          const seen: string[] = [];
          let cursor: string | null = null;
          for (let at = 0; at === 0 || cursor; at++) {
            const { limit, added } = steps[at % steps.length] ?? { limit: 5, added: [] };
            const filters = { pageId: [pageId], sort: 'duplicates', order };
            const { body } = await served.ask('POST', '/v1/ads/search', {
              key,
              body: cursor ? { cursor, limit } : { ...filters, limit },
            });
            seen.push(...body.items.map((item: { id: string }) => item.id));
            expect(body.hasMore).toBe(body.cursor !== null);
            cursor = body.cursor;
            // Enough rounds that adding ends some time.
            if (at < 5) await put(added);
            await served.load(begun[at % begun.length]);
          }
          expect(new Set(seen).size).toBe(seen.length);
          expect(seen).toEqual(expect.arrayContaining(begun.map(({ id }) => id)));
        },
      ),
      { numRuns: 60 },
    );
  }, 60_000);

  it('are short: every page of results carries one', async () => {
    const own = await serveLibrary();
    const startedAt = '2026-01-02T03:04:05.000Z';
    const row = (at: number) => ({ id: uuid(6000 + at), startedAt, headline: 'Free shipping', countries: ['US'] });
    await own.load(...Array.from({ length: 5 }, (_, at) => row(at)));
    const by = own.key();
    const cursorOf = async (body: Record<string, unknown>): Promise<string> =>
      (await own.ask('POST', '/v1/ads/search', { key: by, body: { ...body, limit: 2 } })).body.cursor;
    expect((await cursorOf({})).length).toBeLessThan(35);
    const filters = { query: '"free shipping"', countries: ['US'], active: true, sort: 'startedAt' };
    expect((await cursorOf(filters)).length).toBeLessThan(90);
    await own.close();
  });

  it('hold any position and any filters', () => {
    const value = fc.option(
      fc.oneof(
        fc.double({ noNaN: true }).map((n) => n + 0),
        fc.maxSafeInteger(),
        fc.nat().map((n) => n * 86_400_000),
      ),
    );
    fc.assert(
      fc.property(fc.array(value), fc.uint8Array(), (numbers, bytes) => {
        const packed = Buffer.concat([packNumbers(numbers), bytes]);
        expect(unpackNumbers(packed, numbers.length)).toEqual({ numbers, rest: Buffer.from(bytes) });
      }),
    );
  });

  it('that are altered anywhere are refused', async () => {
    await served.load(...Array.from({ length: 5 }, (_, at) => ({ id: uuid(7000 + at), pageId: 'altered' })));
    const first = await served.ask('POST', '/v1/ads/search', { key, body: { pageId: 'altered', limit: 2 } });
    const cursor: string = first.body.cursor;
    await fc.assert(
      fc.asyncProperty(fc.nat(cursor.length - 1), fc.constantFrom(...'AZaz09-_.=% '), async (at, letter) => {
        fc.pre(cursor[at] !== letter);
        const altered = cursor.slice(0, at) + letter + cursor.slice(at + 1);
        const { status } = await served.ask('POST', '/v1/ads/search', { key, body: { cursor: altered } });
        expect(status).toBe(422);
      }),
    );
    for (const other of [`${cursor}=`, `${cursor}.x`, cursor.slice(0, -1), ` ${cursor}`]) {
      expect((await served.ask('POST', '/v1/ads/search', { key, body: { cursor: other } })).status).toBe(422);
    }
  });

  it('go on alone or with the same filters; other filters and other lists are refused', async () => {
    await served.load(
      ...Array.from({ length: 5 }, (_, at) => ({ id: uuid(7100 + at), pageId: 'alone', duplicates: at })),
    );
    const filters = { pageId: 'alone', duplicatesFrom: 1, sort: 'duplicates' };
    const first = await served.ask('POST', '/v1/ads/search', { key, body: { ...filters, limit: 1 } });
    expect(first.body.totalHits).toBe(4);
    const { cursor } = first.body;
    const next = (body: unknown, path = '/v1/ads/search') => served.ask('POST', path, { key, body });
    const alone = await next({ cursor });
    expect(alone.body).toMatchObject({ items: [{ duplicates: 3 }], totalHits: 4, hasMore: true });
    expect((await next({ cursor, ...filters, limit: 3 })).body.items).toHaveLength(3);
    const other = await next({ cursor, ...filters, duplicatesFrom: 2 });
    expect(other.status).toBe(422);
    expect(other.body.error.details.cursorFilters).toMatchObject({ duplicatesFrom: 1 });
    expect((await next({ cursor }, '/v1/pages/search')).status).toBe(422);
    const { body } = await served.ask('GET', '/v1/collections', { key });
    const items = await served.ask('GET', `/v1/collections/${body.items[0].id}/items?itemType=ads&cursor=${cursor}`, {
      key,
    });
    expect(items.status).toBe(422);
  });

  it('of a collection go on from newest to oldest, and are bound to it', async () => {
    const own = served.key();
    await served.load(...Array.from({ length: 130 }, (_, at) => ({ id: uuid(7200 + at) })));
    const { body } = await served.ask('GET', '/v1/collections', { key: own });
    const [ads, pages] = body.items;
    const add = (at: number) =>
      served.ask('POST', `/v1/collections/${ads.id}/items`, {
        key: own,
        body: { itemType: 'ads', itemId: uuid(7200 + at) },
      });
    for (let at = 0; at < 120; at++) await add(at);
    const list = (query: string, id = ads.id) =>
      served.ask('GET', `/v1/collections/${id}/items?itemType=ads${query}`, { key: own });
    const first = await list('');
    expect(first.body.items).toHaveLength(50);
    expect(first.body.items[0].id).toBe(uuid(7319));
    await add(125);
    const rest = await list(`&limit=100&cursor=${first.body.cursor}`);
    expect(rest.body).toMatchObject({ hasMore: false, cursor: null });
    const ids = [...first.body.items, ...rest.body.items].map((item: { id: string }) => item.id);
    expect(ids).toEqual(Array.from({ length: 120 }, (_, at) => uuid(7319 - at)));
    expect((await list(`&cursor=${first.body.cursor}`, pages.id)).status).toBe(422);
  });
});

describe('searchPages', () => {
  it('filters by languages and technologies, and finds by name', async () => {
    await served.load(
      { pageId: 'de-1', pageName: 'Müller Möbel', languages: ['de'], technologySlugs: ['live-chat'], pageLikes: 5 },
      { pageId: 'de-2', pageName: 'Schmidt Möbel', languages: ['de', 'en'], pageLikes: 50 },
    );
    const names = async (body: Record<string, unknown>) =>
      (await searchAll(served, '/v1/pages/search', key, body)).items.map((page: { pageId: string }) => page.pageId);
    expect(await names({ query: 'mobel', sort: 'pageLikes' })).toEqual(['de-2', 'de-1']);
    expect(await names({ languages: ['EN'], query: 'möbel' })).toEqual(['de-2']);
    expect(await names({ technologySlugs: 'live-chat' })).toEqual(['de-1']);
    expect(await names({ query: 'mobel', pageLikesTo: 10 })).toEqual(['de-1']);
  });
});
