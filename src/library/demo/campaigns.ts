import type { Ad, Page } from '../../api/schemas.ts';
import type { Advertiser } from './advertisers.ts';
import { americanAdvertisers } from './advertisers-americas.ts';
import { asianAdvertisers } from './advertisers-asia.ts';
import { europeanAdvertisers } from './advertisers-europe.ts';
import { ctaByIndustry, platforms, technologies } from './habits.ts';
import { type Angle, angles, type PhrasesByTrade, tradeOf } from './phrases.ts';
import { asianPhrases } from './phrases-asia.ts';
import { englishPhrases } from './phrases-english.ts';
import { europeanPhrases } from './phrases-europe.ts';
import { germanPhrases } from './phrases-german.ts';
import { romancePhrases } from './phrases-romance.ts';
import type { Dice } from './random.ts';

/**
 * A made-up market: advertisers run campaigns, a campaign tries variants of its copy in several formats, variants that
 * do well run longer, are copied more often and may come back months later.
 */
export const advertisers: Advertiser[] = [...americanAdvertisers, ...europeanAdvertisers, ...asianAdvertisers];

const phrasesOf = { ...englishPhrases, ...germanPhrases, ...romancePhrases, ...europeanPhrases, ...asianPhrases };
const day = 86_400_000;

type Product = { name: string; price: number; createdAt: number };
type Campaign = {
  advertiser: Advertiser;
  product: Product;
  angle: Angle;
  start: number;
  strength: number;
  /** What its copy boasts of, the same in every variant. */
  boast: { thousands: number; tries: number };
};
type Market = { dice: Dice; today: number };

export type DemoPage = { page: Page; ads: Ad[] };

/** All advertisers with their ads. `now` counts by its day only. */
export function* makeMarket(dice: Dice, now: number): Generator<DemoPage> {
  const market = { dice, today: Math.floor(now / day) * day };
  for (const advertiser of advertisers) {
    const pageId = dice.uuid();
    const products = advertiser.products.map(([name, price]) => makeProduct(market, name, price));
    const campaigns = Array.from({ length: dice.between(7, 16) }, () => makeCampaign(market, advertiser, products));
    const ads = campaigns.flatMap((campaign) => makeAds(market, campaign, pageId));
    for (const ad of ads) ad.page = { pageName: advertiser.name, adsAmount: ads.length };
    yield { page: makePage(market, advertiser, pageId, ads), ads };
  }
}

const makeProduct = ({ dice, today }: Market, name: string, price: number): Product => ({
  name,
  price,
  createdAt: today - dice.between(150, 1100) * day,
});

/** Nothing is advertised before it exists. */
function makeCampaign({ dice, today }: Market, advertiser: Advertiser, products: Product[]): Campaign {
  const product = dice.pick(products);
  const longestAgo = Math.min(540 * day, today - product.createdAt) / day;
  return {
    advertiser,
    product,
    angle: dice.pick(angles),
    start: today - Math.ceil(dice.roll() ** 1.15 * longestAgo) * day,
    strength: dice.roll() ** 2,
    boast: { thousands: dice.between(11, 94), tries: dice.between(12, 48) },
  };
}

function makeAds(market: Market, campaign: Campaign, pageId: string): Ad[] {
  const { dice, today } = market;
  const variants = dice.between(2, 6);
  return Array.from({ length: variants }, (_, variant) => {
    const copy = makeCopy(dice, campaign, variant);
    // Variants follow one another over weeks; those still to come are not in the library yet.
    const start = campaign.start + dice.between(0, variant * 4) * day;
    const first = makeRun(market, campaign, start);
    const again = first.end === null ? Number.POSITIVE_INFINITY : first.end + dice.between(30, 120) * day;
    const runs = campaign.strength > 0.5 && again < today ? [first, makeRun(market, campaign, again)] : [first];
    return runs.filter(({ start }) => start <= today).map((run) => makeAd(market, campaign, pageId, copy, run));
  }).flat();
}

