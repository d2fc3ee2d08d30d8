import { add, type Fields, objects, textOf } from './copy-fields.ts';
import { mediaOf } from './creative.ts';
import { cleanAddress } from './landing.ts';
import type { MediaLink } from './media-links.ts';
import { estimateTokens } from './tokens.ts';

/** One card, in the order the service sent them. */
export interface CardView {
  card: number;
  title?: string;
  body?: string;
  linkDescription?: string;
  ctaType?: string;
  landingUrl?: string;
  /** Fields that repeat an earlier card, by its number, or the ad itself. */
  sameAs?: SameAs;
  media?: MediaLink[];
}

export type SameAs = Partial<Record<CardField, number | 'ad'>>;
export type CardField = 'title' | 'body' | 'linkDescription' | 'ctaType' | 'landingUrl';

/** Cards are free-form: these are the spellings seen, and those that similar services use. */
const CARD_FIELDS = {
  title: ['title', 'headline', 'name'],
  body: ['body', 'text'],
  linkDescription: ['link_description', 'linkDescription', 'description'],
  ctaType: ['cta_type', 'ctaType'],
  link: ['link_url', 'linkUrl', 'offerLink', 'url', 'link'],
  video: ['video_hd_url', 'videoHdUrl', 'video_sd_url', 'videoSdUrl'],
  picture: ['resized_image_url', 'resizedImageUrl', 'original_image_url', 'originalImageUrl', 'image_url', 'imageUrl'],
  still: ['video_preview_image_url', 'videoPreviewImageUrl'],
} as const;

const MAX_CARDS = 20;

export interface Cards {
  /** Without their addresses. */
  views: CardView[];
  /** The pictures and videos of each of them. */
  media: Fields[][];
  /** Cards that are not shown. */
  more: number;
}

/** The first cards of an ad, each with what it says itself. */
export function viewCards(ad: Fields): Cards {
  const ofCards = mediaOfCards(ad);
  const shown = Math.min(ofCards.length, MAX_CARDS);
  const cards = objects(ad.cards).slice(0, shown);
  const views: CardView[] = Array.from({ length: shown }, (_, index) => ({ card: index + 1 }));
  const texts = textsOf(cards);
  const fitting = fittedTexts([...texts.values()].filter(({ field, text }) => text !== ownText(ad, field)));
  for (const known of texts.values()) {
    const { field, text, cards: numbers } = known;
    const [first = 0, ...others] = numbers;
    if (text === ownText(ad, field)) {
      // The ad's facts name its call to action already.
      if (field !== 'ctaType') for (const number of numbers) sameAs(views[number - 1], field, 'ad');
    } else if (fitting.get(known) !== undefined) {
      add(views[first - 1] ?? {}, { [field]: fitting.get(known) });
      for (const number of others) sameAs(views[number - 1], field, first);
    }
  }
  return { views, media: ofCards.slice(0, shown), more: ofCards.length - shown };
}

/** The pictures and videos of each card, wherever the service sends them. */
export function mediaOfCards(ad: Fields): Fields[][] {
  const cards = objects(ad.cards);
  return mediaOf(ad).ofCards.map((assets, index) => (assets.length > 0 ? assets : mediaIn(cards[index])));
}

function sameAs(view: CardView | undefined, field: CardField, source: number | 'ad'): void {
  if (view) view.sameAs = { ...view.sameAs, [field]: source };
}

/** What the ad itself says in a field that cards have, too. A title is the card's own. */
function ownText(ad: Fields, field: CardField): unknown {
  if (field === 'title') return undefined;
  return field === 'landingUrl' ? cleanAddress(ad.offerLink, LINK_TOKENS) : ad[field];
}

/** A text, uncut, and the numbers of the cards that have it. */
interface CardText {
  field: CardField;
  text: string;
  cards: number[];
}

function textsOf(cards: Fields[]): Map<string, CardText> {
  const all = new Map<string, CardText>();
  for (const [index, card] of cards.entries()) {
    const texts = {
      title: cardField(card, 'title'),
      body: cardField(card, 'body'),
      linkDescription: cardField(card, 'linkDescription'),
      ctaType: cardField(card, 'ctaType'),
      landingUrl: cleanAddress(linkOf(card), LINK_TOKENS),
    };
    for (const [name, text] of Object.entries(texts)) {
      if (text === undefined) continue;
      const field = name as CardField;
      const known = all.get(`${field} ${text}`);
      if (known) known.cards.push(index + 1);
      else all.set(`${field} ${text}`, { field, text, cards: [index + 1] });
    }
  }
  return all;
}

/** All texts share this budget: what short ones leave over goes to long ones. */
const COPY_TOKENS = 600;
const MIN_TOKENS = 14;
const CTA_TOKENS = 12;

function fittedTexts(all: CardText[]): Map<CardText, string | undefined> {
  const fitted = new Map<CardText, string | undefined>();
  const copy: { text: CardText; cost: number }[] = [];
  for (const text of all) {
    if (text.field === 'landingUrl') fitted.set(text, text.text);
    else if (text.field === 'ctaType') fitted.set(text, textOf(text.text, CTA_TOKENS));
    else copy.push({ text, cost: estimateTokens(text.text.slice(0, COPY_TOKENS * 8)) });
  }
  let left = COPY_TOKENS;
  let waiting = copy.length;
  for (const { text, cost } of copy.toSorted((a, b) => a.cost - b.cost)) {
    const share = Math.max(MIN_TOKENS, left / waiting--);
    fitted.set(text, textOf(text.text, share));
    left -= Math.min(cost, share);
  }
  return fitted;
}

/** The addresses in a card itself, for services that send them there. */
function mediaIn(card: Fields | undefined): Fields[] {
  const [video, picture, still] = [cardField(card, 'video'), cardField(card, 'picture'), cardField(card, 'still')];
  const thumb = picture ?? still;
  return [
    ...(thumb === undefined ? [] : [{ type: 'CARD_THUMB', url: thumb }]),
    ...(video === undefined ? [] : [{ type: 'CARD_VID', url: video }]),
  ];
}

/** The first card's title, and its body if the ad has none of its own. */
export function firstCard(ad: Fields, tokens: number): string | undefined {
  const card = objects(ad.cards)[0];
  const title = filled(cardField(card, 'title'));
  const body = ad.body && !isTemplate(ad.body) ? undefined : filled(cardField(card, 'body'));
  return textOf(title && body && !body.startsWith(title) ? `${title} — ${body}` : (body ?? title), tokens);
}

export const linkOf = (card: Fields | undefined): string | undefined => cardField(card, 'link');

/** `{{product.name}}`: the network fills this in from a catalogue, but the ad library does not. */
export const isTemplate = (text: unknown): boolean => typeof text === 'string' && /\{\{[^{}]*\}\}/.test(text);

const LINK_TOKENS = 40;
const filled = (text: string | undefined) => (isTemplate(text) ? undefined : text);

/** The first text that a card has under the spellings of a field. */
export function cardField(card: Fields | undefined, field: keyof typeof CARD_FIELDS): string | undefined {
  for (const name of CARD_FIELDS[field]) {
    const value = card?.[name];
    if (typeof value === 'string' && value.trim() !== '') return value;
  }
}
