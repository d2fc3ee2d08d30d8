import { cleanAddress } from './landing.ts';
import { estimateTokens } from './tokens.ts';
import { add, type Fields, objects, textOf } from './view.ts';

/** Card copy that differs from the ad's own. Cards that share a text are listed together, by number. */
export interface CardCopy {
  /** `1–4, 6`. */
  cards: string;
  title?: string;
  body?: string;
  linkDescription?: string;
  ctaType?: string;
  landingUrl?: string;
}

/** Cards are free-form: these are the spellings seen, and those that similar services use. */
const CARD_FIELDS = {
  title: ['title', 'headline', 'name'],
  body: ['body', 'text'],
  linkDescription: ['link_description', 'linkDescription', 'description'],
  ctaType: ['cta_type', 'ctaType'],
  link: ['link_url', 'linkUrl', 'offerLink', 'url', 'link'],
};

/** A text that some cards share, uncut. */
interface CardText {
  field: keyof Omit<CardCopy, 'cards'>;
  text: string;
  numbers: number[];
}

/** The copy that differs from the ad's own; undefined if there is none. */
export function copyOfCards(cards: Fields[], ad: Fields): CardCopy[] | undefined {
  const all = [...textsOf(cards, ad).values()];
  const fitting = fittedTexts(all);
  const copies = new Map<string, CardCopy>();
  for (const text of all.toSorted(byFirstCard)) {
    const numbers = rangesOf(text.numbers);
    const copy = copies.get(numbers) ?? { cards: numbers };
    add(copy, { [text.field]: fitting.get(text) });
    if (Object.keys(copy).length > 1) copies.set(numbers, copy);
  }
  return copies.size > 0 ? [...copies.values()] : undefined;
}

function textsOf(cards: Fields[], ad: Fields): Map<string, CardText> {
  const landing = cleanAddress(ad.offerLink, LINK_TOKENS);
  const all = new Map<string, CardText>();
  for (const [index, card] of cards.entries()) {
    const own = (field: 'body' | 'linkDescription' | 'ctaType') => {
      const value = cardField(card, field);
      return value === ad[field] ? undefined : value;
    };
    const landingUrl = cleanAddress(linkOf(card), LINK_TOKENS);
    const texts = {
      title: cardField(card, 'title'),
      body: own('body'),
      linkDescription: own('linkDescription'),
      ctaType: own('ctaType'),
      landingUrl: landingUrl === landing ? undefined : landingUrl,
    };
    for (const [name, text] of Object.entries(texts)) {
      if (text === undefined) continue;
      const field = name as keyof typeof texts;
      const known = all.get(`${field} ${text}`);
      if (known) known.numbers.push(index + 1);
      else all.set(`${field} ${text}`, { field, text, numbers: [index + 1] });
    }
  }
  return all;
}

const byFirstCard = (a: CardText, b: CardText) =>
  (a.numbers[0] ?? 0) - (b.numbers[0] ?? 0) || b.numbers.length - a.numbers.length;

/** All texts share this budget: what short ones leave over goes to long ones. */
const COPY_TOKENS = 600;
const MIN_TOKENS = 14;
const CTA_TOKENS = 12;

function fittedTexts(all: CardText[]): Map<CardText, string | undefined> {
  const fitted = new Map<CardText, string | undefined>();
  const copy: { card: CardText; cost: number }[] = [];
  for (const card of all) {
    if (card.field === 'landingUrl') fitted.set(card, card.text);
    else if (card.field === 'ctaType') fitted.set(card, textOf(card.text, CTA_TOKENS));
    else copy.push({ card, cost: estimateTokens(card.text.slice(0, COPY_TOKENS * 8)) });
  }
  let left = COPY_TOKENS;
  let waiting = copy.length;
  for (const { card, cost } of copy.toSorted((a, b) => a.cost - b.cost)) {
    const share = Math.max(MIN_TOKENS, left / waiting--);
    fitted.set(card, textOf(card.text, share));
    left -= Math.min(cost, share);
  }
  return fitted;
}

/** `1–4, 6` of ascending numbers. */
function rangesOf(numbers: readonly number[]): string {
  const ranges: [from: number, to: number][] = [];
  for (const number of numbers) {
    const last = ranges.at(-1);
    if (last?.[1] === number - 1) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`)).join(', ');
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

function cardField(card: Fields | undefined, field: keyof typeof CARD_FIELDS): string | undefined {
  for (const name of CARD_FIELDS[field]) {
    const value = card?.[name];
    if (typeof value === 'string' && value.trim() !== '') return value;
  }
}
