import type { Ad, Page } from '../../../api/schemas.ts';
import { dayMs } from '../../../views/durations.ts';
import advertiserTable from './advertisers.json' with { type: 'json' };
import industryTable from './industries.json' with { type: 'json' };
import phraseTable from './phrases.json' with { type: 'json' };

/**
 * Generates the ads of a fictional market. Each advertiser runs campaigns, and each campaign consists of variants of an
 * ad in different formats. Successful variants run longer, have more duplicates, and may run a second time months
 * later.
 */

type Product = { name: string; price: number; createdAtMs: number };

type Campaign = {
  advertiser: Advertiser;
  product: Product;
  angle: Angle;
  /** The start of the campaign, in Unix milliseconds. */
  startedAtMs: number;
  /** The success of the campaign, from 0 to 1. Ads of successful campaigns run longer and have more duplicates. */
  successScore: number;
  /**
   * The values of the placeholders `{thousands}` and `{tries}` in ad texts, e.g. 40 `thousands` in "Over 40,000 people
   * chose this product". All ads of the campaign claim the same numbers.
   */
  claims: { thousands: number; tries: number };
};

/** The context of the generator: a source of random numbers, and the start of the current day in Unix milliseconds. */
type MarketContext = { random: SeededRandom; todayStartMs: number };

/** A fictional advertiser page with all its ads. The ads are in the order of their campaigns. */
export type DemoAdvertiser = { page: Page; ads: Ad[]; campaignStarts: CampaignStart[] };

/**
 * The start of a campaign in the list of an advertiser's ads. `campaignIndex` is the index of the campaign in its
 * `CampaignPlan`, and `firstAdIndex` is the index of the campaign's first ad in the list of ads. `seed` is the state of
 * the random source (`getSeed`) before this ad is generated.
 */
export type CampaignStart = { campaignIndex: number; seed: number; firstAdIndex: number };

/** The campaigns of an advertiser, without their ads. */
export type CampaignPlan = { advertiser: Advertiser; pageId: string; campaigns: Campaign[]; todayStartMs: number };

/**
 * Generates all advertisers with their ads.
 * @param nowMs the current time in Unix milliseconds; the dates of the ads depend on the day, but not on the time of
 * day
 */
export function* makeMarket(random: SeededRandom, nowMs: number): Generator<DemoAdvertiser> {
  for (const advertiser of advertisers) yield makeAdvertiser(advertiser, random, nowMs);
}

/**
 * Generates an advertiser page and its ads. The result depends only on the advertiser, the state of `random` and the
 * day.
 */
export function makeAdvertiser(advertiser: Advertiser, random: SeededRandom, nowMs: number): DemoAdvertiser {
  const plan = planCampaigns(advertiser, random, nowMs);
  const ads: Ad[] = [];
  const campaignStarts: CampaignStart[] = [];
  for (const [campaignIndex, campaign] of plan.campaigns.entries()) {
    campaignStarts.push({ campaignIndex, seed: random.getSeed(), firstAdIndex: ads.length });
    ads.push(...makeAds(plan, campaign, random, ads.length));
  }
  setPageField(ads, advertiser, ads.length);
  return { page: makePage({ ...plan, random }, ads), ads, campaignStarts };
}

/**
 * Generates the page id and the campaigns of an advertiser, without their ads. Afterwards, `random` is in the state
 * from which `makeAdvertiser` generates the first ad.
 */
export function planCampaigns(advertiser: Advertiser, random: SeededRandom, nowMs: number): CampaignPlan {
  const market = { random, todayStartMs: Math.floor(nowMs / dayMs) * dayMs };
  const pageId = random.generateUuid();
  const products = advertiser.products.map((product) => makeProduct(market, product));
  const campaigns = Array.from({ length: random.between(7, 16) }, () => makeCampaign(market, advertiser, products));
  return { advertiser, pageId, campaigns, todayStartMs: market.todayStartMs };
}

/**
 * Generates the ads of one campaign. They are equal to the ads that `makeAdvertiser` generates for this campaign.
 * @param adCount the advertiser's total number of ads, which each ad states in `page.adsAmount`
 */
export function makeCampaignAds(
  plan: CampaignPlan,
  { campaignIndex, seed, firstAdIndex }: CampaignStart,
  adCount: number,
): Ad[] {
  const campaign = plan.campaigns[campaignIndex];
  if (campaign === undefined) throw new Error(`${plan.advertiser.name} has no campaign ${campaignIndex}.`);
  const ads = makeAds(plan, campaign, createSeededRandom(seed), firstAdIndex);
  setPageField(ads, plan.advertiser, adCount);
  return ads;
}

