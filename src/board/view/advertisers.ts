import { countValues } from '../../ui/bars.tsx';
import type { BriefAd } from '../payload.ts';

/** An advertiser page whose ads the board shows. */
export interface Advertiser {
  name: string;
  /**
   * A text with the page id, e.g. `page 1234` or `page …d015ca12`. Set only if another advertiser page on the board has
   * the same name.
   */
  pageLabel?: string | undefined;
}

/**
 * Returns the id by which the board tells advertisers apart. The id is the page id, because different pages can have
 * the same name. If the page id is unknown, the id is the name. Returns undefined if the name is unknown.
 */
export const getAdvertiserId = ({ pageId, pageName }: BriefAd): string | undefined =>
  pageName === undefined ? undefined : (pageId ?? pageName);

const cachedAdvertisersByAds = new WeakMap<readonly BriefAd[], ReadonlyMap<string, Advertiser>>();

/**
 * Returns the advertisers of a list of ads, by advertiser id. The function caches the result for each list, because
 * several components need it in every render.
 */
export function listAdvertisers(ads: readonly BriefAd[]): ReadonlyMap<string, Advertiser> {
  const cachedAdvertisers = cachedAdvertisersByAds.get(ads);
  if (cachedAdvertisers !== undefined) return cachedAdvertisers;
  const namesById = new Map<string, string>();
  for (const ad of ads) {
    const id = getAdvertiserId(ad);
    if (id !== undefined && ad.pageName !== undefined && !namesById.has(id)) namesById.set(id, ad.pageName);
  }
  const pageCountsByName = countValues([...namesById.values()]);
  const advertisers = new Map(
    [...namesById].map(([id, name]): [string, Advertiser] => [
      id,
      { name, pageLabel: (pageCountsByName.get(name) ?? 0) > 1 ? `page ${shortenPageId(id)}` : undefined },
    ]),
  );
  cachedAdvertisersByAds.set(ads, advertisers);
  return advertisers;
}

/** The maximum length of a page id that the board shows in full next to the name of an advertiser. */
const maxFullPageIdLength = 16;

/** Shortens a page id to its end, because the ids of many services start with the same characters. */
const shortenPageId = (id: string): string => (id.length > maxFullPageIdLength ? `…${id.slice(-8)}` : id);

/** Formats an advertiser as text, e.g. `Acme`, or `Acme (page 1234)` if several pages have this name. */
export const formatAdvertiser = ({ name, pageLabel }: Advertiser): string =>
  pageLabel === undefined ? name : `${name} (${pageLabel})`;
