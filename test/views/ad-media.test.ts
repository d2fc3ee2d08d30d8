import { describe, expect, test } from 'vitest';
import { buildAdView, formatAd } from '../../src/views/ad.ts';
import { createMediaLinkBuilder, describeCreative, groupMedia } from '../../src/views/ad-media.ts';
import { estimateTokens } from '../../src/views/tokens.ts';
import { everyFact, now } from './sample-ads.ts';

const asset = (type: string, nr?: number, durationSeconds?: number) => ({
  type,
  nr,
  durationSeconds,
  url: `https://m.example/${type}${nr}`,
});

const cardMedia = [0, 1, 2].flatMap((nr) => [asset('CARD_THUMB', nr), asset('CARD_VID', nr, 8 + nr)]);
const video = asset('VID', 0, 15);
const images = [asset('THUMB', 0), asset('THUMB', 1)];

test.each<[what: string, ad: Record<string, unknown>, words: string | undefined]>([
  ['a video by its length', { displayFormat: 'VIDEO', media: [video, asset('THUMB', 0)] }, '15 s'],
  ['no picture', { displayFormat: 'IMAGE', media: [asset('THUMB', 0), asset('PA_PP')] }, undefined],
  ['cards by their number', { displayFormat: 'DCO', cards: [{}, {}] }, '2 cards'],
  ['no picture beside cards', { displayFormat: 'DCO', media: [asset('THUMB', 0)], cards: [{}, {}] }, '2 cards'],
  ['pictures without a format', { media: images }, '2 images'],
  ['several pictures', { displayFormat: 'IMAGE', media: images }, '2 images'],
  ['a picture of another format', { displayFormat: 'DCO', media: [asset('THUMB', 0)] }, 'image'],
  [
    'videos of cards',
    { displayFormat: 'CAROUSEL', media: cardMedia, cards: [{}, {}, {}] },
    '3 cards (3 videos 8–10 s)',
  ],
  [
    'a video beside cards',
    { displayFormat: 'VIDEO', media: [video, ...cardMedia], cards: [{}, {}, {}] },
    '15 s + 3 cards (3 videos 8–10 s)',
  ],
  ['nothing that is unknown', {}, undefined],
  ['no media that are unknown', { displayFormat: 'VIDEO', media: [] }, undefined],
  ['a picture that is called a video', { displayFormat: 'VIDEO', media: [asset('THUMB', 0)] }, '(media: image)'],
  ['a video that is called a picture', { displayFormat: 'IMAGE', media: [video] }, '(media: video 15 s)'],
  ['cards that are called a video', { displayFormat: 'VIDEO', cards: [{}, {}] }, '(media: 2 cards)'],
])("the short description of an ad's media mentions %s", (_, ad, words) => expect(describeCreative(ad)).toBe(words));

describe('The media of an ad', () => {
  const urlsOf = (assets: { url?: unknown }[]) => assets.map(({ url }) => url);

  test('the media of an ad are grouped by card, without the profile picture of the advertiser', () => {
    const cards = [asset('CARD_VID', 1), asset('CARD_THUMB', 1), asset('CARD_THUMB', 0)];
    const media = [asset('PA_PP'), ...cards, asset('VID', 0)];
    const { adMedia: ownMedia, mediaByCard } = groupMedia({ media, cards: [{}, {}] });
    expect(urlsOf(ownMedia)).toEqual(['https://m.example/VID0']);
    expect(mediaByCard.map(urlsOf)).toEqual([
      ['https://m.example/CARD_THUMB0'],
      ['https://m.example/CARD_THUMB1', 'https://m.example/CARD_VID1'],
    ]);
  });

  test('the media of an ad are assigned to its carousel cards in the order of the media numbers', () => {
    const media = [3, 1, 2].map((nr) => asset('CARD_THUMB', nr));
    expect(groupMedia({ media, cards: [{}, {}, {}] }).mediaByCard.map(urlsOf)).toEqual(
      [1, 2, 3].map((nr) => [`https://m.example/CARD_THUMB${nr}`]),
    );
  });

  test('media whose number matches no carousel card are assigned to the ad as a whole', () => {
    const { adMedia: ownMedia, mediaByCard } = groupMedia({
      media: [asset('CARD_THUMB', 7), asset('CARD_THUMB', 0)],
      cards: [{}, {}, {}],
    });
    expect(urlsOf(ownMedia)).toEqual(['https://m.example/CARD_THUMB7']);
    expect(mediaByCard.map(urlsOf)).toEqual([['https://m.example/CARD_THUMB0'], [], []]);
  });
});

test('a media link without a type is listed with the type media in the view of an ad', () => {
  expect(createMediaLinkBuilder(500, now).buildLinks([{ url: 'https://m.example/1' }])).toEqual([
    { type: 'media', url: 'https://m.example/1' },
  ]);
});

test('invalid media URLs of an ad are counted but not shown', () => {
  const links = createMediaLinkBuilder(100_000, now);
  const long = `https://m.example/${'x1'.repeat(2000)}`;
  const withBackslash = 'https://m.example\\1.jpg';
  const urls = [long, withBackslash, 'javascript:alert(1)', 7, undefined];
  expect(links.buildLinks(urls.map((url) => ({ url })))).toEqual([]);
  expect(links.omittedCount).toBe(urls.length);
});

const viewAdWithCards = (cards: object[], media: object[] = []) =>
  buildAdView({ ...everyFact, media, cards }, { detail: 'standard', now });
const splitCardLines = (text: string) => text.slice(text.indexOf('\nCards, ') + 1).split('\n');

