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
import { computePageId } from './library-ids.ts';
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
  ['pageId', parseId, 'pageid'],
  ['accountId', parseId, 'accountid'],
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
  combinePartialRecords,
};

/** The results of an ad for one value of each breakdown, e.g. one country. */
interface BreakdownPart {
  /** The values of the breakdowns. Empty for the row with the total of the ad, whose results are fields of the ad. */
  values: Record<string, string>;
  adSpend?: number;
  impressions?: number;
  audienceReach?: number;
  /** The results in other columns, e.g. `Link clicks`. */
  results?: Record<string, unknown>;
}

/** Matches the columns of results that can be added up: counts of actions. */
const actionColumn =
  /\b(?:actions|adds to (?:cart|wishlist)|appointments|checkouts initiated|clicks|comments|contacts|conversations started|conversions|engagements?|events|follows|impressions|installs|leads|likes|orders|plays|purchases|reactions|registrations|results|saves|searches|shares|subscriptions|thruplays|views)\b/i;
/** Matches the columns of rates, averages, amounts and counts of people, which cannot be added up. */
const otherResultColumn =
  /\b(?:accounts|average|avg|bid|budget|cost|cpc|cpm|cpp|ctr|frequency|people|per|ranking|rate|roas|score|time|unique|value)\b/i;
const isActionColumn = (name: string): boolean => actionColumn.test(name) && !otherResultColumn.test(name);
/** Matches the values of a breakdown in the row with the total of an ad. */
const totalValue = /^(?:all|total)$/i;

function toAd(record: SourceRecord, parser: ColumnValueParser): JsonObject {
  const reader = new FieldReader(parser, (key) => [record, key]);
  reader.readFields(fields);
  reader.readRanges(ranges);
  const { adId, accountId, pageName, lastSeenAt, ...ad } = reader.ad as Record<string, unknown> & {
    lastSeenAt?: string;
    startedAt?: string;
    adSpendMin?: number;
    impressionsMin?: number;
    audienceReach?: number;
  };
  // A page id in an export is the id of a page on Facebook, but the id of an ad account belongs to no page.
  const pageId = ad.pageId ?? (accountId === undefined ? undefined : computePageId('own', `account-${accountId}`));
  const currency = /\(([A-Z]{3})\)\s*$/.exec(record.getSourceName('amountspent'))?.[1];
  const values = Object.fromEntries(
    breakdownKeys.flatMap((key) => {
      const value = parser.parseText(record.get(key))?.trim();
      record.markUsed(key);
      return value === undefined || value === '' || totalValue.test(value) ? [] : [[record.getSourceName(key), value]];
    }),
  );
  const day = readDay(record, parser);
  // The period of a report may end in the future, but the ad cannot have been seen later than now.
  const lastDay = day ?? lastSeenAt;
  const otherCells = record.getUnusedFields().filter(({ name, value }) => name !== '' && !isEmptyValue(value));
  for (const { name } of otherCells) parser.unusedKeys.push(name);
  const otherFields = otherCells.map(({ name, value }) => [name, parseResult(name, value, parser)] as const);
  const results = otherFields.filter(
    ([name, value]) => typeof value === 'number' || isActionColumn(name) || numericCell.test(String(value)),
  );
  const part: BreakdownPart = {
    values,
    ...(ad.adSpendMin !== undefined && { adSpend: ad.adSpendMin }),
    ...(ad.impressionsMin !== undefined && { impressions: ad.impressionsMin }),
    ...(ad.audienceReach !== undefined && { audienceReach: ad.audienceReach }),
    ...(results.length > 0 && { results: Object.fromEntries(results) }),
  };
  const hasBreakdown = Object.keys(values).length > 0;
  if (hasBreakdown && ad.audienceReach !== undefined)
    parser.addValueError(
      new Error(
        `${record.getSourceName('reach')}: kept for each row of the breakdown but not added up, because several rows may count the same person`,
      ),
    );
  // Advertisers use the same ad name in several ad sets. Without the column of ad ids, these ads are told apart by their
  // campaigns and ad sets.
  const { adName, campaignId, campaignName, adSetId, adSetName } = ad;
  const identity = adId ?? [pageName ?? pageId, campaignId ?? campaignName, adSetId ?? adSetName, adName];
  return {
    ...Object.fromEntries(otherFields),
    ...ad,
    id: uuidFromName(JSON.stringify(['Meta Ads Manager', identity])),
    adLibrary: 'own',
    ...(adId !== undefined && { adId }),
    ...(currency !== undefined && { currency }),
    ...(day !== undefined && { startedAt: ad.startedAt ?? day }),
    ...(lastDay !== undefined && {
      lastSeenAt: Date.parse(lastDay) > parser.now ? new Date(parser.now).toISOString() : lastDay,
    }),
    ...((pageId ?? pageName) !== undefined && { pageId: pageId ?? uuidFromName(JSON.stringify(['page', pageName])) }),
    ...(pageName !== undefined && { page: { pageName } }),
    ...(hasBreakdown && { breakdown: [part] }),
  };
}

