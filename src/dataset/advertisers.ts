import type { KnownAdFacts } from './ad-rows.ts';

type Page = Pick<KnownAdFacts, 'pageId' | 'pageName'>;

/**
 * Returns a function that gives the key of an ad's advertiser; null for an ad that names none. An advertiser is a page,
 * whatever names its ads carry: a page may have been renamed, or be named in some of its ads only. An ad that states a
 * name alone belongs to the page of that name, if exactly one page of the ads has the name, in upper or lower case.
 */
export function createAdvertiserKeyFinder(ads: Iterable<Page>): (ad: Page) => string | null {
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
    const [id, another] = idsByName.get(name) ?? [];
    return id === undefined || another !== undefined ? `name ${name}` : `page ${id}`;
  };
}