const cardsLine = 'Cards, without what the ad or an earlier card says:';

describe('The cards of an ad', () => {
  test('the cards of an ad are listed in order, each with its text, link and picture', () => {
    const names = ['Tan', 'Black', 'Oak', 'Moss', 'Sand'];
    const cards = names.map((title) => ({
      title,
      body: `${title} is made to order`,
      link_url: `https://serra.example/${title}`,
    }));
    const media = names.map((_, nr) => ({ type: 'CARD_THUMB', nr, url: `https://media.example/${nr}.jpg` })).reverse();
    expect(splitCardLines(formatAd(viewAdWithCards(cards, media)))).toEqual([
      cardsLine,
      ...names.flatMap((title, nr) => [
        `${nr + 1}. title "${title}"; text "${title} is made to order"; link "https://serra.example/${title}"`,
        `   picture: "https://media.example/${nr}.jpg"`,
      ]),
    ]);
  });

  test('a text that several cards of an ad repeat is shown only on the first card', () => {
    const body = 'Every pair is made to order in our workshop, and resoled there. '.repeat(6).trim();
    const cards = ['Tan', 'Black', 'Oak'].map((title) => ({ title, body, link_url: everyFact.offerLink }));
    const view = viewAdWithCards([...cards, { title: 'Tan', body: 'Other' }]);
    expect(view.cardViews).toEqual([
      { card: 1, title: 'Tan', body },
      { card: 2, title: 'Black' },
      { card: 3, title: 'Oak' },
      { card: 4, body: 'Other' },
    ]);
    expect(splitCardLines(formatAd(view))).toEqual([
      cardsLine,
      `1. title "Tan"; text "${body}"`,
      '2. title "Black"',
      '3. title "Oak"',
      '4. text "Other"',
    ]);
  });

  test('a carousel card without text is still listed with its number', () => {
    const view = viewAdWithCards([{ title: '\u200b' }, { title: 'Tan', body: everyFact.body }]);
    expect(splitCardLines(formatAd(view))).toEqual([cardsLine, '1. nothing of its own', '2. title "Tan"']);
  });

  test('an ad with numbered media but without carousel cards is shown with one card for each number', () => {
    const media = [0, 1].map((nr) => ({ type: 'CARD_VID', nr, url: `https://media.example/${nr}.mp4` }));
    expect(splitCardLines(formatAd(viewAdWithCards([], media)))).toContain('   video: "https://media.example/1.mp4"');
  });

  test('a carousel card shows the media URLs from its own fields if the ad has no media list', () => {
    const card = { title: 'Tan', video_hd_url: null, resized_image_url: 'https://media.example/tan.jpg' };
    expect(viewAdWithCards([card]).cardViews?.[0]?.media).toEqual([
      { type: 'CARD_THUMB', url: card.resized_image_url },
    ]);
  });

  test('the expired media links of a carousel card are summarized on one line', () => {
    const url = 'https://media.example/v.mp4?expires=1767225600';
    const media = ['CARD_THUMB', 'CARD_VID'].map((type) => ({ type, nr: 0, url }));
    expect(splitCardLines(formatAd(viewAdWithCards([{ title: 'Tan' }], media)))[2]).toBe(
      '   links expired on 2026-01-01: picture and video',
    );
  });

  test('the view of an ad shows the first twenty carousel cards and only the number of further cards', () => {
    const cards = Array.from({ length: 23 }, (_, nr) => ({ title: `Card ${nr}` }));
    expect(formatAd(viewAdWithCards(cards))).toContain(
      '\n20. title "Card 19"\nand 3 more cards, only with detail full',
    );
    expect(viewAdWithCards(Array.from({ length: 100_000 }, () => ({}))).moreCards).toBe(99_980);
  });

  test('the card texts of an ad are shown in full if it has few cards, and are cut if it has many', () => {
    const text = (nr: number) => `${nr} is the number of this pair, and there is more to say of it. `.repeat(6).trim();
    const cards = (count: number) => Array.from({ length: count }, (_, nr) => ({ body: text(nr) }));
    expect(viewAdWithCards(cards(4)).cardViews?.map(({ body }) => body)).toEqual([0, 1, 2, 3].map(text));
    for (const { body } of viewAdWithCards(cards(20)).cardViews ?? [])
      expect(body).toMatch(/^\d+ is the number.*… \(\+\d+ chars\)$/);
    expect(estimateTokens(JSON.stringify(viewAdWithCards(cards(20)).cardViews))).toBeLessThan(900);
  });

  test('the cards of an ad show as many media URLs as fit into the token budget and count the rest', () => {
    const signed = (nr: number, type: string) => `https://media.example/${type}${nr}?sign=${'aZ9x_Q7'.repeat(60)}`;
    const media = Array.from({ length: 12 }, (_, nr) =>
      ['CARD_THUMB', 'CARD_VID'].map((type) => ({ type, nr, url: signed(nr, type) })),
    ).flat();
    const cards = Array.from({ length: 12 }, (_, nr) => ({ title: `Card ${nr}` }));
    const view = buildAdView({ ...everyFact, media, cards }, { detail: 'standard', now, maxTokens: 5000 });
    const text = formatAd(view);
    expect(estimateTokens(text)).toBeLessThanOrEqual(5000);
    const shownLinks = text.match(/^ {3}(?:picture|video): /gm) ?? [];
    expect(shownLinks.length).toBeGreaterThan(8);
    expect(shownLinks.join()).not.toMatch(/video.*picture/);
    expect(text).toContain(`\nand ${24 - shownLinks.length} more pictures or videos, only with detail full`);
  });
});
