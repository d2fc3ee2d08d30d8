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
 * What is listed of an ad to a client. More would cost every conversation tokens, and make a client refuse a paid
 * answer the day the service sends one of the names with another type.
 */
export const AdView = z.looseObject({ id: z.string() });

/** Fields of the API have its names and values, texts shortened; the others are derived. */
export type AdView = {
  id: string;
  pageName?: string;
  pageId?: string;
  adsAmount?: number;
  headline?: string;
  body?: string;
  linkDescription?: string;
  /** Copy of the first card, where headline or body are an unfilled template or missing. */
  firstCard?: string;
  cardCopy?: CardCopy[];
  moreCards?: number;
  ctaType?: string;
  displayFormat?: string;
  /** What there is to look at, beyond what `displayFormat` says. */
  creative?: string;
  mediaLinks?: MediaLink[];
  landingDomain?: string;
  landingUrl?: string;
  displayUrl?: string;
  publisherPlatform?: string[];
  countries?: string[];
  startedAt?: string;
  lastSeenAt?: string;
  /** In brief, the day of `lastSeenAt`: the time of day is not worth its ten tokens an ad. */
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
  /** Names of fields that only `full` shows. */
  onlyInFull?: string[];
} & Run;

export interface AdOptions {
  /** For `full`, `ad` is the object as the service sent it. */
  detail: Detail;
  /** Milliseconds; what "still running" is measured by. */
  now: number;
  /** Most tokens of the text of a full view; the view itself may hold more. */
  budget?: number;
}

export function viewAd(ad: object, { detail, now, budget = FULL_TOKENS }: AdOptions): AdView {
  const source = ad as Fields;
  if (detail === 'brief') return briefView(source, now);
  return detail === 'standard' ? standardView(source, now) : fullAd(source, now, budget);
}

/** Most tokens of a field's text, else its kind. The order is the order of reading. */
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

/** All the service sent and, in front, what we derive; where both use a name, the service's word stands. */
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

/** Headline and opening of the body together, so that a short one leaves room for the other. */
const COPY_TOKENS = 45;
const HEADLINE_TOKENS = 28;
const CARD_TOKENS = 36;
const OPENING_CHARS = 24;

/** A headline that only repeats the advertiser's name says nothing; a template is told by its first card. */
function addOpening(view: AdView, ad: Fields): void {
  const repeats = ad.headline === pageOf(ad).pageName;
  const headline = repeats ? undefined : textOf(ad.headline, HEADLINE_TOKENS);
  const left = COPY_TOKENS - (headline === undefined ? 0 : estimateTokens(headline));
  const unsaid = isTemplate(ad.headline) || isTemplate(ad.body) || (!ad.headline && !ad.body);
  add(view, {
    headline,
    body: textOf(ad.body, Math.max(left, leastFor(ad.body))),
    firstCard: unsaid ? firstCard(ad, CARD_TOKENS) : undefined,
  });
}

/** A few words of the body in any case, even where each letter costs three tokens. */
const leastFor = (text: unknown) => (typeof text === 'string' ? estimateTokens(text.slice(0, OPENING_CHARS)) + 9 : 0);

/** What the ad shows as its address is worth a word only where it is not where the ad leads. */
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
