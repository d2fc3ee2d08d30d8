import { createHash } from 'node:crypto';
import { computeUuidFromName } from '../../service/request.ts';
import type { AdLibraryName } from './import-format.ts';

/**
 * Computes the UUID of an ad from its id in an ad library. The same id always produces the same UUID, so that a second
 * import replaces the ad. Equal ids in different ad libraries produce different UUIDs.
 */
export function computeAdId(adLibrary: AdLibraryName, archiveId: string): string {
  const prefix = adLibrary === 'meta' ? '' : `${adLibrary} `;
  const hex = createHash('sha256').update(`${prefix}public ad library ${archiveId}`).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/**
 * Returns the id of an advertiser page. An id from Meta stays unchanged. Any other id gets the name of the ad library
 * as a prefix, so that it cannot be confused with an id from Meta or from a service.
 */
export const computePageId = (adLibrary: AdLibraryName, externalPageId: string): string =>
  adLibrary === 'meta' ? externalPageId : `${adLibrary}:${externalPageId}`;

/**
 * Computes the id of an advertiser page from its name, if the source states no id. The result never equals the id of
 * another page, even if the name consists of digits.
 * @param nameKind the kind of the name, e.g. `page`; equal names of different kinds produce different ids
 */
export const computePageIdFromName = (adLibrary: AdLibraryName, advertiserName: string, nameKind = 'page'): string =>
  `${adLibrary}:${computeUuidFromName(JSON.stringify([nameKind, advertiserName]))}`;
