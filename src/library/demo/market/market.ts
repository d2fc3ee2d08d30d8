import type { Ad, Page } from '../../../api/schemas.ts';
import { dayMs } from '../../../views/durations.ts';
import advertiserTable from './advertisers.json' with { type: 'json' };
import industryTable from './industries.json' with { type: 'json' };
import phraseTable from './phrases.json' with { type: 'json' };

/**
 * A fictional market: advertisers run campaigns, campaigns try variants of their copy in several formats, and variants
 * that do well run longer, are copied more often and may return months later.
 */

type Product = { name: string; price: number; createdAt: number };
type Campaign = {
  advertiser: Advertiser;
  product: Product;
  angle: Angle;
  start: number;
  strength: number;
  /** Numbers that the copy boasts of, the same in every variant. */
  boast: { thousands: number; tries: number };
};
type Market = { random: SeededRandom; today: number };

export type DemoAdvertiser = { page: Page; ads: Ad[] };

/** Makes all advertisers with their ads. Of `now`, in Unix milliseconds, only the day matters. */
export function* makeMarket(random: SeededRandom, now: number): Generator<DemoAdvertiser> {
  for (const advertiser of advertisers) yield makeAdvertiser(advertiser, random, now);
}

/** Makes an advertiser with its ads. The same state of `random` and the same day give the same ads. */
export function makeAdvertiser(advertiser: Advertiser, random: SeededRandom, now: number): DemoAdvertiser {
  const market = { random, today: Math.floor(now / dayMs) * dayMs };
  const pageId = random.uuid();
  const products = advertiser.products.map((product) => makeProduct(market, product));
  const campaigns = Array.from({ length: random.between(7, 16) }, () => makeCampaign(market, advertiser, products));
  const ads = campaigns.flatMap((campaign) => makeAds(market, campaign, pageId));
  for (const ad of ads) ad.page = { pageName: advertiser.name, adsAmount: ads.length };
  return { page: makePage(market, advertiser, pageId, ads), ads };
}

const makeProduct = ({ random, today }: Market, product: Advertiser['products'][number]): Product => ({
  ...product,
  createdAt: today - random.between(150, 1100) * dayMs,
});

/** A campaign starts after its product was created. */
function makeCampaign({ random, today }: Market, advertiser: Advertiser, products: Product[]): Campaign {
  const product = random.pick(products);
  const maxDaysAgo = Math.min(540 * dayMs, today - product.createdAt) / dayMs;
  return {
    advertiser,
    product,
    angle: random.pick(angles),
    start: today - Math.ceil(random.next() ** 1.15 * maxDaysAgo) * dayMs,
    strength: random.next() ** 2,
    boast: { thousands: random.between(11, 94), tries: random.between(12, 48) },
  };
}

function makeAds(market: Market, campaign: Campaign, pageId: string): Ad[] {
  const { random, today } = market;
  const variants = random.between(2, 6);
  return Array.from({ length: variants }, (_, variant) => {
    const copy = makeCopy(random, campaign, variant);
    // Variants start over several weeks; those that start in the future are left out.
    const start = campaign.start + random.between(0, variant * 4) * dayMs;
    const first = makeRun(market, campaign, start);
    const again = first.end === null ? Number.POSITIVE_INFINITY : first.end + random.between(30, 120) * dayMs;
    const runs = campaign.strength > 0.5 && again < today ? [first, makeRun(market, campaign, again)] : [first];
    return runs.filter(({ start }) => start <= today).map((run) => makeAd(market, campaign, pageId, copy, run));
  }).flat();
}

type Run = { start: number; end: number | null; days: number; performance: number };

function makeRun({ random, today }: Market, { strength }: Campaign, start: number): Run {
  const performance = Math.min(1, Math.max(0, strength + (random.next() - 0.5) / 3));
  const planned = 2 + Math.floor(performance ** 2 * 240 + random.between(1, 14));
  const end = start + planned * dayMs;
  const running = end >= today;
  return { start, end: running ? null : end, days: running ? (today - start) / dayMs : planned, performance };
}

type Copy = { headline: string; body: string; linkDescription: string; format: string; cta: string };

