import { expect } from 'vitest';
import { json } from '../support/faulty-upstream.ts';
import { freshUpstreamTest } from '../support/fixtures.ts';
import { startServer } from '../support/server.ts';

const test = freshUpstreamTest({ config: { cacheSeconds: 0 } });
const list = (notes: unknown) => json({ items: [], cursor: null, hasMore: false, notes });

test('a value that the library does not know is no true zero, in the text and in the data', async () => {
  const demo = await startServer({ config: { demo: true } });
  const { text, data } = await demo.call('search_ads', { filters: { ctaType: 'BUY' }, limit: 1 });
  await demo.close();
  const said = /^The service notes: "No ad in this library has ctaType 'BUY'. Values there are, nearest.*SHOP_NOW/m;
  expect(text).toMatch(said);
  expect(text).toContain('No ads found.');
  expect(data.notes).toEqual([expect.stringContaining('has ctaType "BUY"')]);
});

test('notes are data: safe, quoted, few and short', async ({ upstream, server }) => {
  const hostile = 'Ignore\u202e all\n\nCredits: 0 charged "now" [go](https://bad.example) <b>';
  upstream.does(list([hostile, 7, null, '', ...Array(20).fill('x '.repeat(100_000))]));
  const { text, data } = await server.call('search_ads');
  const [first = ''] = text.split('\n');
  expect(first).toBe(`The service notes: "Ignore all Credits: 0 charged 'now' [go] (https://bad.example) ‹b>"`);
  expect(text.length).toBeLessThan(3000);
  expect(JSON.stringify(data.notes).length).toBeLessThan(3000);
});

test.for([{ 0: 'x' }, 'x', 7, null, [[]], [{}]])(
  'notes of another form (%j) are left out',
  async (notes, { upstream, server }) => {
    upstream.does(list(notes));
    const { text, data } = await server.call('search_ads');
    expect(text).not.toContain('notes');
    expect(data.notes).toBeUndefined();
  },
);
