import { z } from 'zod';
import { creativeOf, type MediaLink, mediaLinks } from './creative.ts';
import { fullView } from './full.ts';
import { cleanAddress, domainOf } from './landing.ts';
import { dayOf, type Run, runOf } from './running.ts';
import { type Detail, type Fields, FULL_TOKENS, isObject, keep, lean, objects, textOf } from './view.ts';

/**
 * What is listed of an ad to a client: its id and what we derive. Every other field is the API's own; with all of
 * them spelled out, the list of tools would cost more than it tells.
 */
export const AdView = z.looseObject({
  id: z.string(),
  pageName: z.string().optional(),
  daysRunning: z.number().optional(),
  stillRunning: z.boolean().optional(),
  lastSeen: z.string().optional(),
  creative: z.string().optional(),
  landingDomain: z.string().optional(),
});

export interface CardCopy {
  title?: string;
  body?: string;
  linkDescription?: string;
  ctaType?: string;
  landingUrl?: string;
}

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
  creative?: string;
  mediaLinks?: MediaLink[];
  landingDomain?: string;
  landingUrl?: string;
  displayUrl?: string;
  publisherPlatform?: string[];
  countries?: string[];
  startedAt?: string;
  lastSeenAt?: string;
  /** In brief, the day of `lastSeenAt`: the time of day is not worth its tokens. */
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
  /** Most tokens of a full view. */
  budget?: number;
}

export function viewAd(ad: object, { detail, now, budget = FULL_TOKENS }: AdOptions): AdView {
  const source = ad as Fields;
  if (detail === 'brief') return briefView(source, now);
  return detail === 'standard' ? standardView(source, now) : fullAd(source, now, budget);
}

const ID_TOKENS = 48;
const NAME_TOKENS = 20;
const DERIVED_TOKENS = 100;

/** Most tokens of a field's text, where it is one. The order is the order of reading. */
const BRIEF_COPY = { headline: 20, body: 35 } as const;
const BRIEF_FACTS = {
  ctaType: 12,
  displayFormat: 12,
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
  isStorePlatformBestSeller: 'flag',
} as const;

const STANDARD_COPY = { headline: 150, body: 2000, linkDescription: 300 } as const;
const STANDARD_FACTS = {
  ...BRIEF_FACTS,
  lastSeenAt: 20,
  productTitle: 60,
  productCreatedAt: 20,
  sourcePageExternalId: 40,
  appUrl: 100,
} as const;

function briefView(ad: Fields, now: number): AdView {
  const { daysRunning, stillRunning } = runOf(ad, now);
  const creative = creativeOf(ad);
  return {
    ...advertiser(ad),
    ...keep(ad, BRIEF_COPY),
    ...lean({ firstCard: needsCard(ad) ? firstCard(ad) : undefined }),
    ...keep(ad, BRIEF_FACTS),
    ...lean({
      creative: creative === String(ad.displayFormat).toLowerCase() ? undefined : creative,
      lastSeen: dayOf(ad.lastSeenAt),
      daysRunning,
      stillRunning,
    }),
    ...landing(ad),
  };
}

function standardView(ad: Fields, now: number): AdView {
  const cards = objects(ad.cards);
  const links = mediaLinks(ad.media, now);
  return {
    ...advertiser(ad),
    ...keep(isObject(ad.page) ? ad.page : {}, { adsAmount: 'number' }),
    ...keep(ad, STANDARD_COPY),
    ...lean({
      cardCopy: cards.length > 0 ? cards.slice(0, MAX_CARDS).map((card) => copyOf(card, ad)) : undefined,
      moreCards: cards.length > MAX_CARDS ? cards.length - MAX_CARDS : undefined,
      creative: creativeOf(ad),
      mediaLinks: links.length > 0 ? links : undefined,
    }),
    ...keep(ad, STANDARD_FACTS),
    ...runOf(ad, now),
    ...landing(ad),
    ...lean({ landingUrl: cleanAddress(ad.offerLink, 100), onlyInFull: onlyInFull(ad) }),
  };
}

