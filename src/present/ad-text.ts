import type { AdView } from './ad.ts';
import { factsOf } from './ad-facts.ts';
import type { CardCopy } from './cards.ts';
import type { MediaLink } from './creative.ts';
import { quote, quoteLines, word } from './fence.ts';
import { fullText } from './full.ts';
import type { Detail } from './view.ts';

/** One ad, whole: who, what is known, then the copy on lines of its own. */
export function adText(ad: AdView, detail: Detail = 'standard'): string {
  if (detail === 'full') return fullText(ad);
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
    copyBlock('Link description', ad.linkDescription),
    copyBlock('Headline or body is a template; the first card says', ad.firstCard),
    ...cardLines(ad),
    ad.onlyInFull && `Only with detail full: ${ad.onlyInFull.map(word).join(', ')}`,
  ]
    .filter((line) => line)
    .join('\n');
}

function advertiserLine({ pageName, pageId, adsAmount, sourcePageExternalId }: AdView): string {
  const parts = [
    pageName === undefined ? 'Advertiser not named' : quote(pageName),
    pageId && `page ${word(pageId)}`,
    sourcePageExternalId && `external id ${word(sourcePageExternalId)}`,
    adsAmount !== undefined && `${adsAmount} ads`,
  ];
  return parts.filter((part) => part).join(', ');
}

function detailLine({ isStorePlatformBestSeller: best, productCreatedAt }: AdView): string {
  const parts = [
    best !== undefined && `${best ? '' : 'not '}a best seller of its store platform`,
    productCreatedAt && `product created ${word(productCreatedAt)}`,
  ];
  return parts.filter((part) => part).join(', ');
}

const labelled = (label: string, text: string | undefined) => (text === undefined ? '' : `${label}: ${quote(text)}`);

const copyBlock = (label: string, text: string | undefined) =>
  text === undefined ? '' : `${label}:\n${quoteLines(text)}`;

function mediaLine({ type, url, expired, expires }: MediaLink): string {
  if (url === undefined) return `media addresses expired on ${expired}`;
  return `${word(type)}: ${quote(url)}${expires === undefined ? '' : ` until ${expires}`}`;
}

function cardLines({ cardCopy = [], moreCards }: AdView): string[] {
  if (cardCopy.length === 0) return [];
  const said = cardCopy.map(cardPhrases);
  const lines = said.map((phrases, index) => `${index + 1}. ${phrases.join(', ') || 'nothing of its own'}`);
  return [
    'Cards:',
    ...lines,
    ...(moreCards === undefined ? [] : [`and ${moreCards} more cards, only with detail full`]),
  ];
}

function cardPhrases({ title, body, linkDescription, ctaType, landingUrl }: CardCopy): string[] {
  const texts = [title, body, linkDescription].flatMap((text) => (text === undefined ? [] : quote(text)));
  return [texts.join(' / '), ctaType && word(ctaType), landingUrl && `→ ${quote(landingUrl)}`].filter(
    (phrase): phrase is string => Boolean(phrase),
  );
}
