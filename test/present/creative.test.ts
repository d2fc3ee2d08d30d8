import { describe, expect, test } from 'vitest';
import { creativeOf, mediaLinks } from '../../src/present/creative.ts';
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

describe('addresses worth having', () => {
  test('are those of the videos, or else of the pictures, and few', () => {
    expect(mediaLinks([asset('VID', 0), asset('THUMB', 0), asset('PA_PP')], now)).toEqual([
      { type: 'VID', url: 'https://m.example/VID0' },
    ]);
    expect(
      mediaLinks(
        [0, 1, 2, 3, 4].map((nr) => asset('CARD_THUMB', nr)),
        now,
      ),
    ).toHaveLength(3);
  });

  test('are called media where their role is unknown', () => {
    expect(mediaLinks([{ url: 'https://m.example/1' }], now)).toEqual([{ type: 'media', url: 'https://m.example/1' }]);
  });

  test('are never longer than their share of the result', () => {
    expect(mediaLinks([{ type: 'VID', url: `https://m.example/${'x1'.repeat(900)}` }], now)).toEqual([]);
  });
});
