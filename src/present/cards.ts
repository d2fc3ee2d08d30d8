import { cleanAddress } from './landing.ts';
import { estimateTokens } from './tokens.ts';
import { add, type Fields, objects, textOf } from './view.ts';

/** What cards say that their ad does not. What several say is said once, with the numbers of them all. */
export interface CardCopy {
  /** `1–4, 6`. */
  cards: string;
  title?: string;
  body?: string;
  linkDescription?: string;
  ctaType?: string;
  landingUrl?: string;
}

/** Cards are free-form: the spellings seen, and those a service of the same kind would use. */
const CARD_FIELDS = {
  title: ['title', 'headline', 'name'],
  body: ['body', 'text'],
  linkDescription: ['link_description', 'linkDescription', 'description'],
  ctaType: ['cta_type', 'ctaType'],
  link: ['link_url', 'linkUrl', 'offerLink', 'url', 'link'],
};

/** A text of some cards, as long as it came. */
interface Said {
  field: keyof Omit<CardCopy, 'cards'>;
  text: string;
  numbers: number[];
}

/** What the cards say of their own; nothing when none of them does. */
export function copyOfCards(cards: Fields[], ad: Fields): CardCopy[] | undefined {
  const all = [...saidBy(cards, ad).values()];
  const fitting = fittedTexts(all);
  const copies = new Map<string, CardCopy>();
  for (const said of all.toSorted(byFirstCard)) {
    const numbers = rangesOf(said.numbers);
    const copy = copies.get(numbers) ?? { cards: numbers };
    add(copy, { [said.field]: fitting.get(said) });
    if (Object.keys(copy).length > 1) copies.set(numbers, copy);
  }
  return copies.size > 0 ? [...copies.values()] : undefined;
}

function saidBy(cards: Fields[], ad: Fields): Map<string, Said> {
  const landing = cleanAddress(ad.offerLink, LINK_TOKENS);
  const all = new Map<string, Said>();
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
      const said = all.get(`${field} ${text}`);
      if (said) said.numbers.push(index + 1);
      else all.set(`${field} ${text}`, { field, text, numbers: [index + 1] });
    }
  }
  return all;
}

const byFirstCard = (a: Said, b: Said) =>
  (a.numbers[0] ?? 0) - (b.numbers[0] ?? 0) || b.numbers.length - a.numbers.length;

/** All copy shares a budget: what short texts leave over goes to the long ones. */
const COPY_TOKENS = 600;
const LEAST_TOKENS = 14;
const CTA_TOKENS = 12;

function fittedTexts(all: Said[]): Map<Said, string | undefined> {
  const fitted = new Map<Said, string | undefined>();
  const copy: { said: Said; cost: number }[] = [];
  for (const said of all) {
    if (said.field === 'landingUrl') fitted.set(said, said.text);
    else if (said.field === 'ctaType') fitted.set(said, textOf(said.text, CTA_TOKENS));
    else copy.push({ said, cost: estimateTokens(said.text.slice(0, COPY_TOKENS * 8)) });
  }
  let left = COPY_TOKENS;
  let waiting = copy.length;
  for (const { said, cost } of copy.toSorted((a, b) => a.cost - b.cost)) {
    const share = Math.max(LEAST_TOKENS, left / waiting--);
    fitted.set(said, textOf(said.text, share));
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

/** What the first card says instead of the ad: its title, and its body where the ad has none of its own. */
export function firstCard(ad: Fields, tokens: number): string | undefined {
  const card = objects(ad.cards)[0];
  const title = filled(cardField(card, 'title'));
  const body = ad.body && !isTemplate(ad.body) ? undefined : filled(cardField(card, 'body'));
  return textOf(title && body && !body.startsWith(title) ? `${title} — ${body}` : (body ?? title), tokens);
}

export const linkOf = (card: Fields | undefined): string | undefined => cardField(card, 'link');

/** `{{product.name}}`: what the network fills in from a catalogue, and the ad library does not. */
export const isTemplate = (text: unknown): boolean => typeof text === 'string' && /\{\{[^{}]*\}\}/.test(text);

const LINK_TOKENS = 40;
const filled = (text: string | undefined) => (isTemplate(text) ? undefined : text);

function cardField(card: Fields | undefined, field: keyof typeof CARD_FIELDS): string | undefined {
  for (const name of CARD_FIELDS[field]) {
    const value = card?.[name];
    if (typeof value === 'string' && value.trim() !== '') return value;
  }
}
