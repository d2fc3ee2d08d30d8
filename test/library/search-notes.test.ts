import { expect } from 'vitest';
import { libraryTest } from './support/fixtures.ts';
import { uuid } from './support/served-library.ts';

const shop = (nr: number, more: object) => ({ id: uuid(nr), page: { pageName: 'Tea House' }, ...more });
const shops = [
  shop(1, {
    ...{ ctaType: 'SHOP_NOW', displayFormat: 'VIDEO', startedAt: '2026-01-05T00:00:00Z' },
    website: { siteDomain: 'tea.example' },
  }),
  shop(2, { ctaType: 'BUY_NOW', displayFormat: 'CAROUSEL', media: [{ type: 'VID', url: 'https://tea.example/a' }] }),
  shop(3, { ctaType: 'Learn_More', displayFormat: 'VIDEO', page: { pageName: 'Kaffee "Süd"' } }),
];

const test = libraryTest.extend('notesOf', async ({ served }) => {
  await served.importRecords(...shops);
  return async (body: object): Promise<string[] | undefined> => {
    const answer = await served.search(body);
    expect(answer.status).toBe(200);
    return answer.body.notes;
  };
});

const valuesThere = (key: string, value: string, ...values: string[]) =>
  `No ad in this library has ${key} "${value}". Values there are, nearest in spelling first: ${values.join(', ')}.`;
const leftOut = (key: string, found: number) =>
  `Left out because they have no value for ${key}: ${found}. The filter missing with ${key} finds these.`;
const kept = (key: string, found: number) =>
  `Found although they have no value for ${key}: ${found}. The filter missing with ${key} inside not leaves these out.`;

const lackingBuy = valuesThere('ctaType', 'BUY', 'BUY_NOW', 'SHOP_NOW', 'Learn_More');

test.for<[body: object, ...notes: string[]]>([
  // Values that no record has, and those there are, as records write them.
  [{ ctaType: 'BUY' }, lackingBuy],
  [{ not: { ctaType: 'BUY' } }, lackingBuy],
  [{ ctaType: ['shop now', 'BUY_NOW'] }, valuesThere('ctaType', 'shop now', 'SHOP_NOW', 'BUY_NOW', 'Learn_More')],
  [{ advertiserExact: 'tea hause' }, valuesThere('advertiserExact', 'tea hause', 'Tea House', 'Kaffee "Süd"')],
  [{ pageId: 'p1' }, 'No ad in this library has a value for pageId.'],
  // A true zero, or a number that needs no word.
  [{ ctaType: ['SHOP_NOW', 'buy_now'] }],
  [{ query: 'coffee' }],
  [{ missing: ['ctaType'] }],
  // Records without a value that a filter leaves out, or not keeps.
  [{ ctaType: 'learn_more', domain: 'tea.example' }, leftOut('domain', 1)],
  [{ domain: 'tea.example', missing: ['mediaKind'] }, leftOut('domain', 1)],
  [{ startedAtFrom: '2026-01-01' }, leftOut('startedAt', 2)],
  [{ startedAtTo: '2027-01-01', ctaType: 'BUY_NOW' }, leftOut('startedAt', 1)],
  [{ startedAtTo: '2027-01-01', ctaType: 'SHOP_NOW' }],
  [{ mediaKind: 'video' }, leftOut('mediaKind', 2)],
  [{ not: { domain: 'tea.example' } }, kept('domain', 2)],
  [{ not: { domain: 'tea.example', missing: ['domain'] } }],
  [{ not: { ctaType: 'SHOP_NOW', startedAtFrom: '2026-01-01' } }, kept('startedAt', 2)],
  [{ active: true }, leftOut('active', 3)],
  [{ active: false }, leftOut('active', 3)],
  [{ not: { active: true } }, kept('active', 3)],
  [{}],
])('a search says what its number leaves unsaid: %j', async ([body, ...notes], { notesOf }) => {
  expect(await notesOf({ ...body })).toEqual(notes.length > 0 ? notes : undefined);
});

test('a note about a range counts only the ads that have neither end of it', async ({ served, notesOf }) => {
  await served.importRecords(shop(4, { impressionsMin: 1_000_001 }), shop(5, { impressionsMax: 99 }));
  expect(await notesOf({ impressionsFrom: 500 })).toEqual([leftOut('impressions', 3)]);
});

test('only the first page has notes, and they are few and short', async ({ served, notesOf }) => {
  const { body } = await served.search({ limit: 1, not: { ctaType: Array(50).fill('x'.repeat(100)) } });
  expect(body.notes).toHaveLength(1);
  expect((await served.search({ cursor: body.cursor })).body.notes).toBeUndefined();
  const many = Array.from({ length: 50 }, (_, nr) => `${nr}${'x'.repeat(65)}`);
  const notes = await notesOf({ ctaType: many, domain: many });
  expect(notes).toHaveLength(5);
  for (const note of notes ?? []) expect(note.length).toBeLessThan(300);
});