/** All the service sent and, in front, what we derive; where both use a name, the service's word stands. */
function fullAd(ad: Fields, now: number, budget: number): AdView {
  const derived = { ...lean({ creative: creativeOf(ad) }), ...runOf(ad, now), ...landing(ad) };
  return { id: '', ...derived, ...fullView(ad, budget - DERIVED_TOKENS) };
}

function advertiser(ad: Fields): AdView {
  const page = isObject(ad.page) ? ad.page : {};
  return {
    id: textOf(ad.id, ID_TOKENS) ?? '',
    ...keep(page, { pageName: NAME_TOKENS }),
    ...keep(ad, { pageId: ID_TOKENS }),
  };
}

/** What the ad shows as its address is worth a line only where it is not where the ad leads. */
function landing(ad: Fields): Pick<AdView, 'landingDomain' | 'displayUrl'> {
  const site = isObject(ad.website) ? domainOf(ad.website.siteDomain) : undefined;
  const landingDomain = site ?? domainOf(ad.offerLink) ?? domainOf(cardField(objects(ad.cards)[0], 'link'));
  const shown = domainOf(ad.displayUrl);
  const differs = shown !== undefined && landingDomain !== undefined && !related(shown, landingDomain);
  return lean({
    landingDomain: landingDomain ?? shown,
    displayUrl: differs ? textOf(ad.displayUrl, 16) : undefined,
  });
}

const related = (a: string, b: string) => a === b || a.endsWith(`.${b}`) || b.endsWith(`.${a}`);

/** Cards are free-form: the spellings seen, and those a service of the same kind would use. */
const CARD_FIELDS = {
  title: ['title', 'headline', 'name'],
  body: ['body', 'text'],
  linkDescription: ['link_description', 'linkDescription', 'description'],
  ctaType: ['cta_type', 'ctaType'],
  link: ['link_url', 'linkUrl', 'offerLink', 'url', 'link'],
};
const MAX_CARDS = 20;

function cardField(card: Fields | undefined, field: keyof typeof CARD_FIELDS): string | undefined {
  for (const name of CARD_FIELDS[field]) {
    const value = card?.[name];
    if (typeof value === 'string' && value.trim() !== '') return value;
  }
}

/** What a card says that the ad itself does not. */
function copyOf(card: Fields, ad: Fields): CardCopy {
  const own = (field: 'body' | 'linkDescription' | 'ctaType') => {
    const value = cardField(card, field);
    return value === ad[field] ? undefined : value;
  };
  const landingUrl = cleanAddress(cardField(card, 'link'), 40);
  return lean({
    title: textOf(cardField(card, 'title'), 40),
    body: textOf(own('body'), 60),
    linkDescription: textOf(own('linkDescription'), 30),
    ctaType: textOf(own('ctaType'), 12),
    landingUrl: landingUrl === cleanAddress(ad.offerLink, 40) ? undefined : landingUrl,
  });
}

const TEMPLATE = /\{\{[^{}]*\}\}/;
const isTemplate = (text: unknown) => typeof text === 'string' && TEMPLATE.test(text);

const needsCard = (ad: Fields) => isTemplate(ad.headline) || isTemplate(ad.body) || (!ad.headline && !ad.body);

function firstCard(ad: Fields): string | undefined {
  const card = objects(ad.cards)[0];
  const lines = [cardField(card, 'title'), cardField(card, 'body')].filter((line) => line && !isTemplate(line));
  return textOf(lines.join(' — '), 40);
}

const SHOWN = new Set([...Object.keys(STANDARD_COPY), ...Object.keys(STANDARD_FACTS)]);
for (const name of ['id', 'pageId', 'page', 'media', 'cards', 'website', 'offerLink', 'displayUrl']) SHOWN.add(name);

function onlyInFull(ad: Fields): string[] | undefined {
  const names = Object.keys(ad).filter((name) => !SHOWN.has(name) && !isEmpty(ad[name]));
  return keep({ names }, { names: 'words' }).names as string[] | undefined;
}

const isEmpty = (value: unknown) =>
  value === undefined ||
  value === null ||
  value === '' ||
  (typeof value === 'object' && Object.keys(value).length === 0);
