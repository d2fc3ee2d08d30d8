import { Ad, Page } from '../../../api/schemas.ts';
import { isObject } from '../../../views/view.ts';
import type { ImportFormat } from './import-format.ts';
import { normalizeKey } from './source-record.ts';

/** Fields that the API's schema does not define, but that the local library can use in searches. */
const additionalFields = [
  ...['languages', 'bylines', 'currency', 'demographics', 'regions', 'headlines', 'bodies', 'linkDescriptions'],
  ...['displayUrls', 'impressionsMin', 'impressionsMax', 'audienceSizeMin', 'audienceSizeMax', 'adArchiveId'],
  ...['adLibrary', 'adSnapshotUrl', 'payer', 'beneficiary', 'beneficiaryPayers', 'ageCountryGenderReachBreakdown'],
  ...['reachByCountry', 'reachMin', 'reachMax', 'isActive'],
];

/** Ads and advertiser pages in the format of the API. The import stores these records without changes. */
export const apiFormat: ImportFormat = {
  name: 'api',
  title: 'ads and pages in the shapes of the API',
  documentation: 'docs/archive.md',
  layouts: ['json'],
  keysByField: Object.fromEntries(
    [...Object.keys({ ...Ad.shape, ...Page.shape }), ...additionalFields].map((field) => [
      field,
      [normalizeKey(field)],
    ]),
  ),
  // Compare the keys as the file spells them. The API only writes `id` and `pageId`, so a key such as `ID` or `page_id`
  // means that the record has another format.
  matches: (record) =>
    (record.has('id') && record.getSourceName('id') === 'id') ||
    (record.has('pageid') && record.getSourceName('pageid') === 'pageId'),
  toAd(record, parser) {
    const ad = record.toObject();
    for (const name of Object.keys(ad)) if (!knownKeys.has(name)) parser.unusedKeys.push(name);
    const { pageName, page, ...otherFields } = ad;
    // Exported tables have a separate column for the advertiser's name. Move the name into the `page` object, as in API
    // responses.
    if (typeof pageName !== 'string' || (isObject(page) && page.pageName != null)) return ad;
    return { ...otherFields, page: { ...(isObject(page) && page), pageName } };
  },
  toPage: (record) => (record.has('id') ? undefined : (record.toObject() as Page)),
};

const knownKeys = new Set([...Object.keys(Ad.shape), ...additionalFields, 'pageName']);