/** Sets the `page` field of each ad to the name of its advertiser page and the number of ads of this page. */
function setPageField(ads: Ad[], { name }: Advertiser, adCount: number): void {
  for (const ad of ads) ad.page = { pageName: name, adsAmount: adCount };
}

/**
 * Functions that simulate missing data, so that the demo shows how tools report missing data. Each function returns the
 * fields of an ad that it changes.
 */
const gapSimulators: Record<DataGap, (ad: Ad, adIndex: number, todayStartMs: number) => Partial<Ad>> = {
  /**
   * The service has seen the ads of this advertiser on only one day. All ads were running on that day, and nobody knows
   * when they ended.
   */
  seenOnOneDay({ startedAt }, _, todayStartMs) {
    const lastSeenAt = toIsoDate(todayStartMs - daysSinceLastSeen * dayMs);
    const hadStarted = typeof startedAt === 'string' && startedAt < lastSeenAt;
    return { startedAt: hadStarted ? startedAt : lastSeenAt, lastSeenAt, endDate: null };
  },
  /**
   * Every second ad has a template such as `{{product.name}}` as its text. The ad network replaces the template with a
   * product for each viewer, but ad libraries show only the template.
   */
  placeholders: (_, adIndex) => (adIndex % 2 === 0 ? { headline: '{{product.name}}', body: '{{product.brand}}' } : {}),
  /** Only every third ad states its countries. The countries of all other ads are unknown. */
  someCountries: (_, adIndex) => (adIndex % 3 === 0 ? {} : { countries: undefined }),
};

const daysSinceLastSeen = 40;

const makeProduct = ({ random, todayStartMs }: MarketContext, product: Advertiser['products'][number]): Product => ({
  ...product,
  createdAtMs: todayStartMs - random.between(150, 1100) * dayMs,
});

/** Generates an advertising campaign for one of the products. The campaign starts after the product was created. */
function makeCampaign({ random, todayStartMs }: MarketContext, advertiser: Advertiser, products: Product[]): Campaign {
  const product = random.pick(products);
  const maxDaysAgo = Math.min(540 * dayMs, todayStartMs - product.createdAtMs) / dayMs;
  return {
    advertiser,
    product,
    angle: random.pick(angles),
    startedAtMs: todayStartMs - Math.ceil(random.next() ** 1.15 * maxDaysAgo) * dayMs,
    successScore: random.next() ** 2,
    claims: { thousands: random.between(11, 94), tries: random.between(12, 48) },
  };
}

/** Generates the ads of a campaign. `firstAdIndex` is the number of ads in earlier campaigns of the advertiser. */
function makeAds(
  { advertiser, pageId, todayStartMs }: CampaignPlan,
  campaign: Campaign,
  random: SeededRandom,
  firstAdIndex: number,
): Ad[] {
  const market = { random, todayStartMs };
  const variantCount = random.between(2, 6);
  const ads = Array.from({ length: variantCount }, (_, variantIndex) => {
    const creative = makeCreative(random, campaign, variantIndex);
    // The variants of a campaign start at different times, over several weeks. The `filter` call below removes variants
    // that start in the future.
    const variantStartedAtMs = campaign.startedAtMs + random.between(0, variantIndex * 4) * dayMs;
    const firstRun = makeAdRun(market, campaign, variantStartedAtMs);
    const secondStartedAtMs =
      firstRun.endedAtMs === null ? Number.POSITIVE_INFINITY : firstRun.endedAtMs + random.between(30, 120) * dayMs;
    const runs =
      campaign.successScore > 0.5 && secondStartedAtMs < todayStartMs
        ? [firstRun, makeAdRun(market, campaign, secondStartedAtMs)]
        : [firstRun];
    return runs
      .filter((run) => run.startedAtMs <= todayStartMs)
      .map((run) => makeAd(market, campaign, pageId, creative, run));
  }).flat();
  const { gap } = advertiser;
  if (gap === undefined) return ads;
  return ads.map((ad, index) => ({ ...ad, ...gapSimulators[gap](ad, firstAdIndex + index, todayStartMs) }));
}

/**
 * A period in which an ad ran. Times are in Unix milliseconds. `endedAtMs` is null while the ad is running.
 * `performance` is a number from 0 to 1.
 */
