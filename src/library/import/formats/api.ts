import { Ad, Page } from '../../../api/schemas.ts';
import { isObject } from '../../../views/view.ts';
import type { ImportFormat } from './import-format.ts';
import { normalizeKey } from './source-record.ts';

/** Fields that the library's search uses although the API's schema does not have them. */
const additionalFields = [
  ...['languages', 'bylines', 'currency', 'demographics', 'regions', 'headlines', 'bodies', 'linkDescriptions'],
  ...['displayUrls', 'impressionsMin', 'impressionsMax', 'audienceSizeMin', 'audienceSizeMax', 'adArchiveId'],
  ...['adLibrary', 'adSnapshotUrl', 'payer', 'beneficiary', 'beneficiaryPayers', 'ageCountryGenderReachBreakdown'],
  ...['reachByCountry', 'reachMin', 'reachMax', 'isActive'],
];

/** Ads and advertiser pages in the format of the API. Records are stored exactly as the source wrote them. */
export const apiFormat: ImportFormat = {
  name: 'api',
  title: 'ads and pages in the shapes of the API',
  description: 'docs/archive.md',
  layouts: ['json'],
  keysByField: Object.fromEntries(
    [...Object.keys({ ...Ad.shape, ...Page.shape }), ...additionalFields].map((field) => [
      field,
      [normalizeKey(field)],
    ]),
  ),
  // Compare the original spelling. The API has only one spelling for each of these keys, so any other spelling means
  // another format.
  matches: (record) =>
    (record.has('id') && record.getSourceName('id') === 'id') ||
    (record.has('pageid') && record.getSourceName('pageid') === 'pageId'),
  toAd(record, parser) {
    const ad = record.toObject();
    for (const name of Object.keys(ad)) if (!knownKeys.has(name)) parser.unusedKeys.push(name);
    const { pageName, page, ...otherFields } = ad;
    // A row of an exported table has the advertiser's name at the top level instead of inside `page`.
    if (typeof pageName !== 'string' || (isObject(page) && page.pageName != null)) return ad;
    return { ...otherFields, page: { ...(isObject(page) && page), pageName } };
  },
  toPage: (record) => (record.has('id') ? undefined : (record.toObject() as Page)),
};

const knownKeys = new Set([...Object.keys(Ad.shape), ...additionalFields, 'pageName']);
