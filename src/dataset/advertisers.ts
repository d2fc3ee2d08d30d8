import type { KnownAdFacts } from './ad-rows.ts';

type AdvertiserFields = Pick<KnownAdFacts, 'pageId' | 'pageName'>;

/**
 * Creates a function that returns a key for the advertiser of an ad. The key is null if the ad has neither a page id
 * nor a page name.
 *
 * An advertiser is identified by its page id, because a page may have been renamed and some ads lack the name. If an ad
 * has a name but no page id, the name is used, ignoring case. If exactly one page has this name, the ad is assigned to
 * that page.
 */
export function createAdvertiserKeyFinder(ads: Iterable<AdvertiserFields>): (ad: AdvertiserFields) => string | null {
  const idsByName = new Map<string, Set<string>>();
  for (const { pageId, pageName } of ads) {
    if (pageId === null || pageName === null) continue;
    const name = pageName.toLowerCase();
    const ids = idsByName.get(name);
    if (ids) ids.add(pageId);
    else idsByName.set(name, new Set([pageId]));
  }
  return ({ pageId, pageName }) => {
    if (pageId !== null) return `page ${pageId}`;
    if (pageName === null) return null;
    const name = pageName.toLowerCase();
    const [id, otherId] = idsByName.get(name) ?? [];
    return id === undefined || otherId !== undefined ? `name ${name}` : `page ${id}`;
  };
}
