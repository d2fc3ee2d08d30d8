import * as z from 'zod';
import { type CardCopy, copyOfCards, firstCard, isTemplate, linkOf } from './cards.ts';
import { creativeOf, type MediaLink, mediaLinks } from './creative.ts';
import { fullItem } from './full.ts';
import { cleanAddress, domainOf } from './landing.ts';
import { dayOf, type Run, runOf } from './running.ts';
import { estimateTokens } from './tokens.ts';
import {
  add,
  type Detail,
  type Fields,
  FULL_TOKENS,
  ID_TOKENS,
  idOf,
  isObject,
  keep,
  objects,
  textOf,
} from './view.ts';

/**
 * The schema of an ad that clients see. More would cost every conversation tokens, and clients would reject a paid
 * answer as soon as the service changed the type of a field.
 */
export const AdView = z.looseObject({ id: z.string() });

/** API fields keep their names and values, with texts shortened; the other fields are derived. */
export type AdView = {
  id: string;
  pageName?: string;
  pageId?: string;
  adsAmount?: number;
  headline?: string;
  body?: string;
  linkDescription?: string;
  /** Copy of the first card, if headline or body is missing or an unfilled template. */
  firstCard?: string;
  cardCopy?: CardCopy[];
  moreCards?: number;
  ctaType?: string;
  displayFormat?: string;
  /** The pictures, videos and cards, as far as `displayFormat` does not name them. */
  creative?: string;
  mediaLinks?: MediaLink[];
  landingDomain?: string;
  landingUrl?: string;
  displayUrl?: string;
  publisherPlatform?: string[];
  countries?: string[];
  startedAt?: string;
  lastSeenAt?: string;
  /** The day of `lastSeenAt`, in brief views: the time is not worth ten tokens for each ad. */
  lastSeen?: string;
  endDate?: string;
  duplicates?: number;
  audienceReach?: number;
  adSpendMin?: number;
  adSpendMax?: number;
  revenueMin?: number;
  revenueMax?: number;
  trendPublic?: number;
  performancePublic?: number;
  productTitle?: string;
  productPrice?: number;
  productCreatedAt?: string;
  isStorePlatformBestSeller?: boolean;
  sourcePageExternalId?: string;
  appUrl?: string;
  /** Names of the fields that only `full` shows. */
  onlyInFull?: string[];
} & Run;

export interface AdOptions {
  detail: Detail;
  /** In milliseconds since the epoch; decides what is still running. */
  now: number;
  /** Maximum tokens of the text of a full view; its data may hold more. */
  budget?: number;
}

export function viewAd(ad: object, { detail, now, budget = FULL_TOKENS }: AdOptions): AdView {
  const source = ad as Fields;
  if (detail === 'brief') return briefView(source, now);
  return detail === 'standard' ? standardView(source, now) : fullAd(source, now, budget);
}

/** The maximum tokens of a text, or the type of a field. Views show the fields in this order. */
const BRIEF_FACTS = {
  displayFormat: 12,
  ctaType: 12,
  publisherPlatform: 'words',
  countries: 'words',
  startedAt: 20,
  endDate: 20,
  duplicates: 'number',
  audienceReach: 'number',
  adSpendMin: 'number',
  adSpendMax: 'number',
  revenueMin: 'number',
  revenueMax: 'number',
  trendPublic: 'number',
  performancePublic: 'number',
  productTitle: 16,
  productPrice: 'number',
} as const;

const STANDARD_COPY = { headline: 150, body: 2000, linkDescription: 300 } as const;
const STANDARD_FACTS = {
  ...BRIEF_FACTS,
  lastSeenAt: 20,
  productTitle: 60,
  productCreatedAt: 20,
  isStorePlatformBestSeller: 'flag',
  sourcePageExternalId: 40,
  appUrl: 100,
} as const;

function briefView(ad: Fields, now: number): AdView {
  const view = advertised(ad, 20);
  addOpening(view, ad);
  add(view, { creative: creativeOf(ad) });
  keep(view, ad, BRIEF_FACTS);
  const { daysRunning, stillRunning } = runOf(ad, now);
  add(view, { lastSeen: dayOf(ad.lastSeenAt), daysRunning, stillRunning });
  addLanding(view, ad);
  return view;
}

const MAX_CARDS = 20;

