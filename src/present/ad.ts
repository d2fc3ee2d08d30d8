import * as z from 'zod';
import {
  type CardView,
  creativeOf,
  firstCard,
  isTemplate,
  linkOf,
  linkWriter,
  type MediaLink,
  mediaOf,
  viewCards,
} from './ad-media.ts';
import { adFields, type ShownWith } from './fields.ts';
import { hashOf } from './safe-text.ts';
import { estimateTokens, truncated } from './tokens.ts';
import {
  add,
  cleanAddress,
  type Detail,
  dayOf,
  domainOf,
  type Fields,
  fullItem,
  fullTokens,
  idOf,
  idTokens,
  isObject,
  isVisible,
  keep,
  objects,
  type Run,
  runOf,
  textOf,
  viewTable,
} from './values.ts';

/**
 * The schema of an ad that clients see. More would cost every conversation tokens, and clients would reject a paid
 * answer as soon as the service changed the type of a field.
 */
export const AdView = z.looseObject({ id: z.string() });

const briefFields = viewTable(adFields, 'brief');
const standardFields = viewTable(adFields, 'standard');

/** API fields keep their names and values, with texts shortened; the other fields are derived. */
export type AdView = ShownWith<typeof adFields, { brief: unknown } | { standard: unknown }> & {
  id: string;
  pageName?: string;
  pageId?: string;
  adsAmount?: number;
  /** Copy of the first card, if headline or body is missing or an unfilled template. */
  firstCard?: string;
  /** The same for bodies that are the same, if this one is cut. */
  bodyHash?: number;
  cardViews?: CardView[];
  moreCards?: number;
  /** The pictures, videos and cards, as far as `displayFormat` does not name them. */
  creative?: string;
  /** Media that do not belong to a card. */
  mediaLinks?: MediaLink[];
  /** Pictures and videos whose addresses did not fit. */
  moreMedia?: number;
  landingDomain?: string;
  landingUrl?: string;
  displayUrl?: string;
  /** The day of `lastSeenAt`, in brief views: the time is not worth ten tokens for each ad. */
  lastSeen?: string;
  /** Names of the fields that only `full` shows. */
  onlyInFull?: string[];
} & Run;

interface AdOptions {
  detail: Detail;
  /** In milliseconds since the epoch; decides what is still running. */
  now: number;
  /** Maximum tokens of the text; the data of a full view may hold more. */
  budget?: number;
}

export function viewAd(ad: object, { detail, now, budget = fullTokens }: AdOptions): AdView {
  const source = ad as Fields;
  if (detail === 'brief') return briefView(source, now);
  return detail === 'standard' ? standardView(source, now, budget) : fullAd(source, now, budget);
}

function briefView(ad: Fields, now: number): AdView {
  const view = advertised(ad, 20);
  addOpening(view, ad);
  add(view, { creative: creativeOf(ad) });
  keep(view, ad, briefFields);
  const { daysRunning, stillRunning } = runOf(ad, now);
  add(view, { lastSeen: dayOf(ad.lastSeenAt), daysRunning, stillRunning });
  addLanding(view, ad);
  return view;
}

function standardView(ad: Fields, now: number, budget: number): AdView {
  const view = advertised(ad, 100);
  keep(view, pageOf(ad), { adsAmount: 'number' });
  keep(view, ad, standardFields);
  const { views: cardViews, media, more } = viewCards(ad);
  add(view, {
    cardViews: cardViews.length > 0 ? cardViews : undefined,
    moreCards: more > 0 ? more : undefined,
    creative: creativeOf(ad),
  });
  add(view, runOf(ad, now));
  addLanding(view, ad);
  add(view, { landingUrl: cleanAddress(ad.offerLink, 100) });
  keep(
    view,
    { onlyInFull: Object.keys(ad).filter((name) => !shownNames.has(name) && !isEmpty(ad[name])) },
    onlyInFullTable,
  );
  // Signed addresses weigh more than all the rest, so they get what it leaves.
  const links = linkWriter(budget - estimateTokens(JSON.stringify(view)) - labelTokens, now);
  const own = links.write(mediaOf(ad).own);
  // Each card's picture comes before the second address of any card.
  const firsts = media.map((assets) => links.write(assets.slice(0, 1)));
  for (const [index, card] of cardViews.entries()) {
    const ofCard = [...(firsts[index] ?? []), ...links.write(media[index]?.slice(1) ?? [])];
    add(card, { media: ofCard.length > 0 ? ofCard : undefined });
  }
  add(view, {
    mediaLinks: own.length > 0 ? own : undefined,
    moreMedia: links.leftOut > 0 ? links.leftOut : undefined,
  });
  return view;
}

