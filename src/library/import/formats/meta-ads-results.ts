import { computeUuidFromName } from '../../service/request.ts';
import type { ColumnValueParser } from '../values/column-value-parser.ts';
import {
  type FieldParser,
  parseApiConstant,
  parseCount,
  parseDate,
  parseFirstText,
  parseId,
  parseText,
} from './field-parsers.ts';
import { FieldReader, type FieldRule, isEmptyValue, listKeysByField, type RangeRule } from './field-reader.ts';
import type { ImportFormat, JsonObject } from './import-format.ts';
import { computePageId } from './library-ids.ts';
import {
  breakdownKeys,
  combineResultRows,
  combineWithEarlierPeriods,
  isActionColumn,
  isResultColumn,
  totalValuePattern,
} from './meta-ads-rows.ts';
import type { SourceRecord } from './source-record.ts';

/**
 * Parses the end date of an ad. For an ad without an end date, the column contains the word `Ongoing`. Returns null for
 * this word, so that it replaces the end date of an earlier export.
 */
const parseEndDate: FieldParser = (sourceValue, keyName, parser) =>
  /^ongoing$/i.test(String(sourceValue).trim()) ? null : parseDate(sourceValue, keyName, parser);

const fieldRules: readonly FieldRule[] = [
  ['adId', parseId, 'adid'],
  ['adName', parseText, 'adname'],
  ['campaignId', parseId, 'campaignid'],
  ['campaignName', parseText, 'campaignname'],
  ['adSetId', parseId, 'adsetid'],
  ['adSetName', parseText, 'adsetname'],
  ['pageId', parseId, 'pageid'],
  ['accountId', parseId, 'accountid'],
  ['pageName', parseText, 'pagename', 'accountname'],
  ['headline', parseFirstText, 'headline', 'title'],
  ['body', parseFirstText, 'body', 'primarytext', 'text'],
  ['linkDescription', parseFirstText, 'linkdescription', 'description'],
  ['offerLink', parseText, 'link', 'websiteurl', 'destinationurl', 'url'],
  ['ctaType', parseApiConstant, 'calltoaction'],
  ['startedAt', parseDate, 'starts', 'startdate'],
  ['endDate', parseEndDate, 'ends', 'enddate'],
  ['reportingStarts', parseDate, 'reportingstarts'],
  ['reportingEnds', parseDate, 'reportingends'],
  ['audienceReach', parseCount, 'reach'],
  ['currency', parseText, 'currency'],
];
const rangeRules: readonly RangeRule[] = [
  ['adSpend', ['amountspent'], false],
  ['impressions', ['impressions'], true],
];

/**
 * Exports of Meta Ads Manager with English column names and one row per ad. Meta documents the metrics, but not the
 * file format. The names of columns with settings end in `(ad settings)`. A name such as `Amount spent (EUR)` contains
 * the currency.
 */
export const metaAdsManagerFormat: ImportFormat = {
  name: 'meta-ads-manager',
  title: 'exports of Meta Ads Manager: your own ads with their results',
  documentation: 'https://www.facebook.com/business/help/317287178790166',
  layouts: ['json', 'table'],
  keysByField: {
    ...listKeysByField(fieldRules, rangeRules),
    ...Object.fromEntries(breakdownKeys.map((key) => [`breakdown by ${key}`, [key]])),
  },
  matches: (record) =>
    record.hasAny(['adname', 'adid']) &&
    record.hasAny(['reportingstarts', 'reportingends', 'amountspent']) &&
    !record.hasAny(['adarchiveid', 'adlibid', 'libraryid', 'adcreativebodies']),
  // Ignore the row with the totals of all ads, which has neither an ad id nor an ad name. It is the first or last row
  // of an export.
  getIgnoreReason: (record) =>
    isEmptyValue(record.get('adid')) && isEmptyValue(record.get('adname'))
      ? 'they name no ad (rows of totals)'
      : undefined,
  toAd,
  combinePartialRecords: combineResultRows,
  combineWithEarlierRun: combineWithEarlierPeriods,
};