function makeCopy(random: SeededRandom, { advertiser, product, angle, boast }: Campaign, variant: number): Copy {
  const { trade, callsToAction } = industries[advertiser.industry];
  const sayings = phrases[advertiser.language][trade];
  if (!sayings) throw new Error(`No phrases for ${trade} in "${advertiser.language}".`);
  const percent = random.pick([10, 15, 20, 25, 30]);
  const filling = { brand: advertiser.name, product: product.name, percent, days: 30, ...boast };
  const say = (phrase: string) => filled(phrase, filling);
  const points = random.some(advertiser.points, random.between(2, 4)).map((point) => `✔ ${point}`);
  const offer = angle === 'offer' || random.chance(0.6) ? [say(random.pick(sayings.offers))] : [];
  const opening = say(sayings.openings[angle][variant % 2] ?? '');
  const body = [opening, points.join('\n'), ...offer, say(random.pick(sayings.closings))].join('\n\n');
  return {
    headline: say(random.pick(sayings.headlines)),
    body,
    linkDescription: random.pick(advertiser.points),
    format: random.pick(['IMAGE', 'VIDEO', 'CAROUSEL', 'DCO'], 1.6),
    cta: random.pick(callsToAction, 1.5),
  };
}

/** Capitalises a value at the start of a sentence. */
function filled(phrase: string, filling: Record<string, string | number>): string {
  return phrase.replace(/\{(\w+)\}/g, (_, name: string, at: number) => {
    const value = String(filling[name]);
    return /(^|[.!?]\s+)[“«„¿¡]*\s*$/u.test(phrase.slice(0, at)) ? capitalised(value) : value;
  });
}

const capitalised = (text: string) => text.charAt(0).toLocaleUpperCase() + text.slice(1);

function makeAd(market: Market, campaign: Campaign, pageId: string, copy: Copy, run: Run): Ad {
  const { random, today } = market;
  const { advertiser, product } = campaign;
  const id = random.uuid();
  // Only campaigns that do well are measured, so that some links have parameters and others have not.
  const measured = `?utm_source=meta&utm_campaign=${campaign.angle}&utm_content=${copy.format.toLowerCase()}`;
  const link = `https://${advertiser.domain}/${campaign.angle}${campaign.strength > 0.3 ? measured : ''}`;
  const cardCount = copy.format === 'CAROUSEL' || copy.format === 'DCO' ? random.between(3, 5) : 0;
  const ad: Ad & { countries: string[] } = {
    id,
    pageId,
    sourcePageExternalId: externalId(pageId),
    headline: copy.headline,
    body: copy.body,
    linkDescription: copy.linkDescription,
    productTitle: capitalised(product.name),
    productPrice: product.price,
    productCreatedAt: isoDay(product.createdAt),
    offerLink: link,
    displayUrl: advertiser.domain,
    startedAt: isoDay(run.start),
    lastSeenAt: isoDay(run.end ?? today),
    endDate: run.end === null ? null : isoDay(run.end),
    ...makeFigures(market, advertiser, run),
    isStorePlatformBestSeller: run.performance > 0.8,
    ctaType: copy.cta,
    displayFormat: copy.format,
    countries: advertiser.countries.slice(0, random.between(1, advertiser.countries.length)),
    publisherPlatform: platforms.filter((_, at) => at < 2 || random.chance(0.35)),
    media: [],
    cards: Array.from({ length: cardCount }, (_, at) => cardOf(campaign, copy, link, at)),
    changes: {},
    website: { siteDomain: advertiser.domain },
    languages: [advertiser.language],
    currency: 'USD',
  };
  ad.media = makeMedia(random, ad, campaign, cardCount);
  return { ...ad, ...(ad.countries.some(hasBylines) && { bylines: `${advertiser.name} Ltd.` }) };
}

/** Countries in which ads say who paid for them. */
const hasBylines = (country: string) => country === 'DE' || country === 'FR';

const isoDay = (time: number) => new Date(time).toISOString();
const externalId = (pageId: string) => String(BigInt(`0x${pageId.replaceAll('-', '').slice(0, 12)}`)).padStart(15, '1');
/** Estimates have two significant digits. */
const rounded = (value: number) => Number(value.toPrecision(2));
/** Estimated amounts are whole units. */
const money = (value: number) => Math.max(1, Math.round(rounded(value)));

