import { AdAnswer } from './response-schemas.ts';
import { type Answer, type Call, gatedOnly, replayed, type Send } from './send.ts';

/** An ad as a list showed it. */
export interface SeenAd {
  raw: unknown;
  requestId: string | null;
  /** The operation of that list. */
  listedBy: string;
  /** In milliseconds since the epoch. */
  at: number;
  /** Its estimated memory. */
  bytes: number;
}

/** The ads that lists showed, separately for each tenant. */
export interface SeenAds {
  get(tenantId: string, id: string): Promise<SeenAd | undefined>;
  set(tenantId: string, id: string, ad: SeenAd): Promise<void>;
}

export interface SeenAdsOptions {
  seen: SeenAds;
  now: () => number;
}

/**
 * Answers `getAd` with the ad as a paid list showed it, if the caller asks for that.
 *
 * Only then: list items and `getAd` share one schema in the document, but every key except `id` may be absent, and
 * nothing says that a list item is as complete as the answer of `getAd`. So the result states the age and the source of
 * the copy.
 */
export function withSeenAds(send: Send, { seen, now }: SeenAdsOptions): Send {
  return async (call) => {
    if (!call.seen || call.fresh || call.operation.name !== 'getAd') return send(call);
    const found = await seen.get(call.tenantId, idOf(call.path.adId));
    if (found === undefined) return send(call);
    const { raw, requestId, listedBy, at } = found;
    const receipt = { charged: null, remaining: null, cached: true, requestId };
    return { ...replayed({ raw, value: AdAnswer.parse(raw), receipt, size: 0 }, now() - at), seenIn: listedBy };
  };
}

/** Remembers the ads of every list that was paid for. */
export function withRememberedAds(send: Send, { seen, now }: SeenAdsOptions): Send {
  return gatedOnly(send, async (call) => {
    const answer = await send(call);
    if (listsAds(call)) await remember(call, answer);
    return answer;
  });

  async function remember({ tenantId, operation }: Call, { raw, size, receipt }: Answer): Promise<void> {
    const { items } = raw as { items: readonly { id?: unknown }[] };
    const bytes = Math.ceil(size / Math.max(1, items.length));
    const about = { requestId: receipt.requestId, listedBy: operation.name, at: now(), bytes };
    // Items of a collection are not checked yet, so some may not be ads.
    for (const item of items)
      if (typeof item.id === 'string') await seen.set(tenantId, idOf(item.id), { raw: item, ...about });
  }
}

const idOf = (id = '') => id.toLowerCase();

const listsAds = ({ operation: { name }, query }: Call) =>
  name === 'searchAds' || (name === 'listCollectionItems' && query.itemType === 'ads');
