import type { ColumnValueParser } from '../values/column-value-parser.ts';
import { parseShare } from '../values/numbers.ts';
import { type FieldParser, parseId, parseText } from './field-parsers.ts';
import { FieldReader, type FieldRule, listKeysByField } from './field-reader.ts';
import type { ImportFormat, JsonObject } from './import-format.ts';
import { computeAdId } from './library-ids.ts';
import type { SourceRecord } from './source-record.ts';

const parsePercentage: FieldParser = (value, keyName) => {
  const share = parseShare(value);
  if (share === undefined) throw new Error(`${keyName}: ${JSON.stringify(value)} is not a share such as 0.25`);
  return share;
};

const fieldRules: readonly FieldRule[] = [
  ['adArchiveId', parseId, 'id', 'adlibid', 'adarchiveid'],
  ['percentage', parsePercentage, 'percentage'],
  ['age', parseText, 'age'],
  ['gender', parseText, 'gender'],
  ['region', parseText, 'region'],
];
const keysByField = listKeysByField(fieldRules, []);
const knownKeys = new Set(Object.values(keysByField).flat());
/**
 * Matches the names of columns with row numbers that R and pandas add to a table, e.g. `Unnamed: 0`. The names are
 * normalized first.
 */
const rowNumberKeyPattern = /^(?:x1?|unnamed0|rownames?|\.{3}1|)$/;

/**
 * Tables from the R package Radlibrary (`as_tibble` with `type = "demographic"` or `type = "region"`). Each row
 * contains one share of the people who saw an ad. A row says nothing else about the ad, so it is added to the ad of an
 * earlier import.
 */
export const radlibrarySharesFormat: ImportFormat = {
  name: 'radlibrary-shares',
  title: 'tables of Radlibrary with shares by age and gender, or by region; import its table of ads first',
  documentation: 'https://facebookresearch.github.io/Radlibrary/articles/table-types.html',
  layouts: ['table'],
  keysByField,
  matches: (record) =>
    record.has('percentage') &&
    record.hasAny(keysByField.adArchiveId ?? []) &&
    (record.has('region') || (record.has('age') && record.has('gender'))) &&
    Array.from(record.keys()).every((key) => knownKeys.has(key) || rowNumberKeyPattern.test(key)),
  toAd,
  addToStoredAd: addSharesToAd,
};

function toAd(record: SourceRecord, parser: ColumnValueParser): JsonObject {
  const reader = new FieldReader(parser, (key) => [record, key]);
  reader.readFields(fieldRules);
  const { adArchiveId, ...share } = reader.ad;
  if (parser.areNotationsDecided && (adArchiveId === undefined || share.percentage === undefined))
    throw new Error(`${adArchiveId === undefined ? 'id' : 'percentage'}: missing in a table of shares`);
  return {
    id: computeAdId('meta', String(adArchiveId)),
    adArchiveId,
    adLibrary: 'meta',
    [share.region === undefined ? 'demographics' : 'regions']: [share],
  };
}

/**
 * Adds the share of a group, e.g. women aged 18 to 24, to a stored ad, and replaces an earlier share of the same group.
 * @param isLaterRowOfAd false for the first row of an ad in an import run, which replaces the shares from earlier runs
 */
function addSharesToAd(storedAd: JsonObject, partialAd: JsonObject, isLaterRowOfAd: boolean): JsonObject {
  const field = partialAd.regions === undefined ? 'demographics' : 'regions';
  const earlierShares = isLaterRowOfAd && Array.isArray(storedAd[field]) ? (storedAd[field] as JsonObject[]) : [];
  const getGroupKey = ({ percentage: _, ...group }: JsonObject) => JSON.stringify(Object.entries(group).sort());
  const shares = [...earlierShares, ...(partialAd[field] as JsonObject[])];
  return { ...storedAd, [field]: [...new Map(shares.map((share) => [getGroupKey(share), share])).values()] };
}
