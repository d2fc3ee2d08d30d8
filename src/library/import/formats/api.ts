import { Ad, type Page } from '../../../api/schemas.ts';
import { isObject } from '../../../views/view.ts';
import type { ImportFormat } from './import-format.ts';
import { normalizeKey } from './source-record.ts';

/** Fields that the API's schema does not name and the search of the library knows. */
const searchable = [
  ...['languages', 'bylines', 'currency', 'demographics', 'regions', 'headlines', 'bodies', 'linkDescriptions'],
  ...['displayUrls', 'impressionsMin', 'impressionsMax', 'audienceSizeMin', 'audienceSizeMax', 'adArchiveId'],
];

/** Ads and pages in the shapes of the API. A record is stored as it is written. */
export const apiFormat: ImportFormat = {
  name: 'api',
  title: 'ads and pages in the shapes of the API',
  layouts: ['json'],
  keysByField: Object.fromEntries(
    [...Object.keys(Ad.shape), ...searchable].map((field) => [field, [normalizeKey(field)]]),
  ),
  // Ids of the API have this spelling alone; other spellings are those of other formats.
  matches: (record) =>
    (record.has('id') && record.getSourceName('id') === 'id') ||
    (record.has('pageid') && record.getSourceName('pageid') === 'pageId'),
  toAd(record, values) {
    const ad = record.toObject();
    for (const name of Object.keys(ad)) if (!knownNames.has(name)) values.unusedKeys.push(name);
    const { pageName, page, ...rest } = ad;
    // A row of an exported table has the name of the advertiser beside the id.
    if (typeof pageName !== 'string' || (isObject(page) && page.pageName != null)) return ad;
    return { ...rest, page: { ...(isObject(page) && page), pageName } };
  },
  toPage: (record) => (record.has('id') ? undefined : (record.toObject() as Page)),
};

const knownNames = new Set([...Object.keys(Ad.shape), ...searchable, 'pageName']);
