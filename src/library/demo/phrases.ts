import type { Industry } from './industry.ts';

/**
 * How ads begin, bargain and end, by language and trade: a game ships nothing, and a box of tea saves nobody an hour.
 *
 * `{brand}`, `{product}`, `{percent}`, `{days}`, `{thousands}` and `{tries}` are filled in. Names of products come with
 * their article where the language wants one, so no phrase puts them after a word that would merge with it or change it
 * ("de le", "em o"), nor lets anything agree with their gender or number.
 *
 * Angles are what a campaign is about; each has two openings, which its variants try against each other.
 */
export const angles = ['launch', 'offer', 'proof', 'story', 'question'] as const;
export type Angle = (typeof angles)[number];

export type Phrases = {
  openings: Record<Angle, [string, string]>;
  headlines: [string, string, string];
  offers: [string, string];
  closings: [string, string];
};

export type Trade = 'goods' | 'apps' | 'games' | 'services';

export const tradeOf: Record<Industry, Trade> = {
  beauty: 'goods',
  fashion: 'goods',
  food: 'goods',
  home: 'goods',
  fitness: 'goods',
  pets: 'goods',
  software: 'apps',
  finance: 'apps',
  games: 'games',
  education: 'services',
  travel: 'services',
  energy: 'services',
};

/** A language needs the trades that its advertisers are in. */
export type PhrasesByTrade = Partial<Record<Trade, Phrases>>;
