import type { KnownAdFacts } from './ad-rows.ts';

type AdvertiserFields = Pick<KnownAdFacts, 'pageId' | 'pageName'>;

/**
 * Returns a function that finds the key of an ad's advertiser, or null for an ad that names none.
 *
 * An advertiser is a page, whatever names its ads carry: a page may have been renamed, or only some of its ads may name
 * it. An ad with a name but no page id belongs to the page of that name, if exactly one page has the name. Upper and
 * lower case do not matter.
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
