import advertiserTable from './advertisers.json' with { type: 'json' };
import industryTable from './industries.json' with { type: 'json' };
import phraseTable from './phrases.json' with { type: 'json' };

/**
 * The data behind the demo. All advertisers are fictional; every domain ends in `.example`, which nobody can own.
 * test/library/market-tables.test.ts checks the tables.
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

/** The trade decides which phrases fit: a game is not shipped, and tea saves nobody an hour. */
export const industries: Record<Industry, { trade: string; callsToAction: string[] }> = industryTable;

/** What a campaign is about. Each angle has two openings, which the variants test against each other. */
export const angles = ['launch', 'offer', 'proof', 'story', 'question'] as const;
export type Angle = (typeof angles)[number];

/**
 * The parts of an ad's copy. `{brand}`, `{product}`, `{percent}`, `{days}`, `{thousands}` and `{tries}` are filled in.
 * Product names include the article where a language needs one, so no phrase puts them after a word that would contract
 * with it ("de le", "em o"), and no word agrees with their gender or number.
 */
export type Phrases = { openings: Record<Angle, string[]>; headlines: string[]; offers: string[]; closings: string[] };

/** By language and trade. A language only has the trades of its advertisers. */
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