/** Labels that the text has and the data has not. */
const labelTokens = 100;

const derivedTokens = 100;

/** Everything the service sent, after the derived fields. If both use a name, the service's value wins. */
function fullAd(ad: Fields, now: number, budget: number): AdView {
  const id = idOf(ad.id);
  const view: AdView = { id };
  add(view, { creative: creativeOf(ad), ...runOf(ad, now) });
  addLanding(view, ad);
  return { ...view, ...fullItem(ad, budget - derivedTokens), id };
}

const pageOf = (ad: Fields): Fields => (isObject(ad.page) ? ad.page : {});

function advertised(ad: Fields, nameTokens: number): AdView {
  const view: AdView = { id: idOf(ad.id) };
  keep(view, pageOf(ad), { pageName: nameTokens });
  keep(view, ad, { pageId: idTokens });
  return view;
}

const headlineTokens = 28;
const bodyTokens = 26;
const cardTokens = 36;
const openingChars = 24;

/** The same body is cut to the same opening in every ad. A template shows its first card. */
function addOpening(view: AdView, ad: Fields): void {
  const body = textOf(ad.body, Math.max(bodyTokens, minTokensOf(ad.body)));
  const needsCard = isTemplate(ad.headline) || isTemplate(ad.body) || (!ad.headline && !ad.body);
  add(view, {
    headline: textOf(ad.headline, headlineTokens),
    body,
    bodyHash: isTruncated(body, ad.body) ? hashOf(String(ad.body).trim()) : undefined,
    firstCard: needsCard ? firstCard(ad, cardTokens) : undefined,
  });
}

/** Not just any text that ends like one that was truncated. */
function isTruncated(view: string | undefined, text: unknown): boolean {
  const suffix = truncated.exec(view ?? '')?.[0];
  return suffix !== undefined && typeof text === 'string' && !text.trimEnd().endsWith(suffix);
}

/** Enough for a few words of the body, even if every letter costs three tokens. */
const minTokensOf = (text: unknown) => (typeof text === 'string' ? estimateTokens(text.slice(0, openingChars)) + 9 : 0);

/** Where an ad leads; only without any link it is what the ad displays, which is the advertiser's to choose. */
export function landingDomainOf({ website, offerLink, cards, displayUrl }: Fields): string | undefined {
  const site = isObject(website) ? domainOf(website.siteDomain) : undefined;
  return site ?? domainOf([offerLink, linkOf(objects(cards)[0]), displayUrl].find(isVisible));
}

/** The address that the ad displays is only shown if the ad leads elsewhere. */
function addLanding(view: AdView, ad: Fields): void {
  const landingDomain = landingDomainOf(ad);
  const shown = domainOf(ad.displayUrl);
  const differs = shown !== undefined && landingDomain !== undefined && !related(shown, landingDomain);
  add(view, {
    landingDomain,
    displayUrl: differs ? textOf(ad.displayUrl, 16) : undefined,
  });
}

const related = (a: string, b: string) => a === b || a.endsWith(`.${b}`) || b.endsWith(`.${a}`);

const onlyInFullTable = { onlyInFull: 'words' } as const;
const shownNames = new Set(Object.keys(standardFields));
for (const name of ['id', 'pageId', 'page', 'media', 'cards', 'website', 'offerLink', 'displayUrl'])
  shownNames.add(name);

const isEmpty = (value: unknown) =>
  value === undefined ||
  value === null ||
  value === '' ||
  (typeof value === 'object' && Object.keys(value).length === 0);