function makeFigures({ random, today }: Market, { countries }: Advertiser, { days, performance, start }: Run) {
  const reach = rounded((days + 1) * (1_500 + performance * 6_000) * (0.6 + random.next()) * countries.length);
  const spend = reach * (0.006 + random.next() * 0.006);
  const revenue = spend * (0.4 + performance * 3);
  const fresh = (today - start) / dayMs < 30;
  return {
    duplicates: 1 + Math.floor(performance ** 3 * 40 * random.next()),
    trendPublic: Math.round((fresh ? 40 : 0) + performance * 60 * random.next()),
    performancePublic: Math.round(performance * 100),
    audienceReach: reach,
    adSpendMin: money(spend * 0.8),
    adSpendMax: money(spend * 1.3),
    revenueMin: money(revenue * 0.7),
    revenueMax: money(revenue * 1.4),
  };
}

function cardOf({ advertiser, product }: Campaign, copy: Copy, link: string, at: number) {
  const { name } = advertiser.products[at % advertiser.products.length] ?? product;
  return {
    title: capitalised(name),
    body: advertiser.points[at % advertiser.points.length],
    cta_type: copy.cta,
    link_url: link,
    image_url: addressOf(cardPicture(advertiser, at)),
  };
}

/** A video has no more than a still. */
function makeMedia(random: SeededRandom, ad: Ad, { advertiser, product }: Campaign, cardCount: number): Ad['media'] {
  const asset = (type: string, { name, ...size }: Picture, nr: number | null) => ({
    ...{ type, url: addressOf({ name }), referenceId: ad.id, mediaFormat: 'webp', filename: `${name}.webp` },
    ...{ ...size, nr },
  });
  const still = asset('THUMB', pictureOf(advertiser, product.name, kindOf(ad)), 0);
  const logo = asset('PA_PP', { name: `${brandOf(advertiser)}-logo`, width: 160, height: 160 }, null);
  if (ad.displayFormat === 'VIDEO') {
    const video = { ...still, type: 'VID', durationSeconds: random.between(6, 45), urls: { preview: still.url } };
    return [video, still, logo];
  }
  const cards = Array.from({ length: cardCount }, (_, at) => asset('CARD_THUMB', cardPicture(advertiser, at), at + 1));
  return cards.length > 0 ? [...cards, logo] : [still, logo];
}

const stillOf = ({ media }: Ad) => media?.find(({ type }) => type.endsWith('THUMB'))?.url;

function makePage({ random, today }: Market, advertiser: Advertiser, pageId: string, ads: Ad[]): Page {
  const total = ads.reduce((sum, ad) => sum + (ad.duplicates ?? 0), 0);
  const average = (key: 'trendPublic' | 'performancePublic') =>
    rounded(ads.reduce((sum, ad) => sum + (ad[key] ?? 0), 0) / ads.length);
  const likes = rounded(random.between(20, 900) ** 2);
  const logo = `${brandOf(advertiser)}-logo`;
  return {
    pageId,
    pageName: advertiser.name,
    sourcePageExternalId: externalId(pageId),
    pageLikes: likes,
    pageIgFollowers: rounded(likes * (0.3 + random.next() * 2)),
    adsAmount: ads.length,
    adsTotalDuplicates: total,
    averageDuplicates: Number((total / ads.length).toFixed(2)),
    audienceReach: ads.reduce((sum, ad) => sum + (ad.audienceReach ?? 0), 0),
    trend: average('trendPublic'),
    performance: average('performancePublic'),
    pageCreatedAt: isoDay(today - random.between(200, 3000) * dayMs),
    createdAt: isoDay(today - random.between(20, 199) * dayMs),
    detailsEstimated: random.chance(0.3),
    technologySlugs: random.some(technologies, random.between(2, 5)),
    countries: advertiser.countries,
    languages: [advertiser.language],
    media: [{ type: 'PA_PP', url: addressOf({ name: logo }), mediaFormat: 'webp', filename: `${logo}.webp` }],
    thumbnails: ads.slice(0, 4).map((ad) => ({ url: stillOf(ad), isVideo: ad.displayFormat === 'VIDEO' })),
  };
}

/**
 * The data behind the demo. All advertisers are fictional; every domain ends in `.example`, which nobody can own.
 * test/library/demo.test.ts checks what is made of them.
 */