function toAd(record: SourceRecord, parser: ColumnValueParser): JsonObject {
  const reader = new FieldReader(parser, (key) => [record, key]);
  reader.readFields(fieldRules);
  reader.readRanges(rangeRules);
  const { adId, accountId, pageName, ...ad } = reader.ad as Record<string, unknown> & {
    startedAt?: string;
    reportingStarts?: string;
    reportingEnds?: string;
    adSpendMin?: number;
    impressionsMin?: number;
    audienceReach?: number;
  };
  // A page id identifies a page on Facebook. The id of an ad account does not, so it gets a prefix.
  const pageId = ad.pageId ?? (accountId === undefined ? undefined : computePageId('own', `account-${accountId}`));
  const currency = /\(([A-Z]{3})\)\s*$/.exec(record.getSourceName('amountspent'))?.[1];
  const breakdownValues = Object.fromEntries(
    breakdownKeys.flatMap((key) => {
      const value = parser.parseText(record.get(key))?.trim();
      record.markUsed(key);
      return value === undefined || value === '' || totalValuePattern.test(value)
        ? []
        : [[record.getSourceName(key), value]];
    }),
  );
  const day = readDay(record, parser);
  // The last day on which the ad was seen. It may be in the future, so `lastSeenAt` below is limited to the current
  // time.
  const lastDay = day ?? ad.reportingEnds;
  const otherCells = record.getUnusedFields().filter(({ name, value }) => name !== '' && !isEmptyValue(value));
  for (const { name } of otherCells) parser.unusedKeys.push(name);
  const otherFields = otherCells.map(({ name, value }) => [name, parseSummableResult(name, value, parser)] as const);
  const results = otherFields.filter(([name, value]) => isResultColumn(name, value));
  const { reportingStarts, reportingEnds } = ad;
  const row = {
    values: breakdownValues,
    ...(reportingStarts !== undefined && { reportingStarts }),
    ...(reportingEnds !== undefined && { reportingEnds }),
    ...(ad.adSpendMin !== undefined && { adSpend: ad.adSpendMin }),
    ...(ad.impressionsMin !== undefined && { impressions: ad.impressionsMin }),
    ...(ad.audienceReach !== undefined && { audienceReach: ad.audienceReach }),
    ...(results.length > 0 && { results: Object.fromEntries(results) }),
  };
  const hasBreakdown = Object.keys(breakdownValues).length > 0;
  // Advertisers use the same ad name in several ad sets. Without ad ids, the campaign and the ad set distinguish these
  // ads.
  const { adName, campaignId, campaignName, adSetId, adSetName } = ad;
  const adIdentity = adId ?? [pageName ?? pageId, campaignId ?? campaignName, adSetId ?? adSetName, adName];
  return {
    ...Object.fromEntries(otherFields),
    ...ad,
    id: computeUuidFromName(JSON.stringify(['Meta Ads Manager', adIdentity])),
    adLibrary: 'own',
    ...(adId !== undefined && { adId }),
    ...(currency !== undefined && { currency }),
    ...(lastDay !== undefined && {
      lastSeenAt: Date.parse(lastDay) > parser.importTimeMs ? new Date(parser.importTimeMs).toISOString() : lastDay,
    }),
    ...((pageId ?? pageName) !== undefined && {
      pageId: pageId ?? computeUuidFromName(JSON.stringify(['page', pageName])),
    }),
    ...(pageName !== undefined && { page: { pageName } }),
    ...(hasBreakdown && { breakdown: [row] }),
  };
}

/**
 * Parses the day of a row in a table with one row per day. The day is not the start date of the ad, which may have
 * started long before the report.
 */
function readDay(record: SourceRecord, parser: ColumnValueParser): string | undefined {
  try {
    return parser.parseDate(record.getSourceName('day'), record.get('day'));
  } catch (error) {
    parser.addValueError(error);
    return undefined;
  }
}

/** Parses the value of a column whose values can be added up, such as clicks. Returns any other value unchanged. */
function parseSummableResult(columnName: string, cellValue: unknown, parser: ColumnValueParser): unknown {
  if (!isActionColumn(columnName)) return cellValue;
  try {
    return parser.parseNumber(columnName, cellValue, { isCount: true }) ?? cellValue;
  } catch {
    return cellValue;
  }
}