function standardView(ad: Fields, now: number): AdView {
  const view = advertised(ad, 100);
  keep(view, pageOf(ad), { adsAmount: 'number' });
  keep(view, ad, STANDARD_COPY);
  const cards = objects(ad.cards);
  const links = mediaLinks(ad.media, now);
  add(view, {
    cardCopy: copyOfCards(cards.slice(0, MAX_CARDS), ad),
    moreCards: cards.length > MAX_CARDS ? cards.length - MAX_CARDS : undefined,
    creative: creativeOf(ad),
    mediaLinks: links.length > 0 ? links : undefined,
  });
  keep(view, ad, STANDARD_FACTS);
  add(view, runOf(ad, now));
  addLanding(view, ad);
  add(view, { landingUrl: cleanAddress(ad.offerLink, 100) });
  keep(view, { onlyInFull: Object.keys(ad).filter((name) => !SHOWN.has(name) && !isEmpty(ad[name])) }, ONLY_IN_FULL);
  return view;
}

const DERIVED_TOKENS = 100;

/** Everything the service sent, after the derived fields. If both use a name, the service's value wins. */
function fullAd(ad: Fields, now: number, budget: number): AdView {
  const id = idOf(ad.id);
  const view: AdView = { id };
  add(view, { creative: creativeOf(ad), ...runOf(ad, now) });
  addLanding(view, ad);
  return { ...view, ...fullItem(ad, budget - DERIVED_TOKENS), id };
}

const pageOf = (ad: Fields): Fields => (isObject(ad.page) ? ad.page : {});

function advertised(ad: Fields, nameTokens: number): AdView {
  const view: AdView = { id: idOf(ad.id) };
  keep(view, pageOf(ad), { pageName: nameTokens });
  keep(view, ad, { pageId: ID_TOKENS });
  return view;
}

/** Shared by the headline and the start of the body, so that a short one leaves room for the other. */
const COPY_TOKENS = 45;
const HEADLINE_TOKENS = 28;
const CARD_TOKENS = 36;
const OPENING_CHARS = 24;

/** Leaves out a headline that only repeats the advertiser's name. A template shows its first card. */
function addOpening(view: AdView, ad: Fields): void {
  const repeats = ad.headline === pageOf(ad).pageName;
  const headline = repeats ? undefined : textOf(ad.headline, HEADLINE_TOKENS);
  const left = COPY_TOKENS - (headline === undefined ? 0 : estimateTokens(headline));
  const needsCard = isTemplate(ad.headline) || isTemplate(ad.body) || (!ad.headline && !ad.body);
  add(view, {
    headline,
    body: textOf(ad.body, Math.max(left, minTokensOf(ad.body))),
    firstCard: needsCard ? firstCard(ad, CARD_TOKENS) : undefined,
  });
}

/** Enough for a few words of the body, even if every letter costs three tokens. */
const minTokensOf = (text: unknown) =>
  typeof text === 'string' ? estimateTokens(text.slice(0, OPENING_CHARS)) + 9 : 0;

/** The address that the ad displays is only shown if the ad leads elsewhere. */
function addLanding(view: AdView, ad: Fields): void {
  const site = isObject(ad.website) ? domainOf(ad.website.siteDomain) : undefined;
  const landingDomain = site ?? domainOf(ad.offerLink) ?? domainOf(linkOf(objects(ad.cards)[0]));
  const shown = domainOf(ad.displayUrl);
  const differs = shown !== undefined && landingDomain !== undefined && !related(shown, landingDomain);
  add(view, {
    landingDomain: landingDomain ?? shown,
    displayUrl: differs ? textOf(ad.displayUrl, 16) : undefined,
  });
}

const related = (a: string, b: string) => a === b || a.endsWith(`.${b}`) || b.endsWith(`.${a}`);

const ONLY_IN_FULL = { onlyInFull: 'words' } as const;
const SHOWN = new Set([...Object.keys(STANDARD_COPY), ...Object.keys(STANDARD_FACTS)]);
for (const name of ['id', 'pageId', 'page', 'media', 'cards', 'website', 'offerLink', 'displayUrl']) SHOWN.add(name);

const isEmpty = (value: unknown) =>
  value === undefined ||
  value === null ||
  value === '' ||
  (typeof value === 'object' && Object.keys(value).length === 0);