type Industry = keyof typeof industryTable;
type Language = keyof typeof phraseTable;

export type Advertiser = {
  name: string;
  domain: string;
  industry: Industry;
  language: Language;
  countries: string[];
  /** Prices are in the advertiser's own currency. */
  products: { name: string; price: number }[];
  points: string[];
};

export const advertisers = advertiserTable as Advertiser[];

/** The trade decides which phrases fit: a game is not shipped, and tea saves nobody an hour. */
const industries: Record<Industry, { trade: string; callsToAction: string[] }> = industryTable;

/** What a campaign is about. Each angle has two openings, which the variants test against each other. */
const angles = ['launch', 'offer', 'proof', 'story', 'question'] as const;
type Angle = (typeof angles)[number];

/**
 * The parts of an ad's copy. `{brand}`, `{product}`, `{percent}`, `{days}`, `{thousands}` and `{tries}` are filled in.
 * Product names include the article where a language needs one, so no phrase puts them after a word that would contract
 * with it ("de le", "em o"), and no word agrees with their gender or number.
 */
type Phrases = { openings: Record<Angle, string[]>; headlines: string[]; offers: string[]; closings: string[] };

/** By language and trade. A language only has the trades of its advertisers. */
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
 * Pictures of the demo's ads: the files in `../pictures`. Each product has one with its price and a
 * sticker, one with a headline, and a tall one; each advertiser has a logo.
 */
type Picture = { name: string; width: number; height: number };

const brandOf = ({ domain }: Advertiser) => domain.replace('.example', '');
const addressOf = ({ name }: Pick<Picture, 'name'>) => `{media_url}/demo/${name}.webp`;

function pictureOf(advertiser: Advertiser, product: string, kind: string): Picture {
  const nr = advertiser.products.findIndex(({ name }) => name === product) + 1;
  return { name: `${brandOf(advertiser)}-${nr}-${kind}`, width: 384, height: kind === 'tall' ? 480 : 384 };
}

/** A carousel goes through the advertiser's products, and then through them again with another picture of each. */
function cardPicture(advertiser: Advertiser, at: number): Picture {
  const { products } = advertiser;
  const { name = '' } = products[at % products.length] ?? {};
  return pictureOf(advertiser, name, ['meet', 'offer', 'tall'][Math.floor(at / products.length)] ?? 'meet');
}

/** Stills of videos are tall. A discount in the copy, points aside, has its sticker in the picture. */
function kindOf({ id, displayFormat, headline, body }: Ad): string {
  if (displayFormat === 'VIDEO') return 'tall';
  const copy = `${headline}\n${body}`.replaceAll(/^✔.*$/gm, '');
  if (/%|: play free/.test(copy)) return 'offer';
  return Number.parseInt(id.slice(-1), 16) % 2 === 0 ? 'meet' : 'tall';
}

export type SeededRandom = ReturnType<typeof createSeededRandom>;

/**
 * Repeatable random numbers: the same seed gives the same sequence. Mulberry32, good enough for fictional ads; never
 * use it for secrets.
 */
export function createSeededRandom(seed: number) {
  let state = seed >>> 0;
  /** From 0 up to, but not including, 1. */
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  /** A whole number from `low` to `high`, inclusive. */
  const between = (low: number, high: number) => low + Math.floor(next() * (high - low + 1));
  const bytes = (count: number) => Uint8Array.from({ length: count }, () => between(0, 255));
  return {
    next,
    between,
    bytes,
    /** Returns the seed with which the numbers that follow begin. */
    seed: () => state,
    /** An item of the list; `lean` above 1 favours its beginning. */
    pick<Item>(list: readonly Item[], lean = 1): Item {
      const choice = list[Math.floor(next() ** lean * list.length)];
      if (choice === undefined) throw new Error('There is nothing to pick from.');
      return choice;
    },
    some<Item>(list: readonly Item[], count: number): Item[] {
      const left = [...list];
      return Array.from({ length: Math.min(count, left.length) }, () =>
        left.splice(between(0, left.length - 1), 1),
      ).flat();
    },
    chance: (probability: number) => next() < probability,
    uuid(): string {
      const hex = Buffer.from(bytes(16)).toString('hex');
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
    },
  };
}
