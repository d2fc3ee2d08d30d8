import { expect } from 'vitest';
import { json } from '../support/faulty-upstream.ts';
import { serviceTest, upstreamTest } from '../support/fixtures.ts';
import { uuidOf } from '../support/uuid-of.ts';

const ofLibrary = serviceTest();
const ofUpstream = upstreamTest();
const cardLines = /^\d+\. .*$/gm;
const pictureLines = /^ {3}picture: "(.*)"/gm;

ofLibrary('get_ad shows five cards and five pictures of a carousel that has five', async ({ server }) => {
  const { items } = (await server.call('search_ads', { filters: { displayFormat: ['CAROUSEL'] }, limit: 50 })).data;
  const carousel = items.find(({ creative }) => creative === '5 cards');
  const { text } = await server.call('get_ad', { adId: carousel?.id });
  expect(text.match(cardLines)?.map((line) => line.slice(0, 3))).toEqual(['1. ', '2. ', '3. ', '4. ', '5. ']);
  expect(new Set([...text.matchAll(pictureLines)].map(([, url]) => url)).size).toBe(5);
});

ofUpstream(
  'of long signed addresses a result shows those that fit, in order, and counts the others',
  async ({ upstream, server }) => {
    const cards = Array.from({ length: 10 }, (_, nr) => ({ title: `Card ${nr}` }));
    const urlOf = (nr: number) => `https://media.example/${nr}?sign=${'Ab9x'.repeat(300)}`;
    const media = cards.map((_, nr) => ({ type: 'CARD_THUMB', nr, url: urlOf(nr) }));
    upstream.does(json({ id: uuidOf('x'), cards, media }));
    const { text, data } = await server.call('get_ad', { adId: uuidOf('x') });
    const shown = [...text.matchAll(pictureLines)].map(([, url]) => url);
    expect(shown).toEqual(cards.slice(0, shown.length).map((_, nr) => urlOf(nr)));
    expect(data.ad.moreMedia ?? 0).toBe(10 - shown.length);
    expect(text.match(cardLines)).toHaveLength(10);
    expect(text).not.toContain('cut to fit');
  },
);
