import { describe, expect, test } from 'vitest';
import { creativeOf, linkWriter, mediaOf } from '../../src/present/ad-media.ts';
import { now } from './sample-ads.ts';

const asset = (type: string, nr?: number, durationSeconds?: number) => ({
  type,
  nr,
  durationSeconds,
  url: `https://m.example/${type}${nr}`,
});

describe('what there is to look at', () => {
  test('is described in words, without repeating the format', () => {
    expect(creativeOf({ displayFormat: 'VIDEO', media: [asset('VID', 0, 15), asset('THUMB', 0)] })).toBe('15 s');
    expect(creativeOf({ displayFormat: 'IMAGE', media: [asset('THUMB', 0), asset('PA_PP')] })).toBeUndefined();
    expect(creativeOf({ displayFormat: 'DCO', cards: [{}, {}] })).toBe('2 cards');
    expect(creativeOf({ media: [asset('THUMB', 0), asset('THUMB', 1)] })).toBe('2 images');
  });

  test('counts media, without stills and portraits', () => {
    const media = [0, 1, 2].flatMap((nr) => [asset('CARD_THUMB', nr), asset('CARD_VID', nr, 8 + nr)]);
    expect(creativeOf({ displayFormat: 'CAROUSEL', media, cards: [{}, {}, {}] })).toBe('3 cards (3 videos 8–10 s)');
    expect(creativeOf({ displayFormat: 'VIDEO', media: [asset('VID', 0, 15), ...media], cards: [{}, {}, {}] })).toBe(
      '15 s + 3 cards (3 videos 8–10 s)',
    );
  });

  test('is empty where nothing is known', () => {
    expect(creativeOf({})).toBeUndefined();
  });
});

describe('a format that the media contradict', () => {
  test('is followed by what the media are', () => {
    expect(creativeOf({ displayFormat: 'VIDEO', media: [asset('THUMB', 0)] })).toBe('(media: image)');
    expect(creativeOf({ displayFormat: 'IMAGE', media: [asset('VID', 0, 15)] })).toBe('(media: video 15 s)');
    expect(creativeOf({ displayFormat: 'VIDEO', cards: [{}, {}] })).toBe('(media: 2 cards)');
  });

  test('stands alone where the media agree, or are unknown', () => {
    expect(creativeOf({ displayFormat: 'VIDEO', media: [] })).toBeUndefined();
    expect(creativeOf({ displayFormat: 'IMAGE', media: [asset('THUMB', 0), asset('THUMB', 1)] })).toBe('2 images');
    expect(creativeOf({ displayFormat: 'DCO', media: [asset('THUMB', 0)] })).toBe('image');
  });
});

describe('the pictures and videos of an ad', () => {
  const urlsOf = (assets: { url?: unknown }[]) => assets.map(({ url }) => url);

  test('are its own and those of each card, without the portrait of the advertiser', () => {
    const media = [
      asset('PA_PP'),
      asset('CARD_VID', 1),
      asset('CARD_THUMB', 1),
      asset('CARD_THUMB', 0),
      asset('VID', 0),
    ];
    const { own, ofCards } = mediaOf({ media, cards: [{}, {}] });
    expect(urlsOf(own)).toEqual(['https://m.example/VID0']);
    expect(ofCards.map(urlsOf)).toEqual([
      ['https://m.example/CARD_THUMB0'],
      ['https://m.example/CARD_THUMB1', 'https://m.example/CARD_VID1'],
    ]);
  });

  test('belong to the cards in their order, wherever their numbers start', () => {
    const media = [3, 1, 2].map((nr) => asset('CARD_THUMB', nr));
    expect(mediaOf({ media, cards: [{}, {}, {}] }).ofCards.map(urlsOf)).toEqual(
      [1, 2, 3].map((nr) => [`https://m.example/CARD_THUMB${nr}`]),
    );
  });

  test('stand beside the ad where no card has their number', () => {
    const { own, ofCards } = mediaOf({ media: [asset('CARD_THUMB', 7), asset('CARD_THUMB', 0)], cards: [{}, {}, {}] });
    expect(urlsOf(own)).toEqual(['https://m.example/CARD_THUMB7']);
    expect(ofCards.map(urlsOf)).toEqual([['https://m.example/CARD_THUMB0'], [], []]);
  });
});

describe('addresses', () => {
  test('are written while there is room, and the others counted', () => {
    const links = linkWriter(120, now);
    const written = links.write([0, 1, 2, 3, 4].map((nr) => asset('CARD_THUMB', nr)));
    expect(written.length).toBeGreaterThan(1);
    expect(written.length + links.leftOut).toBe(5);
    expect(links.leftOut).toBeGreaterThan(0);
  });

  test('are called media where their role is unknown', () => {
    expect(linkWriter(500, now).write([{ url: 'https://m.example/1' }])).toEqual([
      { type: 'media', url: 'https://m.example/1' },
    ]);
  });

  test('that no one could follow are counted, not written', () => {
    const links = linkWriter(100_000, now);
    const long = `https://m.example/${'x1'.repeat(2000)}`;
    expect(links.write([{ url: long }, { url: 'javascript:alert(1)' }, { url: 7 }, {}])).toEqual([]);
    expect(links.leftOut).toBe(4);
  });
});
