import type { Industry } from './industry.ts';

/** What advertisers of an industry ask for, where they advertise, and what runs on their sites. */
export const ctaByIndustry: Record<Industry, string[]> = {
  beauty: ['SHOP_NOW', 'LEARN_MORE', 'GET_OFFER'],
  fashion: ['SHOP_NOW', 'LEARN_MORE'],
  food: ['SHOP_NOW', 'ORDER_NOW', 'SUBSCRIBE'],
  home: ['SHOP_NOW', 'LEARN_MORE', 'GET_OFFER'],
  education: ['SIGN_UP', 'LEARN_MORE', 'SUBSCRIBE'],
  software: ['SIGN_UP', 'LEARN_MORE', 'DOWNLOAD'],
  travel: ['BOOK_TRAVEL', 'LEARN_MORE'],
  fitness: ['SHOP_NOW', 'LEARN_MORE'],
  pets: ['SHOP_NOW', 'SUBSCRIBE'],
  games: ['PLAY_GAME', 'INSTALL_MOBILE_APP'],
  finance: ['SIGN_UP', 'APPLY_NOW', 'LEARN_MORE'],
  energy: ['GET_QUOTE', 'LEARN_MORE'],
};

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
