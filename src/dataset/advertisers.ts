/** The fields of an ad that identify its advertiser. */
interface AdvertiserFields {
  pageId: string | null;
  pageName: string | null;
}

/**
 * Creates a function that returns a key for the advertiser of an ad, e.g. `page 12345` or `name acme`. The key is null
 * if the ad has neither a page id nor a page name.
 *
 * The page id identifies an advertiser, because a page may have been renamed and some ads lack the name. An ad without
 * a page id belongs to the page with the same name, ignoring case, if exactly one page has this name.
 */
export function createAdvertiserKeyFinder(ads: Iterable<AdvertiserFields>): (ad: AdvertiserFields) => string | null {
  const pageIdsByName = new Map<string, Set<string>>();
  for (const { pageId, pageName } of ads) {
    if (pageId === null || pageName === null) continue;
    const lowerCaseName = pageName.toLowerCase();
    const pageIds = pageIdsByName.get(lowerCaseName);
    if (pageIds) pageIds.add(pageId);
    else pageIdsByName.set(lowerCaseName, new Set([pageId]));
  }
  return ({ pageId, pageName }) => {
    if (pageId !== null) return `page ${pageId}`;
    if (pageName === null) return null;
    const lowerCaseName = pageName.toLowerCase();
    const [firstPageId, secondPageId] = pageIdsByName.get(lowerCaseName) ?? [];
    return firstPageId === undefined || secondPageId !== undefined ? `name ${lowerCaseName}` : `page ${firstPageId}`;
  };
}
