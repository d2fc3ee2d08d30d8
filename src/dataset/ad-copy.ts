import { cardField, isTemplate } from '../present/ad-media.ts';
import { type Fields, objects } from '../present/copy-fields.ts';
import { bounded, textCell } from './cells.ts';

/** Everything an ad says in words: headline, body and what its cards say, each text once. */
export interface AdCopy {
  headline: string | null;
  body: string | null;
  cards: CardCopy[];
}

export interface CardCopy {
  title: string | null;
  body: string | null;
}

export const copyOf = (ad: Fields): AdCopy => ({
  headline: textCell(ad.headline),
  body: textCell(ad.body),
  cards: objects(ad.cards).map((card) => ({
    title: textCell(cardField(card, 'title')),
    body: textCell(cardField(card, 'body')),
  })),
});

/** All texts of an ad together, one after the other. */
export function wholeText({ headline, body, cards }: AdCopy): string | null {
  const texts = [headline, body, ...cards.flatMap((card) => [card.title, card.body])];
  const whole = [...new Set(texts.filter((text) => text !== null))].join('\n');
  return whole === '' ? null : bounded(whole);
}

/**
 * What a reader sees first: the first line of the body, or of what stands in for it. A template of the network
 * (`{{product.name}}`) is seen by nobody.
 */
export function firstLineOf({ headline, body, cards: [card] }: AdCopy): string | null {
  for (const text of [body, card?.body, headline, card?.title]) {
    if (!text || isTemplate(text)) continue;
    const line = text
      .trim()
      .split(/\r?\n|\r/, 1)[0]
      ?.trim();
    if (line) return line;
  }
  return null;
}

/** The words that make one ad's copy another's: headline and body, or what the cards say where it has neither. */
export function variantCopy({ headline, body, cards }: AdCopy): string | null {
  return wholeText({ headline, body, cards: [] }) ?? wholeText({ headline: null, body: null, cards });
}