type AdRun = { startedAtMs: number; endedAtMs: number | null; durationDays: number; performance: number };

function makeAdRun({ random, todayStartMs }: MarketContext, { successScore }: Campaign, startedAtMs: number): AdRun {
  const performance = Math.min(1, Math.max(0, successScore + (random.next() - 0.5) / 3));
  const plannedDays = 2 + Math.floor(performance ** 2 * 240 + random.between(1, 14));
  const plannedEndMs = startedAtMs + plannedDays * dayMs;
  const isRunning = plannedEndMs >= todayStartMs;
  return {
    startedAtMs,
    endedAtMs: isRunning ? null : plannedEndMs,
    durationDays: isRunning ? (todayStartMs - startedAtMs) / dayMs : plannedDays,
    performance,
  };
}

/** The texts and the format of an ad. A campaign has several ads, which differ in their texts or formats. */
type Creative = { headline: string; body: string; linkDescription: string; format: string; callToAction: string };

function makeCreative(
  random: SeededRandom,
  { advertiser, product, angle, claims }: Campaign,
  variantIndex: number,
): Creative {
  const { trade, callsToAction } = industries[advertiser.industry];
  const tradePhrases = phrases[advertiser.language][trade];
  if (!tradePhrases) throw new Error(`phrases.json has no phrases for ${trade} in "${advertiser.language}".`);
  const percent = random.pick([10, 15, 20, 25, 30]);
  const values = { brand: advertiser.name, product: product.name, percent, days: 30, ...claims };
  const fillPhrase = (phrase: string) => fillPlaceholders(phrase, values);
  const points = random.sample(advertiser.points, random.between(2, 4)).map((point) => `✔ ${point}`);
  const offers = angle === 'offer' || random.chance(0.6) ? [fillPhrase(random.pick(tradePhrases.offers))] : [];
  const opening = fillPhrase(tradePhrases.openings[angle][variantIndex % 2] ?? '');
  const body = [opening, points.join('\n'), ...offers, fillPhrase(random.pick(tradePhrases.closings))].join('\n\n');
  return {
    headline: fillPhrase(random.pick(tradePhrases.headlines)),
    body,
    linkDescription: random.pick(advertiser.points),
    format: random.pick(['IMAGE', 'VIDEO', 'CAROUSEL', 'DCO'], 1.6),
    callToAction: random.pick(callsToAction, 1.5),
  };
}

/**
 * Replaces placeholders in a phrase, such as `{product}`, with values. Capitalizes a value at the start of a sentence.
 */
function fillPlaceholders(phrase: string, placeholderValues: Record<string, string | number>): string {
  return phrase.replace(/\{(\w+)\}/g, (_, placeholder: string, offset: number) => {
    const replacement = String(placeholderValues[placeholder]);
    return /(^|[.!?]\s+)[“«„¿¡]*\s*$/u.test(phrase.slice(0, offset)) ? capitalize(replacement) : replacement;
  });
}

const capitalize = (text: string) => text.charAt(0).toLocaleUpperCase() + text.slice(1);

function makeAd(market: MarketContext, campaign: Campaign, pageId: string, creative: Creative, run: AdRun): Ad {
  const { random, todayStartMs } = market;
  const { advertiser, product } = campaign;
  const id = random.generateUuid();
  // Add tracking parameters only to links of successful campaigns, so that the demo has links with and without
  // parameters.
  const trackingQuery = `?utm_source=meta&utm_campaign=${campaign.angle}&utm_content=${creative.format.toLowerCase()}`;
  const offerLink = `https://${advertiser.domain}/${campaign.angle}${campaign.successScore > 0.3 ? trackingQuery : ''}`;
  const cardCount = creative.format === 'CAROUSEL' || creative.format === 'DCO' ? random.between(3, 5) : 0;
  const ad: Ad & { countries: string[] } = {
    id,
    pageId,
    sourcePageExternalId: createExternalId(pageId),
    headline: creative.headline,
    body: creative.body,
    linkDescription: creative.linkDescription,
    productTitle: capitalize(product.name),
    productPrice: product.price,
    productCreatedAt: toIsoDate(product.createdAtMs),
    offerLink,
    displayUrl: advertiser.domain,
    startedAt: toIsoDate(run.startedAtMs),
    lastSeenAt: toIsoDate(run.endedAtMs ?? todayStartMs),
    endDate: run.endedAtMs === null ? null : toIsoDate(run.endedAtMs),
    ...estimateAdResults(market, advertiser, run),
    isStorePlatformBestSeller: run.performance > 0.8,
    ctaType: creative.callToAction,
    displayFormat: creative.format,
    countries: advertiser.countries.slice(0, random.between(1, advertiser.countries.length)),
    publisherPlatform: platforms.filter((_, index) => index < 2 || random.chance(0.35)),
    media: [],
    cards: Array.from({ length: cardCount }, (_, cardIndex) => makeCard(campaign, creative, offerLink, cardIndex)),
    changes: {},
    website: { siteDomain: advertiser.domain },
    languages: [advertiser.language],
    currency: 'USD',
  };
  ad.media = makeMedia(random, ad, campaign, cardCount);
  return { ...ad, ...(ad.countries.some(isBylineCountry) && { bylines: `${advertiser.name} Ltd.` }) };
}

