import type { StoredItem } from '../storage/item-versions.ts';

/** Returns the time at which one of the ads was read last; undefined without ads. */
export const lastReadAt = (ads: readonly Pick<StoredItem, 'at'>[]): number | undefined =>
  ads.length === 0 ? undefined : ads.reduce((latest, { at }) => Math.max(latest, at), 0);