/** Parses the day of a row in a breakdown by day. */
function readDay(record: SourceRecord, parser: ColumnValueParser): string | undefined {
  try {
    return parser.parseDate(record.getSourceName('day'), record.get('day'));
  } catch (error) {
    parser.addValueError(error);
    return undefined;
  }
}

/** Matches numbers with a currency sign or without, e.g. `1.5`, `€0.20` and `12%`. */
const numericCell = /^\p{Sc}?\s?\d[\d.,' ]{0,30}[%\p{Sc}]?$/u;

/** Parses a result that can be added up. All other values stay unchanged. */
function parseResult(name: string, value: unknown, parser: ColumnValueParser): unknown {
  if (!isActionColumn(name)) return value;
  try {
    return parser.parseNumber(name, value, { isCount: true }) ?? value;
  } catch {
    return value;
  }
}

/**
 * Combines two rows of one ad. An export with a breakdown has a row for each value, e.g. for each country. Results that
 * can be added up become totals of the ad. All other results, such as the reach, only remain in the list of rows. If a
 * row has no values of breakdowns, it contains the total of the ad.
 *
 * Without a breakdown, the later row replaces the earlier one.
 * @throws Error if the rows have no ad id and belong to different ads
 */
function combinePartialRecords(earlier: JsonObject, later: JsonObject): JsonObject {
  const readParts = ({ breakdown }: JsonObject) =>
    (Array.isArray(breakdown) ? breakdown.filter(isObject) : []) as unknown as BreakdownPart[];
  const [earlierParts, laterParts] = [readParts(earlier), readParts(later)];
  if (earlierParts.length + laterParts.length === 0) {
    checkSameAd(earlier, later);
    return { ...earlier, ...later };
  }
  const isTotal = ({ values }: BreakdownPart) => Object.keys(values).length === 0;
  const partByValues = new Map(
    earlierParts.filter((part) => !isTotal(part)).map((part) => [JSON.stringify(part.values), part]),
  );
  for (const part of laterParts) {
    const values = JSON.stringify(part.values);
    checkSameAd({ ...earlier, ...partByValues.get(values) }, { ...later, ...part });
    partByValues.set(values, part);
  }
  const parts = [...partByValues.values()];
  const period = combinePeriods(earlier, later);
  // A row without values of breakdowns contains the total of the ad.
  if (laterParts.length === 0) return combineWithTotal(later, earlier, { parts, period });
  if (earlierParts.length === 0 || earlierParts.some(isTotal))
    return combineWithTotal(earlier, later, { parts, period });
  if (parts.length === 1) return { ...earlier, ...later, ...period, breakdown: parts };
  return {
    ...removeResults({ ...earlier, ...later }, parts),
    ...listEqualResults(parts),
    ...sumParts(parts),
    ...period,
    breakdown: parts,
  };
}

/** Combines the row with the total of an ad and a row with a part of the ad's results. The total replaces the part. */
const combineWithTotal = (
  total: JsonObject,
  partial: JsonObject,
  { parts, period }: { parts: readonly BreakdownPart[]; period: JsonObject },
): JsonObject => ({ ...removeResults(partial, parts), ...total, ...period, breakdown: [{ values: {} }, ...parts] });

/** Removes the results of single rows from an ad. */
function removeResults(ad: JsonObject, parts: readonly BreakdownPart[]): JsonObject {
  const names = new Set([
    ...['adSpendMin', 'adSpendMax', 'impressionsMin', 'impressionsMax', 'audienceReach'],
    ...parts.flatMap(({ results }) => Object.keys(results ?? {})),
  ]);
  return Object.fromEntries(Object.entries(ad).filter(([name]) => !names.has(name)));
}

/** Returns the results that cannot be added up but are the same in all rows, such as a budget. */
function listEqualResults([firstPart, ...parts]: readonly BreakdownPart[]): JsonObject {
  const entries = Object.entries(firstPart?.results ?? {});
  return Object.fromEntries(entries.filter(([name, value]) => parts.every(({ results }) => results?.[name] === value)));
}

/**
 * Adds up the results of the rows of an ad. If there are rows of several breakdowns, e.g. by age and by country, each
 * breakdown contains all results, so the totals are those of the breakdown with the highest total.
 */
function sumParts(parts: readonly BreakdownPart[]): JsonObject {
  const totals: Record<string, number> = {};
  const sumsByBreakdown = new Map<string, Record<string, number>>();
  for (const { values, adSpend, impressions, results = {} } of parts) {
    const breakdown = Object.keys(values).sort().join();
    const sums = sumsByBreakdown.get(breakdown) ?? {};
    sumsByBreakdown.set(breakdown, sums);
    for (const [name, value] of Object.entries({ adSpend, impressions, ...results }))
      if (typeof value === 'number') sums[name] = Number(((sums[name] ?? 0) + value).toPrecision(15));
  }
  // A sum without an unreadable value would be too low.
  const hasUnreadableValue = (name: string) =>
    parts.some(({ results }) => results?.[name] !== undefined && typeof results[name] !== 'number');
  for (const sums of sumsByBreakdown.values())
    for (const [name, sum] of Object.entries(sums))
      if (!hasUnreadableValue(name)) totals[name] = Math.max(totals[name] ?? 0, sum);
  const { adSpend, impressions, ...results } = totals;
  return {
    ...results,
    ...(adSpend !== undefined && { adSpendMin: adSpend, adSpendMax: adSpend }),
    ...(impressions !== undefined && { impressionsMin: impressions, impressionsMax: impressions }),
  };
}

/** Returns the first and the last day of two rows. A breakdown by day has a row for each day. */
function combinePeriods(earlier: JsonObject, later: JsonObject): JsonObject {
  const list = (name: string) => [earlier[name], later[name]].filter((value) => typeof value === 'string').sort();
  const [startedAt, lastSeenAt] = [list('startedAt')[0], list('lastSeenAt').at(-1)];
  return { ...(startedAt !== undefined && { startedAt }), ...(lastSeenAt !== undefined && { lastSeenAt }) };
}

/**
 * Checks that two rows with the same names describe the same ad. Rows with an ad id always do.
 * @throws Error if the rows have different results for the same time, because they must then be two ads
 */
function checkSameAd(earlier: JsonObject, later: JsonObject): void {
  if (later.adId !== undefined || earlier.lastSeenAt !== later.lastSeenAt) return;
  const resultFields = later.values === undefined ? ['adSpendMin', 'impressionsMin'] : ['adSpend', 'impressions'];
  const isDifferent = resultFields.some(
    (field) => earlier[field] !== undefined && later[field] !== undefined && earlier[field] !== later[field],
  );
  if (!isDifferent) return;
  throw new Error(
    `Ad name: an earlier row has the same ad name ${quoteValue(later.adName)} and other results; export the table with the column Ad ID`,
  );
}
