import { parseTime } from '../../../views/dates.ts';
import { isUuid } from '../../../views/safe-text.ts';
import { isObject } from '../../../views/view.ts';
import { type ColumnValueParser, isMissingValue } from '../values/column-value-parser.ts';
import type { ImportFormat, JsonObject } from './import-format.ts';
import { normalizeKey, type SourceRecord } from './source-record.ts';

const textFields = [
  ...['pageId', 'headline', 'body', 'linkDescription', 'offerLink', 'displayUrl', 'ctaType', 'displayFormat'],
  ...['adLibrary', 'currency'],
  ...['productTitle', 'sourcePageExternalId', 'appUrl', 'payer', 'beneficiary', 'publicUrl'],
];
const dateFields = ['startedAt', 'lastSeenAt', 'endDate', 'productCreatedAt'];
const numberFields = [
  ...['duplicates', 'audienceReach', 'adSpendMin', 'adSpendMax', 'revenueMin', 'revenueMax', 'productPrice'],
  ...['trendPublic', 'performancePublic'],
];
const booleanFields = ['isStorePlatformBestSeller'];

/**
 * Columns that an export computes from other columns, e.g. how many days an ad has run. The import ignores them,
 * because the library computes these values again.
 */
const computedColumns = [
  ...['landingDomain', 'landing', 'utm', 'daysRunning', 'active', 'firstLine', 'startedMonth', 'text', 'language'],
  ...['variant', 'cardCount', 'videoCount', 'imageCount', 'videoSeconds', 'picture', 'pictureGroup'],
  ...['activeWhenLastRead', 'hasPlaceholders', 'pictureState'],
  ...['firstGatheredAt', 'gatheredAt', 'inNewestGathering'],
];
/**
 * Normalized names of columns that only this server's exports have. A record with such a column and with a UUID as its
 * id has this format.
 */
const exportOnlyKeys = ['landingdomain', 'firstline', 'startedmonth', 'picturegroup', 'firstgatheredat', 'gatheredat'];

const fields = [...textFields, ...dateFields, ...numberFields, ...booleanFields];

/**
 * Ads that the `export_ads` tool wrote. Each record is a row of the dataset's table `ads`, either as a line of JSON or
 * as a row of a CSV file with column titles.
 */
export const datasetExportFormat: ImportFormat = {
  name: 'dataset-export',
  title: 'ads that export_ads wrote, as JSON Lines or CSV',
  documentation: 'docs/archive.md',
  layouts: ['json', 'table'],
  keysByField: {
    id: ['id'],
    pageName: ['pagename'],
    json: ['json'],
    ...Object.fromEntries([...fields, ...computedColumns].map((field) => [field, [normalizeKey(field)]])),
  },
  matches(record) {
    const id = record.get('id');
    return (
      record.has('id') && record.hasAny(exportOnlyKeys) && (id === undefined || (typeof id === 'string' && isUuid(id)))
    );
  },
  toAd,
};

function toAd(record: SourceRecord, parser: ColumnValueParser): JsonObject {
  const parseField = (field: string, parse: (value: unknown) => unknown) => {
    const key = normalizeKey(field);
    record.markUsed(key);
    const value = record.get(key);
    return isMissingValue(value) ? undefined : parse(value);
  };
  const readText = (value: unknown) => (record.isTableRow ? removeFormulaApostrophes(String(value)) : String(value));
  // The `json` column contains the complete ad. Use the other columns only for fields that `json` lacks.
  const completeAd = parseField('json', (value) =>
    parser.parseStructure(typeof value === 'string' ? readText(value) : value),
  );
  for (const column of computedColumns) record.markUsed(normalizeKey(column));
  const ad: JsonObject = isObject(completeAd) ? { ...completeAd } : {};
  const setField = (field: string, parse: (value: unknown) => unknown) => {
    const value = parseField(field, parse);
    if (value !== undefined && ad[field] === undefined) ad[field] = value;
  };
  for (const field of ['id', ...textFields]) setField(field, readText);
  for (const field of dateFields) setField(field, (value) => parseExportedDate(field, value, parser));
  for (const field of numberFields) setField(field, (value) => parsePlainNumber(field, value));
  for (const field of booleanFields) setField(field, (value) => parser.parseBoolean(field, value));
  const pageName = parseField('pageName', readText);
  if (pageName !== undefined && !isObject(ad.page)) ad.page = { pageName };
  for (const { name, value } of record.getUnusedFields()) {
    parser.unusedKeys.push(name);
    if (!isMissingValue(value) && !Object.hasOwn(ad, name)) ad[name] = value;
  }
  return ad;
}

/**
 * Removes the apostrophes that the CSV export puts before each sign with which a spreadsheet would start a formula: at
 * the start of a text, and after a list separator or a line break. Removes only one apostrophe at each place, because
 * any further ones belong to the text. Also treats workbooks this way, because a user may have saved the CSV file as a
 * workbook. From a workbook that the export itself wrote, it therefore removes an apostrophe of the text.
 */
const removeFormulaApostrophes = (cellText: string): string =>
  cellText.replace(
    /^'(?='*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n])|([;|\t\r\n]"*)'(?='*[=+\-@\uff1d\uff0b\uff0d\uff20])/g,
    '$1',
  );

/**
 * Parses a date. The export writes each date in ISO 8601, also dates before 2000 or after 2099, which the parser of the
 * column rejects. A spreadsheet application may have saved the dates in another notation.
 */
function parseExportedDate(fieldName: string, cellValue: unknown, parser: ColumnValueParser): string | undefined {
  const timeMs = isoDatePattern.test(String(cellValue)) ? parseTime(cellValue) : undefined;
  return timeMs === undefined ? parser.parseDate(fieldName, cellValue) : new Date(timeMs).toISOString();
}

const isoDatePattern = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d:\d\d(?:\.\d{3})?Z?)?$/;

/** Parses a number with a decimal point. The export writes no other notation. */
function parsePlainNumber(fieldName: string, cellValue: unknown): number {
  const number = Number(cellValue);
  if (Number.isFinite(number)) return number;
  throw new Error(`${fieldName}: ${JSON.stringify(cellValue)} is not a number`);
}