/** Returns true for countries in which the demo ads state who paid for them. */
const isBylineCountry = (country: string) => country === 'DE' || country === 'FR';

const toIsoDate = (timeMs: number) => new Date(timeMs).toISOString();
const createExternalId = (pageId: string) =>
  String(BigInt(`0x${pageId.replaceAll('-', '').slice(0, 12)}`)).padStart(15, '1');
/** Rounds an estimate to two significant digits, because more digits would look too precise. */
const roundEstimate = (estimate: number) => Number(estimate.toPrecision(2));
/** Rounds an estimated amount of money to whole units and at most two significant digits. The minimum is 1. */
const roundAmount = (amount: number) => Math.max(1, Math.round(roundEstimate(amount)));

function estimateAdResults(
  { random, todayStartMs }: MarketContext,
  { countries }: Advertiser,
  { durationDays, performance, startedAtMs }: AdRun,
) {
  const reach = roundEstimate(
    (durationDays + 1) * (1_500 + performance * 6_000) * (0.6 + random.next()) * countries.length,
  );
  const spend = reach * (0.006 + random.next() * 0.006);
  const revenue = spend * (0.4 + performance * 3);
  const isRecent = (todayStartMs - startedAtMs) / dayMs < 30;
  return {
    duplicates: 1 + Math.floor(performance ** 3 * 40 * random.next()),
    trendPublic: Math.round((isRecent ? 40 : 0) + performance * 60 * random.next()),
    performancePublic: Math.round(performance * 100),
    audienceReach: reach,
    adSpendMin: roundAmount(spend * 0.8),
    adSpendMax: roundAmount(spend * 1.3),
    revenueMin: roundAmount(revenue * 0.7),
    revenueMax: roundAmount(revenue * 1.4),
  };
}

function makeCard({ advertiser, product }: Campaign, creative: Creative, link: string, cardIndex: number) {
  const { name } = advertiser.products[cardIndex % advertiser.products.length] ?? product;
  return {
    title: capitalize(name),
    body: advertiser.points[cardIndex % advertiser.points.length],
    cta_type: creative.callToAction,
    link_url: link,
    image_url: getPictureUrl(selectCardPicture(advertiser, cardIndex)),
  };
}

/**
 * Generates the media of an ad: pictures, videos and the logo of the advertiser. The URL of a video leads to a picture,
 * because the demo has no video files.
 */
function makeMedia(random: SeededRandom, ad: Ad, { advertiser, product }: Campaign, cardCount: number): Ad['media'] {
  const makeAsset = (type: string, { name, ...size }: DemoPicture, cardNumber: number | null) => ({
    ...{ type, url: getPictureUrl({ name }), referenceId: ad.id, mediaFormat: 'webp', filename: `${name}.webp` },
    ...{ ...size, nr: cardNumber },
  });
  const stillPicture = makeAsset('THUMB', getProductPicture(advertiser, product.name, selectPictureKind(ad)), 0);
  const logo = makeAsset('PA_PP', { name: `${getBrand(advertiser)}-logo`, width: 160, height: 160 }, null);
  if (ad.displayFormat === 'VIDEO') {
    const video = {
      ...stillPicture,
      type: 'VID',
      durationSeconds: random.between(6, 45),
      urls: { preview: stillPicture.url },
    };
    return [video, stillPicture, logo];
  }
  const cards = Array.from({ length: cardCount }, (_, cardIndex) =>
    makeAsset('CARD_THUMB', selectCardPicture(advertiser, cardIndex), cardIndex + 1),
  );
  return cards.length > 0 ? [...cards, logo] : [stillPicture, logo];
}

