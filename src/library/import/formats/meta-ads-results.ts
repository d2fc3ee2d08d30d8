import { isObject } from '../../../views/view.ts';
import { quoteValue, uuidFromName } from '../../service/request.ts';
import type { ColumnValueParser } from '../values/column-value-parser.ts';
import {
  type FieldParser,
  parseConstant,
  parseCount,
  parseDate,
  parseFirstText,
  parseId,
  parseText,
} from './field-parsers.ts';
import { FieldReader, type FieldRule, isEmptyValue, listKeysByField, type RangeRule } from './field-reader.ts';
import type { ImportFormat, JsonObject } from './import-format.ts';
import type { SourceRecord } from './source-record.ts';

/** Parses an end date. For an ad without an end date, the column contains the word `Ongoing`. */
const parseEndDate: FieldParser = (value, keyName, parser) =>
  /^ongoing$/i.test(String(value).trim()) ? undefined : parseDate(value, keyName, parser);

const fields: readonly FieldRule[] = [
  ['adId', parseId, 'adid'],
  ['adName', parseText, 'adname'],
  ['campaignId', parseId, 'campaignid'],
  ['campaignName', parseText, 'campaignname'],
  ['adSetId', parseId, 'adsetid'],
  ['adSetName', parseText, 'adsetname'],
  ['pageId', parseId, 'pageid', 'accountid'],
  ['pageName', parseText, 'pagename', 'accountname'],
  ['headline', parseFirstText, 'headline', 'title'],
  ['body', parseFirstText, 'body', 'primarytext', 'text'],
  ['linkDescription', parseFirstText, 'linkdescription', 'description'],
  ['offerLink', parseText, 'link', 'websiteurl', 'destinationurl', 'url'],
  ['ctaType', parseConstant, 'calltoaction'],
  ['startedAt', parseDate, 'starts', 'startdate'],
  ['endDate', parseEndDate, 'ends', 'enddate'],
  ['lastSeenAt', parseDate, 'reportingends'],
  ['audienceReach', parseCount, 'reach'],
  ['currency', parseText, 'currency'],
];
const ranges: readonly RangeRule[] = [
  ['adSpend', ['amountspent'], false],
  ['impressions', ['impressions'], true],
];

/**
 * Columns by which a user can break down the results, e.g. by country. In a table with such a column, an ad has one row
 * for each country, with a part of its results.
 */
const breakdownKeys = [
  ...['day', 'week', 'month', 'timeofday', 'age', 'gender', 'country', 'region', 'dmaregion', 'platform'],
  ...['placement', 'deviceplatform', 'impressiondevice', 'imagevideoandslideshow', 'mediatype'],
];

/**
 * Exports of Meta Ads Manager with one row per ad and English column names. Meta documents the metrics but not the file
 * format. Columns with settings end in `(ad settings)`, and the column name `Amount spent (EUR)` contains the currency.
 */
export const metaAdsManagerFormat: ImportFormat = {
  name: 'meta-ads-manager',
  title: 'exports of Meta Ads Manager: your own ads with their results',
  description: 'https://www.facebook.com/business/help/317287178790166',
  layouts: ['json', 'table'],
  keysByField: {
    ...listKeysByField(fields, ranges),
    ...Object.fromEntries(breakdownKeys.map((key) => [`breakdown by ${key}`, [key]])),
  },
  matches: (record) =>
    record.hasAny(['adname', 'adid']) &&
    record.hasAny(['reportingstarts', 'reportingends', 'amountspent']) &&
    !record.hasAny(['adarchiveid', 'adlibid', 'libraryid', 'adcreativebodies']),
  // The first or last row of an export contains the totals of all ads. It has neither an ad id nor an ad name.
  getIgnoreReason: (record) =>
    isEmptyValue(record.get('adid')) && isEmptyValue(record.get('adname'))
      ? 'they name no ad (rows of totals)'
      : undefined,
  toAd,
  combinePartialRecords: combineRows,
};

/** The results of an ad for one combination of breakdown values, e.g. for one country and one age group. */
interface BreakdownResult {
  values: Record<string, string>;
  adSpend?: number;
  impressions?: number;
}

