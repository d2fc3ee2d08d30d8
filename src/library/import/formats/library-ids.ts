import { createHash } from 'node:crypto';
import { uuidFromName } from '../../service/request.ts';
import type { AdLibraryName } from './import-format.ts';

/**
 * Computes the UUID of an ad from its id in an ad library. The same id always gives the same UUID, so that a second
 * import replaces the ad. Ads of different ad libraries, such as Meta and Google, have different UUIDs even if their
 * ids are equal.
 */
export function computeAdId(adLibrary: AdLibraryName, archiveId: string): string {
  const prefix = adLibrary === 'meta' ? '' : `${adLibrary} `;
  const hex = createHash('sha256').update(`${prefix}public ad library ${archiveId}`).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/**
 * Returns the id of an advertiser page. Meta's ids stay unchanged. All other ids get the name of the ad library as a
 * prefix, so that they cannot be confused with ids of Meta or of a service.
 */
export const computePageId = (adLibrary: AdLibraryName, id: string): string =>
  adLibrary === 'meta' ? id : `${adLibrary}:${id}`;

/**
 * Computes the id of an advertiser page without an id of its own from its name. The result never equals the id of
 * another page, even if the name consists of digits.
 * @param nameKind what the name names, e.g. `page`; equal names of different kinds are different pages
 */
export const computePageIdFromName = (adLibrary: AdLibraryName, name: string, nameKind = 'page'): string =>
  `${adLibrary}:${uuidFromName(JSON.stringify([nameKind, name]))}`;
