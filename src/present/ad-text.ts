import type { AdView } from './ad.ts';
import { factsOf } from './ad-facts.ts';
import { type CardCopy, isTemplate } from './cards.ts';
import type { MediaLink } from './creative.ts';
import { constant, quote, quoteLines, word } from './fence.ts';
import { fullText } from './full.ts';
import { count } from './list-text.ts';
import { type Detail, FULL_TOKENS } from './view.ts';

/** A single ad: the advertiser, the facts, then the copy on lines of its own. */
export function adText(ad: AdView, detail: Detail = 'standard', budget = FULL_TOKENS): string {
  if (detail === 'full') return fullText(ad, budget);
  return [
    `Ad ${word(ad.id)}`,
    advertiserLine(ad),
    factsOf(ad).join(', '),
    detailLine(ad),
    labelled('lands on', ad.landingUrl),
    ...(ad.mediaLinks ?? []).map(mediaLine),
    labelled('in the app', ad.appUrl),
    copyBlock('Headline', ad.headline),
    copyBlock('Body', ad.body),
    linkDescription(ad),
    copyBlock('First card', ad.firstCard),
    ...cardLines(ad),
    ad.onlyInFull && `Only with detail full: ${quote(ad.onlyInFull.join(', '))}`,
  ]
    .filter((line) => line)
    .join('\n');
}

function advertiserLine({ pageName, pageId, adsAmount, sourcePageExternalId }: AdView): string {
  const parts = [
    pageName === undefined ? 'Advertiser not named' : quote(pageName),
    pageId && `page ${word(pageId)}`,
    sourcePageExternalId && `external id ${word(sourcePageExternalId)}`,
    adsAmount !== undefined && count(adsAmount, 'ad'),
  ];
  return parts.filter((part) => part).join(', ');
}

function detailLine({ isStorePlatformBestSeller: best, productCreatedAt }: AdView): string {
  const parts = [
    best !== undefined && `${best ? '' : 'not '}a best seller on its store platform`,
    productCreatedAt && `product created ${word(productCreatedAt)}`,
  ];
  return parts.filter((part) => part).join(', ');
}

const labelled = (label: string, text: string | undefined) => (text === undefined ? '' : `${label}: ${quote(text)}`);

const copyBlock = (label: string, text: string | undefined) =>
  text === undefined ? '' : `${label}${isTemplate(text) ? ', a template' : ''}:\n${quoteLines(text)}`;

function linkDescription({ linkDescription: text, body }: AdView): string {
  return text !== undefined && text === body
    ? 'Link description: same as the body'
    : copyBlock('Link description', text);
}

function mediaLine({ type, url, expired, expires }: MediaLink): string {
  if (url === undefined) return `media links expired on ${expired}`;
  return `media ${constant(type)}: ${quote(url)}${expires === undefined ? '' : ` until ${expires}`}`;
}

/** A text that several cards share appears once: `1–10. "Free returns"`. */
function cardLines({ cardCopy = [], moreCards }: AdView): string[] {
  if (cardCopy.length === 0) return [];
  const lines = ['Cards:', ...cardCopy.map((copy) => `${copy.cards}. ${cardPhrases(copy)}`)];
  if (moreCards !== undefined) lines.push(`and ${moreCards} more cards, only with detail full`);
  return lines;
}

function cardPhrases({ title, body, linkDescription, ctaType, landingUrl }: CardCopy): string {
  const texts = [title, body, linkDescription].flatMap((text) => (text === undefined ? [] : quote(text)));
  const parts = [texts.join(': '), ctaType && constant(ctaType), landingUrl && `→ ${quote(landingUrl)}`];
  return parts.filter((part) => part).join(', ');
}
