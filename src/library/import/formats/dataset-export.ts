import { isUuid } from '../../../views/safe-text.ts';
import { isObject } from '../../../views/view.ts';
import { type ColumnValueParser, isMissing } from '../values/column-value-parser.ts';
import type { ImportFormat, JsonObject } from './import-format.ts';
import { normalizeKey, type SourceRecord } from './source-record.ts';

/** Ads that `export_ads` wrote: rows of the table `ads` of the dataset, as JSON Lines or as CSV with titles. */

const texts = ['pageId', 'headline', 'body', 'linkDescription', 'offerLink', 'displayUrl', 'ctaType', 'displayFormat'];
const moreTexts = ['productTitle', 'sourcePageExternalId', 'appUrl'];
const dates = ['startedAt', 'lastSeenAt', 'endDate', 'productCreatedAt'];
const numbers = [
  ...['duplicates', 'audienceReach', 'adSpendMin', 'adSpendMax', 'revenueMin', 'revenueMax', 'productPrice'],
  ...['trendPublic', 'performancePublic'],
];
const flags = ['isStorePlatformBestSeller'];

/** Columns that the dataset derives from the others. The library derives them itself. */
const derived = [
  ...['landingDomain', 'landing', 'utm', 'daysRunning', 'active', 'firstLine', 'startedMonth', 'text', 'language'],
  ...['variant', 'cardCount', 'videoCount', 'imageCount', 'videoSeconds', 'picture', 'pictureGroup'],
  ...['firstGatheredAt', 'gatheredAt', 'inNewestGathering'],
];
/** Columns that tables of other people do not have. */
const telling = ['landingdomain', 'firstline', 'startedmonth', 'picturegroup', 'firstgatheredat', 'gatheredat'];

const fields = [...texts, ...moreTexts, ...dates, ...numbers, ...flags];

export const datasetExportFormat: ImportFormat = {
  name: 'dataset-export',
  title: 'ads that export_ads wrote, as JSON Lines or CSV',
  layouts: ['json', 'table'],
  keysByField: {
    id: ['id'],
    pageName: ['pagename'],
    json: ['json'],
    ...Object.fromEntries([...fields, ...derived].map((field) => [field, [normalizeKey(field)]])),
  },
  matches(record) {
    const id = record.get('id');
    return record.has('id') && record.hasAny(telling) && (id === undefined || (typeof id === 'string' && isUuid(id)));
  },
  toAd,
};

function toAd(record: SourceRecord, values: ColumnValueParser): JsonObject {
  const read = (field: string, parse: (value: unknown) => unknown) => {
    const key = normalizeKey(field);
    record.markUsed(key);
    const value = record.get(key);
    return isMissing(value) ? undefined : parse(value);
  };
  const whole = read('json', (value) => values.parseStructure(value));
  for (const field of derived) record.markUsed(normalizeKey(field));
  const ad: JsonObject = isObject(whole) ? { ...whole } : {};
  const set = (field: string, parse: (value: unknown) => unknown) => {
    const value = read(field, parse);
    if (value !== undefined && ad[field] === undefined) ad[field] = value;
  };
  for (const field of ['id', ...texts, ...moreTexts]) set(field, withoutApostrophe);
  for (const field of dates) set(field, (value) => values.parseDate(field, value));
  for (const field of numbers) set(field, (value) => plainNumber(field, value));
  for (const field of flags) set(field, (value) => values.parseBoolean(field, value));
  const pageName = read('pageName', withoutApostrophe);
  if (pageName !== undefined && !isObject(ad.page)) ad.page = { pageName };
  for (const { name, value } of record.getUnusedFields()) {
    values.unusedKeys.push(name);
    if (!isMissing(value) && !Object.hasOwn(ad, name)) ad[name] = value;
  }
  return ad;
}

/** The export writes an apostrophe before a text that a spreadsheet would run as a formula. */
const withoutApostrophe = (value: unknown): string =>
  String(value).replace(/^'(?=[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n])/, '');

function plainNumber(field: string, value: unknown): number {
  const number = Number(value);
  if (Number.isFinite(number)) return number;
  throw new Error(`${field}: ${JSON.stringify(value)} is no number`);
}
