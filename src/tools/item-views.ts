import { type AdView, viewAd } from '../present/ad.ts';
import { adListText } from '../present/ad-text.ts';
import type { Detail } from '../present/copy-fields.ts';
import { dayOf } from '../present/dates.ts';
import { appUrlPattern, type ListFrame } from '../present/list-text.ts';
import { type PageView, pageListText, viewPage } from '../present/page.ts';

/** A page of a list as the service sent it. */
export interface ListAnswer {
  value: { cursor: string | null; hasMore: boolean; totalHits?: number | undefined };
  /** The body as it was received: items are shown with whatever fields they have. */
  raw: unknown;
  /** Identifies an answer that is cached. */
  cacheId?: string | undefined;
  /** What comes before the items, in the data and in the text. */
  heading?: { data: object; text: string | undefined };
}

export const itemsOf = ({ raw }: ListAnswer): readonly object[] => (raw as { items: object[] }).items;

/** What all items of a list share: the day of the answer, and the form of their links. */
export interface SharedFacts {
  asOf?: string;
  appUrlPattern?: string;
}

/** How the items of a list are condensed, and how the list reads. */
export interface ItemViews<View> {
  /** The same for views that give the same result. */
  name: string;
  /** Condenses an item as the service sent it, whatever its fields hold. */
  view(item: object): View;
  shared?(items: readonly object[]): SharedFacts;
  text(list: { items: readonly View[] } & ListFrame): string;
  /** How many items to condense before checking whether more fit. Few full ones do. */
  atATime?: number;
}

interface ViewOptions {
  now: number;
  resultTokens: number;
}

export function adViews(detail: Detail, { now, resultTokens }: ViewOptions): ItemViews<AdView> {
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

export function pageViews(detail: Detail, { resultTokens }: ViewOptions): ItemViews<PageView> {
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

/** The tokens of a single item, which leave room for the frame around it. */
export const itemTokens = (resultTokens: number): number => Math.floor(resultTokens * 0.9);
