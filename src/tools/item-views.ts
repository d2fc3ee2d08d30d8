import type { AdAnswer, PageAnswer } from '../api/answers.ts';
import { type AdView, viewAd } from '../present/ad.ts';
import { adListText } from '../present/ad-list-text.ts';
import type { ListFrame } from '../present/list-text.ts';
import { type PageView, pageListText, viewPage } from '../present/page.ts';
import type { Detail } from '../present/view.ts';

/** How the items of a list are condensed, and how the list of them reads. */
export interface ItemViews<Item, View> {
  view(item: Item, raw: unknown): View;
  text(list: { items: readonly View[] } & ListFrame): string;
}

interface Room {
  now: number;
  resultTokens: number;
}

export const adViews = (detail: Detail, { now, resultTokens }: Room): ItemViews<AdAnswer, AdView> => ({
  view: (ad, raw) => viewAd(sourceFor(detail, ad, raw), { detail, now, budget: itemTokens(resultTokens) }),
  text: (list) => adListText({ ...list, detail }),
});

export const pageViews = (detail: Detail, { resultTokens }: Room): ItemViews<PageAnswer, PageView> => ({
  view: (page, raw) => viewPage(sourceFor(detail, page, raw), { detail, budget: itemTokens(resultTokens) }),
  text: (list) => pageListText({ ...list, detail }),
});

/** `full` holds every field as the service sent it, so it is made from the body as it came. */
export const sourceFor = (detail: string, read: object, raw: unknown): object =>
  detail === 'full' ? (raw as object) : read;

/** A single item leaves room for what frames it. */
export const itemTokens = (resultTokens: number): number => Math.floor(resultTokens * 0.9);