const findStillUrl = ({ media }: Ad) => media?.find(({ type }) => type.endsWith('THUMB'))?.url;

function makePage({ advertiser, pageId, random, todayStartMs }: CampaignPlan & MarketContext, ads: Ad[]): Page {
  const totalDuplicates = ads.reduce((sum, ad) => sum + (ad.duplicates ?? 0), 0);
  const computeAverage = (key: 'trendPublic' | 'performancePublic') =>
    roundEstimate(ads.reduce((sum, ad) => sum + (ad[key] ?? 0), 0) / ads.length);
  const likeCount = roundEstimate(random.between(20, 900) ** 2);
  const logo = `${getBrand(advertiser)}-logo`;
  return {
    pageId,
    pageName: advertiser.name,
    sourcePageExternalId: createExternalId(pageId),
    pageLikes: likeCount,
    pageIgFollowers: roundEstimate(likeCount * (0.3 + random.next() * 2)),
    adsAmount: ads.length,
    adsTotalDuplicates: totalDuplicates,
    averageDuplicates: Number((totalDuplicates / ads.length).toFixed(2)),
    audienceReach: ads.reduce((sum, ad) => sum + (ad.audienceReach ?? 0), 0),
    trend: computeAverage('trendPublic'),
    performance: computeAverage('performancePublic'),
    pageCreatedAt: toIsoDate(todayStartMs - random.between(200, 3000) * dayMs),
    createdAt: toIsoDate(todayStartMs - random.between(20, 199) * dayMs),
    detailsEstimated: random.chance(0.3),
    technologySlugs: random.sample(technologies, random.between(2, 5)),
    countries: advertiser.countries,
    languages: [advertiser.language],
    media: [{ type: 'PA_PP', url: getPictureUrl({ name: logo }), mediaFormat: 'webp', filename: `${logo}.webp` }],
    thumbnails: ads.slice(0, 4).map((ad) => ({ url: findStillUrl(ad), isVideo: ad.displayFormat === 'VIDEO' })),
  };
}

/** Moves the dates of a page to a later day. The result is equal to the page that is generated on that day. */
export function movePageDates(page: Page, addedMs: number): Page {
  const moveDate = (date: string | null | undefined) => date && toIsoDate(Date.parse(date) + addedMs);
  return { ...page, pageCreatedAt: moveDate(page.pageCreatedAt), createdAt: moveDate(page.createdAt) };
}

type DataGap = 'seenOnOneDay' | 'placeholders' | 'someCountries';
type Industry = keyof typeof industryTable;
type Language = keyof typeof phraseTable;

/** A fictional advertiser. Its domain ends in `.example`, so that it cannot belong to a real company. */
export type Advertiser = {
  name: string;
  domain: string;
  industry: Industry;
  language: Language;
  countries: string[];
  /** The advertiser's products, with prices in the advertiser's currency. */
  products: { name: string; price: number }[];
  /**
   * The kind of data that the advertiser's ads lack, so that the demo shows how results report missing data. Undefined
   * if no data is missing.
   */
  gap?: DataGap;
  /** Short selling points. The ads list them with check marks. */
  points: string[];
};

/** All advertisers of the market. `test/library/demo.test.ts` checks the ads that are generated for them. */
export const advertisers = advertiserTable as Advertiser[];

/**
 * The trade and the calls to action of each industry. The trade determines the phrases in ad texts, e.g. no phrase for
 * games mentions shipping.
 */
const industries: Record<Industry, { trade: string; callsToAction: string[] }> = industryTable;

/**
 * The angles (main messages) of campaigns. Each angle has two opening phrases, and the variants of a campaign alternate
 * between them.
 */
const angles = ['launch', 'offer', 'proof', 'story', 'question'] as const;
type Angle = (typeof angles)[number];

/**
 * The phrases of ad texts, with placeholders such as `{product}`. Product names may include an article. No word before
 * `{product}` may therefore contract with an article ("de le", "em o"), and no word may depend on the product's gender
 * or number.
 */
type Phrases = { openings: Record<Angle, string[]>; headlines: string[]; offers: string[]; closings: string[] };

/** The phrases by language and trade. A language has phrases only for the trades of its advertisers. */
const phrases: Record<Language, Partial<Record<string, Phrases>>> = phraseTable;

const platforms = ['FACEBOOK', 'INSTAGRAM', 'MESSENGER', 'AUDIENCE_NETWORK', 'THREADS'];
const technologies = [
  'storefront',
  'tag-manager',
  'email-automation',
  'review-widget',
  'live-chat',
  'subscription-billing',
  'split-testing',
  'server-side-tracking',
  'headless-cms',
];