function toAd(record: SourceRecord, parser: ColumnValueParser): JsonObject {
  const reader = new FieldReader(parser, (key) => [record, key]);
  reader.readFields(fields);
  reader.readRanges(ranges);
  const { adId, pageId, pageName, lastSeenAt, ...ad } = reader.ad as Record<string, unknown> & {
    lastSeenAt?: string;
    adSpendMin?: number;
    impressionsMin?: number;
  };
  const currency = /\(([A-Z]{3})\)\s*$/.exec(record.getSourceName('amountspent'))?.[1];
  const values = Object.fromEntries(
    breakdownKeys.flatMap((key) => {
      const value = parser.parseText(record.get(key));
      record.markUsed(key);
      return value === undefined || value === '' ? [] : [[record.getSourceName(key), value]];
    }),
  );
  const breakdownResult: BreakdownResult = { values };
  if (ad.adSpendMin !== undefined) breakdownResult.adSpend = ad.adSpendMin;
  if (ad.impressionsMin !== undefined) breakdownResult.impressions = ad.impressionsMin;
  const otherCells = record.getUnusedFields().filter(({ name, value }) => name !== '' && !isEmptyValue(value));
  for (const { name } of otherCells) parser.unusedKeys.push(name);
  // Advertisers use the same ad name in several ad sets. If the table has no column with ad ids, campaign and ad set
  // distinguish these ads.
  const { adName, campaignId, campaignName, adSetId, adSetName } = ad;
  const identifyingValues = adId ?? [pageName ?? pageId, campaignId ?? campaignName, adSetId ?? adSetName, adName];
  return {
    ...Object.fromEntries(otherCells.map(({ name, value }) => [name, value])),
    ...ad,
    id: uuidFromName(JSON.stringify(['Meta Ads Manager', identifyingValues])),
    adLibrary: 'own',
    ...(adId !== undefined && { adId }),
    ...(currency !== undefined && { currency }),
    // The period of a report may end in the future, but the ad cannot have been seen later than now.
    ...(lastSeenAt !== undefined && {
      lastSeenAt: Date.parse(lastSeenAt) > parser.now ? new Date(parser.now).toISOString() : lastSeenAt,
    }),
    ...((pageId ?? pageName) !== undefined && { pageId: pageId ?? uuidFromName(JSON.stringify(['page', pageName])) }),
    ...(pageName !== undefined && { page: { pageName } }),
    ...(Object.keys(values).length > 0 && { breakdown: [breakdownResult] }),
  };
}

/**
 * Combines two rows of one ad. An export with a breakdown has a row for each value, e.g. for each country. Spend and
 * impressions are added up. Reach is removed, because the same person may be counted in several rows. Without a
 * breakdown, the later row replaces the earlier one.
 * @throws Error if the rows have no ad id and belong to different ads
 */
function combineRows(earlierAd: JsonObject, laterAd: JsonObject): JsonObject {
  const readBreakdown = ({ breakdown }: JsonObject) =>
    (Array.isArray(breakdown) ? breakdown.filter(isObject) : []) as unknown as BreakdownResult[];
  const [earlierResults, laterResults] = [readBreakdown(earlierAd), readBreakdown(laterAd)];
  if (earlierResults.length === 0 || laterResults.length === 0) {
    checkSameAd(earlierAd, laterAd);
    return { ...earlierAd, ...laterAd };
  }
  const resultByValues = new Map(earlierResults.map((result) => [JSON.stringify(result.values), result]));
  for (const laterResult of laterResults) {
    const valuesKey = JSON.stringify(laterResult.values);
    checkSameAd({ ...earlierAd, ...resultByValues.get(valuesKey) }, { ...laterAd, ...laterResult });
    resultByValues.set(valuesKey, laterResult);
  }
  const breakdown = [...resultByValues.values()];
  const combinedAd: JsonObject = { ...earlierAd, ...laterAd, breakdown };
  for (const field of ['adSpend', 'impressions'] as const) {
    const values = breakdown.flatMap((part) => part[field] ?? []);
    if (values.length === 0) continue;
    const sum = Number(values.reduce((total, value) => total + value, 0).toPrecision(15));
    combinedAd[`${field}Min`] = sum;
    combinedAd[`${field}Max`] = sum;
  }
  if (breakdown.length > 1) delete combinedAd.audienceReach;
  return combinedAd;
}

/**
 * Checks that two rows with the same names describe the same ad. Rows with an ad id always do.
 * @throws Error if the rows have different results for the same time, because they must then be two ads
 */
function checkSameAd(earlierRow: JsonObject, laterRow: JsonObject): void {
  if (laterRow.adId !== undefined || earlierRow.lastSeenAt !== laterRow.lastSeenAt) return;
  const resultFields = laterRow.values === undefined ? ['adSpendMin', 'impressionsMin'] : ['adSpend', 'impressions'];
  const isDifferent = resultFields.some(
    (field) =>
      earlierRow[field] !== undefined && laterRow[field] !== undefined && earlierRow[field] !== laterRow[field],
  );
  if (!isDifferent) return;
  throw new Error(
    `Ad name: an earlier row has the same ad name ${quoteValue(laterRow.adName)} and other results; export the table with the column Ad ID`,
  );
}
