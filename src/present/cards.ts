import { cleanAddress } from './landing.ts';
import { add, type Fields, objects, textOf } from './view.ts';

/** What a card says that its ad does not. */
export interface CardCopy {
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

/** What each card says of its own; nothing when none of them does. */
export function copyOfCards(cards: Fields[], ad: Fields): CardCopy[] | undefined {
  const landing = cleanAddress(ad.offerLink, LINK_TOKENS);
  const copies = cards.map((card) => {
    const own = (field: 'body' | 'linkDescription' | 'ctaType', tokens: number) => {
      const value = cardField(card, field);
      return value === ad[field] ? undefined : textOf(value, tokens);
    };
    const landingUrl = cleanAddress(linkOf(card), LINK_TOKENS);
    const copy: CardCopy = {};
    add(copy, {
      title: textOf(cardField(card, 'title'), 40),
      body: own('body', 60),
      linkDescription: own('linkDescription', 30),
      ctaType: own('ctaType', 12),
      landingUrl: landingUrl === landing ? undefined : landingUrl,
    });
    return copy;
  });
  return copies.some((copy) => Object.keys(copy).length > 0) ? copies : undefined;
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
