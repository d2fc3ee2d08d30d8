import { LRUCache } from 'lru-cache';
import { AdAnswer } from './response-schemas.ts';
import { type Answer, gatedOnly, replayed, type Send } from './send.ts';
import type { CacheOptions } from './with-cache.ts';

interface Seen {
  raw: unknown;
  requestId: string | null;
  listedBy: string;
  at: number;
}

/** Most characters of ads kept for all keys together. */
const largestMemory = 16 * 1024 * 1024;

/**
 * Answers `getAd` with the ad as a paid list showed it, to a caller who asks for that.
 *
 * Only to a caller who asks: in the document, an ad of a list and the answer of getAd have one schema, in which every
 * key but `id` may be absent, and `appUrl` is shown on list items only. Nothing says that a list holds all that getAd
 * would, so the copy is no answer of getAd: it is passed on with its age and where it is from, never silently.
 */
export function withSeenAds(send: Send, { ttl, now }: CacheOptions): Send {
  if (ttl === 0) return send;
  const seen = new LRUCache<string, Seen>({ maxSize: largestMemory });
  const nameOf = (owner: string, id: string) => `${owner} ${id.toLowerCase()}`;

  const remember = (owner: string, listedBy: string, list: Answer) => {
    const { items } = list.raw as { items: readonly { id?: unknown }[] };
    const size = Math.ceil(list.size / Math.max(1, items.length)) + 100;
    const { requestId } = list.receipt;
    const at = now();
    // The items of a collection are judged by who shows them, so what is no ad may be among them.
    for (const raw of items)
      if (typeof raw.id === 'string') seen.set(nameOf(owner, raw.id), { raw, requestId, listedBy, at }, { size });
  };

  return gatedOnly(send, async (call) => {
    const { name } = call.operation;
    const found = call.seen && !call.fresh && name === 'getAd' && seen.get(nameOf(call.tenantId, call.path.adId ?? ''));
    if (found && now() - found.at < ttl) {
      const { raw, requestId, listedBy, at } = found;
      const receipt = { charged: null, remaining: null, cached: true, requestId };
      return { ...replayed({ raw, value: AdAnswer.parse(raw), receipt, size: 0 }, now() - at), seenIn: listedBy };
    }
    const answer = await send(call);
    const listsAds = name === 'searchAds' || (name === 'listCollectionItems' && call.query.itemType === 'ads');
    if (listsAds && !answer.receipt.cached) remember(call.tenantId, name, answer);
    return answer;
  });
}
