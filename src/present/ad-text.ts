import { factsOf } from './ad-facts.ts';
import type { AdView } from './ad-view.ts';
import { type CardField, type CardView, isTemplate, type SameAs } from './cards.ts';
import { type Detail, FULL_TOKENS, groupBy } from './copy-fields.ts';
import { constant, quote, quoteLines, word } from './fence.ts';
import { fullText } from './full.ts';
import { count } from './list-text.ts';
import type { MediaLink } from './media-links.ts';

/** A single ad: the advertiser, the facts, then the copy on lines of its own. */
export function adText(ad: AdView, detail: Detail = 'standard', budget = FULL_TOKENS): string {
  if (detail === 'full') return fullText(ad, budget);
  return [
    `Ad ${word(ad.id)}`,
    advertiserLine(ad),
    factsOf(ad).join(', '),
    detailLine(ad),
    labelled('lands on', ad.landingUrl),
    ...mediaLines(ad.mediaLinks ?? []),
    labelled('in the app', ad.appUrl),
    copyBlock('Headline', ad.headline),
    copyBlock('Body', ad.body),
    linkDescription(ad),
    copyBlock('First card', ad.firstCard),
    ...cardLines(ad),
    ad.moreMedia &&
      `and ${ad.moreMedia} more ${ad.moreMedia === 1 ? 'picture or video' : 'pictures or videos'}, only with detail full`,
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

/** One line for each address, and one for those that expired on the same day. */
function mediaLines(links: readonly MediaLink[], indent = ''): string[] {
  const working = links.filter(({ url }) => url !== undefined);
  const days = groupBy(
    links.filter(({ url }) => url === undefined),
    ({ expired }) => expired,
  );
  return [
    ...working.map(
      (link) =>
        `${indent}${kindOf(link)}: ${quote(link.url ?? '')}${link.expires === undefined ? '' : ` until ${link.expires}`}`,
    ),
    ...[...days].map(([day, expired]) => `${indent}links expired on ${day}: ${kindsText(expired)}`),
  ];
}

const kindOf = ({ type }: MediaLink) => (/VID/i.test(type) ? 'video' : 'picture');

/** `picture and 2 videos`. */
function kindsText(links: readonly MediaLink[]): string {
  const kinds = groupBy(links, kindOf);
  return [...kinds].map(([kind, { length }]) => (length === 1 ? kind : `${length} ${kind}s`)).join(' and ');
}

function cardLines({ cardViews = [], moreCards }: AdView): string[] {
  if (cardViews.length === 0) return [];
  const lines = ['Cards:', ...cardViews.flatMap((card) => [cardLine(card), ...mediaLines(card.media ?? [], '   ')])];
  if (moreCards !== undefined) lines.push(`and ${count(moreCards, 'more card')}, only with detail full`);
  return lines;
}

function cardLine({ card, title, body, linkDescription, ctaType, landingUrl, sameAs }: CardView): string {
  const phrase = (label: string, text: string | undefined) => text !== undefined && `${label} ${quote(text)}`;
  const parts = [
    phrase('title', title),
    phrase('text', body),
    phrase('description', linkDescription),
    ctaType !== undefined && constant(ctaType),
    phrase('link', landingUrl),
    ...repeats(sameAs ?? {}),
  ];
  return `${card}. ${parts.filter((part) => part).join('; ') || 'without text or link'}`;
}

/** `title, text and link as card 1`. */
function repeats(sameAs: SameAs): string[] {
  const sources = groupBy(Object.entries(sameAs) as [CardField, number | 'ad'][], ([, source]) => source);
  return [...sources].map(([source, fields]) => {
    const labels = fields.map(([field]) => CARD_LABELS[field]);
    const listed = [labels.slice(0, -1).join(', '), labels.at(-1)].filter(Boolean).join(' and ');
    return `${listed} as ${source === 'ad' ? 'the ad' : `card ${source}`}`;
  });
}

const CARD_LABELS: Record<CardField, string> = {
  title: 'title',
  body: 'text',
  linkDescription: 'description',
  ctaType: 'call to action',
  landingUrl: 'link',
};
