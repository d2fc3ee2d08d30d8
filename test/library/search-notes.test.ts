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
  expect(await notesOf({ pageId: 'p1' })).toEqual(['No ad in this library has a value for pageId.']);
});

test('a value that records have is a true zero, or a number without a note', async () => {
  expect(await notesOf({ ctaType: ['SHOP_NOW', 'buy_now'] })).toBeUndefined();
  expect(await notesOf({ query: 'coffee' })).toBeUndefined();
  expect(await notesOf({ missing: ['ctaType'] })).toBeUndefined();
});

const leftOut = (key: string, found: number) =>
  `Left out because they have no value for ${key}: ${found}. The filter missing with ${key} finds these.`;
const kept = (key: string, found: number) =>
  `Found although they have no value for ${key}: ${found}. The filter missing with ${key} inside not leaves these out.`;

test.for<[body: object, ...notes: string[]]>([
  [{ ctaType: 'learn_more', domain: 'tea.example' }, leftOut('domain', 1)],
  [{ startedAtFrom: '2026-01-01' }, leftOut('startedAt', 2)],
  [{ startedAtTo: '2027-01-01', ctaType: 'BUY_NOW' }, leftOut('startedAt', 1)],
  [{ startedAtTo: '2027-01-01', ctaType: 'SHOP_NOW' }],
  [{ mediaKind: 'video' }, leftOut('mediaKind', 2)],
  [{ not: { domain: 'tea.example' } }, kept('domain', 2)],
  [{ not: { domain: 'tea.example', missing: ['domain'] } }],
  [{ not: { ctaType: 'SHOP_NOW', startedAtFrom: '2026-01-01' } }, kept('startedAt', 2)],
])(
  'records without a value are counted where a filter leaves them out or not keeps them: %j',
  async ([body, ...notes]) => {
    expect(await notesOf({ ...body })).toEqual(notes.length > 0 ? notes : undefined);
  },
);

test('ads of which nobody knows whether they run are counted, and missing active finds them', async () => {
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
  for (const active of [true, false]) expect((await ask({ active })).notes).toEqual([leftOut('active', 3)]);
  expect((await ask({ not: { active: true } })).notes).toEqual([kept('active', 3)]);
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
