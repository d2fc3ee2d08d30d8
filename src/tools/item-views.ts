import { type AdView, viewAd } from '../present/ad.ts';
import { adListText } from '../present/ad-list-text.ts';
import { appUrlPattern, type ListFrame } from '../present/list-text.ts';
import { type PageView, pageListText, viewPage } from '../present/page.ts';
import { dayOf } from '../present/running.ts';
import type { Detail } from '../present/view.ts';

/** What holds for all items of a list: the day they are as of, and the form of their links. */
export interface SharedFacts {
  asOf?: string;
  appUrlPattern?: string;
}

/** How the items of a list are condensed, and how the list of them reads. */
export interface ItemViews<View> {
  /** Equal for views that make the same of the same items. */
  name: string;
  /** Of an item as the service sent it, whatever its fields hold. */
  view(item: object): View;
  shared?(items: readonly object[]): SharedFacts;
  text(list: { items: readonly View[] } & ListFrame): string;
  /** How many to condense before looking whether more fit: of full ones few do. */
  atATime?: number;
}

interface Room {
  now: number;
  resultTokens: number;
}

export function adViews(detail: Detail, { now, resultTokens }: Room): ItemViews<AdView> {
  const asOf = dayOf(now);
  const today: SharedFacts = asOf === undefined ? {} : { asOf };
  return {
    name: `ads ${detail} ${asOf}`,
    view: (ad) => viewAd(ad, { detail, now, budget: itemTokens(resultTokens) }),
    shared: (ads) => (detail === 'full' ? today : { ...today, ...linkForm(ads, 'id') }),
    text: (list) => adListText({ ...list, detail, budget: itemTokens(resultTokens) }),
    ...(detail === 'full' && { atATime: 4 }),
  };
}

export function pageViews(detail: Detail, { resultTokens }: Room): ItemViews<PageView> {
  return {
    name: `pages ${detail}`,
    view: (page) => viewPage(page, { detail, budget: itemTokens(resultTokens) }),
    shared: (pages) => (detail === 'full' ? {} : linkForm(pages, 'pageId')),
    text: (list) => pageListText({ ...list, detail, budget: itemTokens(resultTokens) }),
    ...(detail === 'full' && { atATime: 4 }),
  };
}

function linkForm(items: readonly object[], idName: 'id' | 'pageId'): SharedFacts {
  const pattern = appUrlPattern(items, idName);
  return pattern === undefined ? {} : { appUrlPattern: pattern };
}

/** A single item leaves room for what frames it. */
export const itemTokens = (resultTokens: number): number => Math.floor(resultTokens * 0.9);