type Run = { start: number; end: number | null; days: number; performance: number };

function makeRun({ dice, today }: Market, { strength }: Campaign, start: number): Run {
  const performance = Math.min(1, Math.max(0, strength + (dice.roll() - 0.5) / 3));
  const planned = 2 + Math.floor(performance ** 2 * 240 + dice.between(1, 14));
  const end = start + planned * day;
  const running = end >= today;
  return { start, end: running ? null : end, days: running ? (today - start) / day : planned, performance };
}

type Copy = { headline: string; body: string; linkDescription: string; format: string; cta: string };

function makeCopy(dice: Dice, { advertiser, product, angle, boast }: Campaign, variant: number): Copy {
  const trade = tradeOf[advertiser.industry];
  const phrases = (phrasesOf[advertiser.language] as PhrasesByTrade)[trade];
  if (!phrases) throw new Error(`No phrases for ${trade} in "${advertiser.language}".`);
  const percent = dice.pick([10, 15, 20, 25, 30]);
  const filling = { brand: advertiser.name, product: product.name, percent, days: 30, ...boast };
  const say = (phrase: string) => filled(phrase, filling);
  const points = dice.some(advertiser.points, dice.between(2, 4)).map((point) => `✔ ${point}`);
  const offer = angle === 'offer' || dice.chance(0.6) ? [say(dice.pick(phrases.offers))] : [];
  const opening = say(phrases.openings[angle][variant % 2 === 0 ? 0 : 1]);
  const body = [opening, points.join('\n'), ...offer, say(dice.pick(phrases.closings))].join('\n\n');
  return {
    headline: say(dice.pick(phrases.headlines)),
    body,
    linkDescription: dice.pick(advertiser.points),
    format: dice.pick(['IMAGE', 'VIDEO', 'CAROUSEL', 'DCO'], 1.6),
    cta: dice.pick(ctaByIndustry[advertiser.industry], 1.5),
  };
}

/** What stands first in a sentence begins with a capital. */
function filled(phrase: string, filling: Record<string, string | number>): string {
  return phrase.replace(/\{(\w+)\}/g, (_, name: string, at: number) => {
    const value = String(filling[name]);
    return /(^|[.!?]\s+)[“«„¿¡]*\s*$/u.test(phrase.slice(0, at)) ? capitalised(value) : value;
  });
}

const capitalised = (text: string) => text.charAt(0).toLocaleUpperCase() + text.slice(1);

function makeAd(market: Market, campaign: Campaign, pageId: string, copy: Copy, run: Run): Ad {
  const { dice, today } = market;
  const { advertiser, product } = campaign;
  const id = dice.uuid();
  const link = `https://${advertiser.domain}/${campaign.angle}?ad=${id.slice(0, 8)}`;
  const cardCount = copy.format === 'CAROUSEL' || copy.format === 'DCO' ? dice.between(3, 5) : 0;
  return {
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
    countries: advertiser.countries.slice(0, dice.between(1, advertiser.countries.length)),
    publisherPlatform: platforms.filter((_, at) => at < 2 || dice.chance(0.35)),
    media: makeMedia(dice, id, copy.format, cardCount),
    cards: Array.from({ length: cardCount }, (_, at) => ({
      title: capitalised(advertiser.products[at % advertiser.products.length]?.[0] ?? product.name),
      body: advertiser.points[at % advertiser.points.length],
      cta_type: copy.cta,
      link_url: link,
      image_url: `{media_url}/ads/${id}/${at + 1}.svg`,
    })),
    changes: {},
    website: { siteDomain: advertiser.domain },
  };
}

const isoDay = (time: number) => new Date(time).toISOString();
const externalId = (pageId: string) => String(BigInt(`0x${pageId.replaceAll('-', '').slice(0, 12)}`)).padStart(15, '1');
/** Two figures are as exact as an estimate should look. */
const rounded = (value: number) => Number(value.toPrecision(2));
/** Whole units: nobody estimates what an ad cost to the cent. */
const money = (value: number) => Math.max(1, Math.round(rounded(value)));

