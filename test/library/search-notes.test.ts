import { afterAll, expect, test } from 'vitest';
import { serveLibrary, serveRich, uuid } from './support/served-library.ts';

const { served, key } = await serveRich();
afterAll(() => served.close());

const shop = (nr: number, more: object) => ({ id: uuid(nr), page: { pageName: 'Tea House' }, ...more });
await served.load(
  shop(1, {
    ctaType: 'SHOP_NOW',
    displayFormat: 'VIDEO',
    startedAt: '2026-01-05T00:00:00Z',
    website: { siteDomain: 'tea.example' },
  }),
  shop(2, { ctaType: 'BUY_NOW', displayFormat: 'CAROUSEL', media: [{ type: 'VID', url: 'https://tea.example/a' }] }),
  shop(3, { ctaType: 'Learn_More', displayFormat: 'VIDEO', page: { pageName: 'Kaffee "Süd"' } }),
);

async function notesOf(body: Record<string, unknown>) {
  const answer = await served.ask('POST', '/v1/ads/search', { key, body });
  expect(answer.status).toBe(200);
  return answer.body.notes;
}

const callsToAction = (value: string, ...values: string[]) =>
  `No ad in this library has ctaType "${value}". Values there are, nearest in spelling first: ${values.join(', ')}.`;

test('a value that no record has is answered with those there are, as records write them, nearest in spelling first', async () => {
  expect(await notesOf({ ctaType: 'BUY' })).toEqual([callsToAction('BUY', 'BUY_NOW', 'SHOP_NOW', 'Learn_More')]);
  expect(await notesOf({ ctaType: ['shop now', 'BUY_NOW'] })).toEqual([
    callsToAction('shop now', 'SHOP_NOW', 'BUY_NOW', 'Learn_More'),
  ]);
  expect(await notesOf({ not: { ctaType: 'BUY' } })).toEqual(await notesOf({ ctaType: 'BUY' }));
  expect(await notesOf({ advertiserExact: 'tea hause' })).toEqual([
    'No ad in this library has advertiserExact "tea hause". Values there are, nearest in spelling first: Tea House, Kaffee "Süd".',
  ]);
  expect(await notesOf({ advertiser: 'teahouse' })).toEqual([
    `No advertiser's name has the words of "teahouse". Values there are, nearest in spelling first: Tea House, Kaffee "Süd".`,
  ]);
  expect(await notesOf({ pageId: 'p1' })).toEqual(['No ad in this library has a value for pageId.']);
  expect(await notesOf({ bylines: 'friends' })).toEqual(['No ad in this library has a value for bylines.']);
});

test('a value that records have is a true zero, or a number without a note', async () => {
  expect(await notesOf({ ctaType: ['SHOP_NOW', 'buy_now'] })).toBeUndefined();
  expect(await notesOf({ query: 'coffee' })).toBeUndefined();
  expect(await notesOf({ missing: ['ctaType'] })).toBeUndefined();
});

test('a zero says how many records lack what was asked for', async () => {
  expect(await notesOf({ ctaType: 'learn_more', domain: 'tea.example' })).toEqual([
    '1 more ad has no domain and matches the rest.',
  ]);
});

test('records without a date are counted where a date leaves them out', async () => {
  expect(await notesOf({ startedAtFrom: '2026-01-01' })).toEqual([
    '2 more ads have no startedAt, so startedAtFrom and startedAtTo leave them out; the filter missing with startedAt finds them.',
  ]);
  expect(await notesOf({ startedAtTo: '2027-01-01', ctaType: 'BUY_NOW' })).toEqual([
    '1 more ad has no startedAt, so startedAtFrom and startedAtTo leave it out; the filter missing with startedAt finds it.',
  ]);
  expect(await notesOf({ startedAtTo: '2027-01-01', ctaType: 'SHOP_NOW' })).toBeUndefined();
});

test('records without a value are counted where not keeps them', async () => {
  expect(await notesOf({ not: { domain: 'tea.example' } })).toEqual([
    '2 of these ads have no domain, so not keeps them; missing with domain inside not leaves them out.',
  ]);
  expect(await notesOf({ not: { domain: 'tea.example', missing: ['domain'] } })).toBeUndefined();
  expect(await notesOf({ not: { ctaType: 'SHOP_NOW', startedAtFrom: '2026-01-01' } })).toEqual([
    '2 of these ads have no startedAt, so not keeps them; missing with startedAt inside not leaves them out.',
  ]);
});

test('mediaKind and displayFormat name each other where they differ', async () => {
  const both =
    "mediaKind video finds 1, displayFormat VIDEO finds 2: the first says what an ad's media hold, the second which format the advertiser chose.";
  const without = '2 more ads have no mediaKind and match the rest.';
  expect(await notesOf({ mediaKind: 'video' })).toEqual([without, both]);
  expect(await notesOf({ displayFormat: ['VIDEO'] })).toEqual([both]);
  expect(await notesOf({ displayFormat: 'VIDEO', mediaKind: 'video' })).toEqual([
    '2 more ads have no mediaKind and match the rest.',
  ]);
});

test('where nobody knows whether ads run, it says how many they are and when they were last seen', async () => {
  const own = await serveLibrary();
  const seen = (nr: number, lastSeenAt: string | null, endDate: string | null = null) => ({
    id: uuid(nr),
    lastSeenAt,
    endDate,
  });
  await own.load(
    seen(1, '2026-03-15T00:00:00Z'),
    seen(2, '2026-03-15T00:00:00Z', '2026-03-14T00:00:00Z'),
    seen(3, '2026-03-12T23:00:00Z'),
    seen(4, '2026-01-02T00:00:00Z'),
    seen(5, null),
  );
  const by = own.key();
  const ask = async (body: object) => (await own.ask('POST', '/v1/ads/search', { key: by, body })).body;
  const unknown = 'no endDate, 2 of them last seen 2026-01-02 to 2026-03-12.';
  const more = `3 more ads match the rest. Unknown whether they run: ${unknown} missing active finds them.`;
  expect((await ask({ active: true })).notes).toEqual([more]);
  expect((await ask({ active: false })).notes).toEqual([more]);
  for (const body of [{ missing: ['active'] }, { countBy: 'active' }, { not: { active: true } }])
    expect((await ask(body)).notes).toEqual([`Unknown whether 3 of these ads run: ${unknown}`]);
  expect((await ask({ missing: 'active' })).items.map(({ id }: { id: string }) => id).sort()).toEqual(
    [3, 4, 5].map(uuid),
  );
  expect((await ask({})).notes).toBeUndefined();
  await own.close();
});

test('only the first page has notes, and they are few and short', async () => {
  const body = { limit: 1, startedAtTo: '2027-01-01', not: { ctaType: Array(50).fill('x'.repeat(100)) } };
  const first = await served.ask('POST', '/v1/ads/search', { key, body: { ...body, startedAtTo: undefined } });
  const next = await served.ask('POST', '/v1/ads/search', { key, body: { cursor: first.body.cursor } });
  expect(next.body.notes).toBeUndefined();
  const many = Array.from({ length: 50 }, (_, nr) => `${nr}${'x'.repeat(65)}`);
  const notes: string[] = await notesOf({ ctaType: many, domain: many });
  expect(notes).toHaveLength(5);
  for (const note of notes) expect(note.length).toBeLessThan(300);
});
