import advertiserTable from './advertisers.json' with { type: 'json' };
import industryTable from './industries.json' with { type: 'json' };
import phraseTable from './phrases.json' with { type: 'json' };

/**
 * What the demo's market is made from. Nobody in it exists; every address ends in `.example`, which nobody can own.
 * The tables are checked by test/library/market-tables.test.ts.
 */

export type Industry = keyof typeof industryTable;
export type Language = keyof typeof phraseTable;

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

/** The trade chooses the phrases: a game ships nothing, and a box of tea saves nobody an hour. */
export const industries: Record<Industry, { trade: string; callsToAction: string[] }> = industryTable;

/** What a campaign is about; each has two openings, which its variants try against each other. */
export const angles = ['launch', 'offer', 'proof', 'story', 'question'] as const;
export type Angle = (typeof angles)[number];

/**
 * How ads begin, bargain and end. `{brand}`, `{product}`, `{percent}`, `{days}`, `{thousands}` and `{tries}` are filled
 * in. Names of products come with their article where the language wants one, so no phrase puts them after a word that
 * would merge with it or change it ("de le", "em o"), nor lets anything agree with their gender or number.
 */
export type Phrases = { openings: Record<Angle, string[]>; headlines: string[]; offers: string[]; closings: string[] };

/** By language and trade: a language has the trades that its advertisers are in. */
export const phrases: Record<Language, Partial<Record<string, Phrases>>> = phraseTable;

export const platforms = ['FACEBOOK', 'INSTAGRAM', 'MESSENGER', 'AUDIENCE_NETWORK', 'THREADS'];
export const technologies = [
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