function makeFigures({ dice, today }: Market, { countries }: Advertiser, { days, performance, start }: Run) {
  const reach = rounded((days + 1) * (1_500 + performance * 6_000) * (0.6 + dice.roll()) * countries.length);
  const spend = reach * (0.006 + dice.roll() * 0.006);
  const revenue = spend * (0.4 + performance * 3);
  const fresh = (today - start) / day < 30;
  return {
    duplicates: 1 + Math.floor(performance ** 3 * 40 * dice.roll()),
    trendPublic: Math.round((fresh ? 40 : 0) + performance * 60 * dice.roll()),
    performancePublic: Math.round(performance * 100),
    audienceReach: reach,
    adSpendMin: money(spend * 0.8),
    adSpendMax: money(spend * 1.3),
    revenueMin: money(revenue * 0.7),
    revenueMax: money(revenue * 1.4),
  };
}

/** Pictures are drawn by media.ts when they are asked for; a video is an animated one with its still beside it. */
function makeMedia(dice: Dice, id: string, format: string, cards: number): Ad['media'] {
  const asset = (type: string, nr: number, query = '') => ({
    type,
    url: `{media_url}/ads/${id}/${nr}.svg${query}`,
    nr,
    referenceId: id,
    mediaFormat: 'svg',
    filename: `${nr}.svg`,
    width: 1080,
    height: 1080,
  });
  const logo = {
    ...asset('PA_PP', 0),
    url: `{media_url}/ads/${id}/logo.svg`,
    nr: null,
    filename: 'logo.svg',
    width: 240,
    height: 240,
  };
  if (format === 'VIDEO') {
    const still = `{media_url}/ads/${id}/0.svg`;
    const video = { ...asset('VID', 0, '?play'), durationSeconds: dice.between(6, 45), urls: { preview: still } };
    return [video, asset('THUMB', 0), logo];
  }
  return cards > 0
    ? [...Array.from({ length: cards }, (_, at) => asset('CARD_THUMB', at + 1)), logo]
    : [asset('THUMB', 0), logo];
}

function makePage({ dice, today }: Market, advertiser: Advertiser, pageId: string, ads: Ad[]): Page {
  const total = ads.reduce((sum, ad) => sum + (ad.duplicates ?? 0), 0);
  const average = (key: 'trendPublic' | 'performancePublic') =>
    rounded(ads.reduce((sum, ad) => sum + (ad[key] ?? 0), 0) / ads.length);
  const likes = rounded(dice.between(20, 900) ** 2);
  return {
    pageId,
    pageName: advertiser.name,
    sourcePageExternalId: externalId(pageId),
    pageLikes: likes,
    pageIgFollowers: rounded(likes * (0.3 + dice.roll() * 2)),
    adsAmount: ads.length,
    adsTotalDuplicates: total,
    averageDuplicates: Number((total / ads.length).toFixed(2)),
    audienceReach: ads.reduce((sum, ad) => sum + (ad.audienceReach ?? 0), 0),
    trend: average('trendPublic'),
    performance: average('performancePublic'),
    pageCreatedAt: isoDay(today - dice.between(200, 3000) * day),
    createdAt: isoDay(today - dice.between(20, 199) * day),
    detailsEstimated: dice.chance(0.3),
    technologySlugs: dice.some(technologies, dice.between(2, 5)),
    countries: advertiser.countries,
    languages: [advertiser.language],
    media: [{ type: 'PA_PP', url: `{media_url}/ads/${ads[0]?.id}/logo.svg`, mediaFormat: 'svg', filename: 'logo.svg' }],
    thumbnails: ads.slice(0, 4).map((ad) => ({ url: ad.media?.[1]?.url, isVideo: ad.displayFormat === 'VIDEO' })),
  };
}