/**
 * A picture file in the `../pictures` folder. `name` lacks the `.webp` extension. Each product has three kinds of
 * pictures: `offer` with the price and a sticker, `meet` with a headline, and `tall` in upright format.
 */
type DemoPicture = { name: string; width: number; height: number };

const getBrand = ({ domain }: Advertiser) => domain.replace('.example', '');
/** Returns the URL of a demo picture. The library later replaces `{media_url}` with its own media URL. */
const getPictureUrl = ({ name }: Pick<DemoPicture, 'name'>) => `{media_url}/demo/${name}.webp`;

function getProductPicture(advertiser: Advertiser, productName: string, pictureKind: string): DemoPicture {
  const productNumber = advertiser.products.findIndex(({ name }) => name === productName) + 1;
  return {
    name: `${getBrand(advertiser)}-${productNumber}-${pictureKind}`,
    width: 384,
    height: pictureKind === 'tall' ? 480 : 384,
  };
}

/**
 * Selects the picture of a carousel card. The first cards show each product of the advertiser once. The remaining cards
 * show the same products in other pictures.
 */
function selectCardPicture(advertiser: Advertiser, cardIndex: number): DemoPicture {
  const { products } = advertiser;
  const { name = '' } = products[cardIndex % products.length] ?? {};
  const kind = ['meet', 'offer', 'tall'][Math.floor(cardIndex / products.length)] ?? 'meet';
  return getProductPicture(advertiser, name, kind);
}

/**
 * Selects the kind of picture that fits an ad. A video gets an upright picture. An ad with a discount gets the picture
 * with a sticker, unless the discount is only in the list of selling points.
 */
function selectPictureKind({ id, displayFormat, headline, body }: Ad): string {
  if (displayFormat === 'VIDEO') return 'tall';
  const textWithoutPoints = `${headline}\n${body}`.replaceAll(/^✔.*$/gm, '');
  if (/%|: play free/.test(textWithoutPoints)) return 'offer';
  return Number.parseInt(id.slice(-1), 16) % 2 === 0 ? 'meet' : 'tall';
}

/** A source of random numbers whose sequence depends only on its seed. */
export type SeededRandom = ReturnType<typeof createSeededRandom>;

/**
 * Creates a source of random numbers. The same seed always produces the same numbers. The algorithm, Mulberry32, is
 * good enough for fictional ads. Never use it for secrets.
 */
export function createSeededRandom(seed: number) {
  let generatorState = seed >>> 0;
  /** Returns a number from 0 (inclusive) to 1 (exclusive). */
  const next = () => {
    generatorState = (generatorState + 0x6d2b79f5) >>> 0;
    let mixedState = Math.imul(generatorState ^ (generatorState >>> 15), generatorState | 1);
    mixedState ^= mixedState + Math.imul(mixedState ^ (mixedState >>> 7), mixedState | 61);
    return ((mixedState ^ (mixedState >>> 14)) >>> 0) / 2 ** 32;
  };
  /** Returns a whole number from `min` to `max`, both inclusive. */
  const between = (min: number, max: number) => min + Math.floor(next() * (max - min + 1));
  const generateBytes = (count: number) => Uint8Array.from({ length: count }, () => between(0, 255));
  return {
    next,
    between,
    generateBytes,
    /** Returns the current state of the source. Pass the state to `createSeededRandom` to continue the sequence. */
    getSeed: () => generatorState,
    /**
     * Returns a random item of a list.
     * @param bias a number above 1 makes the first items more likely
     */
    pick<Item>(list: readonly Item[], bias = 1): Item {
      const item = list[Math.floor(next() ** bias * list.length)];
      if (item === undefined) throw new Error('The list contains no item to pick.');
      return item;
    },
    /** Returns up to `count` different items of a list in random order. */
    sample<Item>(list: readonly Item[], count: number): Item[] {
      const remainingItems = [...list];
      return Array.from({ length: Math.min(count, remainingItems.length) }, () =>
        remainingItems.splice(between(0, remainingItems.length - 1), 1),
      ).flat();
    },
    /** Returns true with the given probability, from 0 (never) to 1 (always). */
    chance: (probability: number) => next() < probability,
    generateUuid(): string {
      const hex = Buffer.from(generateBytes(16)).toString('hex');
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
    },
  };
}
