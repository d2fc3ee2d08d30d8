import { groupBy } from '../../../views/group-by.ts';
import { isObject } from '../../../views/view.ts';
import { quoteValue } from '../../service/request.ts';
import { copyMeasuredFields, isOlderVersion } from '../ad-versions.ts';
import type { JsonObject } from './import-format.ts';
import { normalizeKey } from './source-record.ts';

/*
 * Combines the rows of one ad in exports of Meta Ads Manager. An export has a row for each value of a breakdown, such
 * as each country, and exports of two months have a row for each month. The rows are disjoint parts of the ad's
 * results, so spend, impressions and actions are added up. Reach, rates and averages cannot be added up and only remain
 * in the list of rows.
 */

/**
 * Columns by which a user can break down the results of ads. For example, a table by country has a row for each
 * country, with the part of the ad's results in that country.
 */
export const breakdownKeys = [
  ...['day', 'week', 'month', 'timeofday', 'age', 'gender', 'country', 'region', 'dmaregion', 'platform'],
  ...['placement', 'deviceplatform', 'impressiondevice', 'conversiondevice', 'imagevideoandslideshow', 'mediatype'],
  ...['carouselcard', 'businesslocations'],
];

/** The results of an ad in a row of an export. */
export interface AdResults {
  adSpend?: number;
  impressions?: number;
  audienceReach?: number;
  /** The results in other columns, e.g. `Link clicks`, by column name. */
  results?: Record<string, unknown>;
}

/** A row of an export. It contains the results of an ad in one period and, for example, in one country or age range. */
interface ResultRow extends AdResults {
  /**
   * The values that distinguish the row from other rows of the ad, by column name, e.g. `{ Country: "DE" }`. Empty if
   * the row contains the total of the ad.
   */
  values: Record<string, string>;
  reportingStarts?: string;
  reportingEnds?: string;
  /**
   * True if an earlier import run read this row. A row of the current run replaces this row if their periods overlap.
   */
  isFromEarlierImport?: boolean;
}

/**
 * The maximum number of rows per ad. All rows are stored with the ad, so adding a row takes longer the more rows the ad
 * has.
 */
const maxRowsPerAd = 3000;

/** Adds a problem with the values of a row to the import report. */
type ReportProblem = (problem: Error) => void;

/** Matches names of columns that count actions. The counts of several rows can be added up. */
const actionColumnPattern =
  /\b(?:actions|adds to (?:cart|wishlist)|appointments|checkouts initiated|clicks|comments|contacts|conversations started|conversions|engagements?|events|follows|impressions|installs|leads|likes|orders|plays|purchases|reactions|registrations|results|saves|searches|shares|subscriptions|thruplays|views)\b/i;
/** Matches names of columns with rates, averages, amounts or counts of people. Their values cannot be added up. */
const nonSummableColumnPattern =
  /\b(?:accounts|average|avg|bid|budget|cost|cpc|cpm|cpp|ctr|frequency|people|per|ranking|rate|roas|score|time|unique|value)\b/i;
/** Returns true if a column counts the actions of users, and the counts of several rows can be added up. */
export const isActionColumn = (columnName: string): boolean =>
  actionColumnPattern.test(columnName) && !nonSummableColumnPattern.test(columnName);
/** Matches names of columns with settings. A setting belongs to the whole ad if all rows have the same value. */
const settingColumnPattern = /\b(?:bid|budget|ranking|score)\b/i;
/** Matches a number with or without a currency sign or percent sign, e.g. `1.5`, `€0.20` or `12%`. */
const numericCellPattern = /^\p{Sc}?\s?\d[\d.,' ]{0,30}[%\p{Sc}]?$/u;

/** Returns true if a column contains results of the ad, and not a property of the ad such as its objective. */
export const isResultColumn = (columnName: string, cellValue: unknown): boolean =>
  typeof cellValue === 'number' ||
  isActionColumn(columnName) ||
  (numericCellPattern.test(String(cellValue)) && !rowLabelColumnPattern.test(columnName));
/** Matches names of columns whose numbers only label a row, such as `Product ID` and `Slide number`. */
const rowLabelColumnPattern = /\b(?:id|card|hour|number|position)\b/i;

/** Fields that describe the whole ad or the period of a report. Their values never distinguish the rows of an ad. */
const fieldsOfWholeAd = new Set([
  ...['id', 'adId', 'adLibrary', 'adName', 'campaignId', 'campaignName', 'adSetId', 'adSetName', 'pageId'],
  ...['startedAt', 'endDate', 'lastSeenAt', 'reportingStarts', 'reportingEnds', 'currency', 'goneAt'],
]);
/** Matches names of columns with states and settings, which may change between two exports of the same results. */
const stateColumnPattern =
  /\b(?:attribution|bid|budget|buying|delivery|edit|edited|ends|link|objective|ranking|result type|result indicator|starts|status|tags?)\b/i;

/**
 * Combines the rows of an ad with another row from the same import run.
 * @param reportProblem called for each column whose values cannot be added up
 * @throws Error with both possible totals if nothing distinguishes two rows, or if their periods overlap only partly
 */
export function combineResultRows(
  earlierAd: JsonObject,
  laterAd: JsonObject,
  reportProblem: ReportProblem,
): JsonObject {
  checkCurrency(earlierAd, laterAd);
  const [laterRow] = listRows(laterAd);
  const storedRows = listRows(earlierAd);
  const replacedRows = storedRows.filter(
    (row) => row.isFromEarlierImport && laterRow && !arePeriodsSeparate(readPeriod(row), readPeriod(laterRow)),
  );
  const earlierRows = storedRows.filter((row) => !replacedRows.includes(row));
  if (laterRow) reportReplacedRows(replacedRows, laterRow, [earlierAd.currency, laterAd.currency], reportProblem);
  if (earlierRows.length === 0 || !laterRow || !hasResults(laterRow)) return { ...earlierAd, ...laterAd };
  if (earlierRows.every((row) => !hasResults(row))) return { ...earlierAd, ...laterAd };
  if (earlierRows.length >= maxRowsPerAd)
    throw new Error(`Ad ID: more than ${maxRowsPerAd} rows of one ad; export it with fewer breakdowns or days`);
  const { rows, labelColumns } = addRow(earlierRows, laterRow, earlierAd, laterAd);
  const combinedAd = omitFields({ ...earlierAd, ...laterAd }, [...labelColumns, ...listResultFields(rows)]);
  // If a text distinguishes the rows, e.g. the headline, use the text of the first row for the ad.
  for (const name of labelColumns) if (textFields.has(name)) combinedAd[name] = earlierAd[name] ?? laterAd[name];
  // Move the row with the totals, which has no labels, to the front.
  rows.sort((firstRow, secondRow) => Number(!isUnlabelledRow(firstRow)) - Number(!isUnlabelledRow(secondRow)));
  const total = computeAdTotal(rows);
  reportUnsummedResults(rows, total, reportProblem);
  return {
    ...combinedAd,
    ...total.results,
    ...toResultFields(total),
    ...combinePeriods(earlierAd, laterAd),
    ...(rows.length > 1 || hasBreakdown(rows) ? { breakdown: rows } : {}),
  };
}

/**
 * Combines an ad of an earlier import run with the same ad of a new import. Keeps the results of other periods and adds
 * them up. If periods overlap, the new results replace the earlier ones.
 * @param reportProblem called if the replaced results are not an earlier version of the new results, or if the new
 * results are older than the stored results and are therefore not stored
 * @returns undefined if the new results are older than the stored results
 */
export function combineWithEarlierPeriods(
  storedAd: JsonObject,
  ad: JsonObject,
  reportProblem: ReportProblem,
): JsonObject | undefined {
  const [newRow] = listRows(ad);
  const period = newRow && readPeriod(newRow);
  const storedRows = listRows(storedAd);
  const remainingRows = storedRows.filter((row) => hasResults(row) && arePeriodsSeparate(readPeriod(row), period));
  const shouldKeepEarlierResults = remainingRows.length > 0 && storedAd.currency === ad.currency;
  const replacedRows = storedRows.filter(
    (row) => hasResults(row) && !(shouldKeepEarlierResults && remainingRows.includes(row)),
  );
  // If the import returns undefined here, it stores the newer of the two versions.
  if (newRow && !shouldKeepEarlierResults && isOlderExport(ad, storedAd)) {
    reportUnstoredRow(newRow, replacedRows, reportProblem);
    return undefined;
  }
  if (newRow) reportReplacedRows(replacedRows, newRow, [storedAd.currency, ad.currency], reportProblem);
  if (!shouldKeepEarlierResults) return newRow && copyMeasuredFields(ad, storedAd);
  const starts = remainingRows.flatMap(({ reportingStarts }) => reportingStarts ?? []).sort();
  const ends = remainingRows.flatMap(({ reportingEnds }) => reportingEnds ?? []).sort();
  const remainingAd = {
    ...(storedAd.goneAt === undefined ? storedAd : omitFields(storedAd, ['goneAt', 'isActive', 'endDate'])),
    breakdown: remainingRows.map((row) => ({ ...row, isFromEarlierImport: true })),
    ...{ reportingStarts: starts[0], reportingEnds: ends.at(-1) },
  };
  const isNewer = String(ad.lastSeenAt ?? '') >= String(storedAd.lastSeenAt ?? '');
  const combinedAd = combineResultRows(remainingAd, ad, reportProblem);
  return isNewer ? combinedAd : { ...combinedAd, ...pickTexts(storedAd) };
}

/**
 * Returns true if the row of an export is older than the stored version of its ad. A row for one day of the export has
 * this day as `lastSeenAt`, so the row is not older if the export ends on the same day as the stored one, or later.
 */
function isOlderExport(ad: JsonObject, storedAd: JsonObject): boolean {
  const [end, storedEnd] = [ad.reportingEnds, storedAd.reportingEnds];
  const endsOnSameDayOrLater = end !== undefined && storedEnd !== undefined && String(end) >= String(storedEnd);
  return isOlderVersion(ad, storedAd) && !endsOnSameDayOrLater;
}

/**
 * Reports that a new row replaces rows of an earlier import. Reports nothing if the replaced rows are only an earlier
 * version of the same results.
 */
function reportReplacedRows(
  replacedRows: readonly ResultRow[],
  newRow: ResultRow,
  [storedCurrency, newCurrency]: [stored: unknown, new: unknown],
  reportProblem: ReportProblem,
): void {
  const reason = findReplacementReason(replacedRows, newRow, storedCurrency, newCurrency);
  if (reason === undefined) return;
  const { adSpend } = computeAdTotal(replacedRows);
  reportProblem(
    new Error(
      `results of an earlier import were replaced, because ${reason}; before, the amount spent was ${adSpend ?? 'unknown'}`,
    ),
  );
}

/** Reports that a row of an older export was not stored, because the library has newer results of the ad. */
function reportUnstoredRow(olderRow: ResultRow, newerRows: readonly ResultRow[], reportProblem: ReportProblem): void {
  if (newerRows.length === 0 || !hasResults(olderRow)) return;
  const newerPeriods = [...new Set(newerRows.map(formatPeriod))].join(', ');
  reportProblem(
    new Error(
      `results of ${formatPeriod(olderRow)} were not stored, because the library has newer results of ${newerPeriods}; in the older results, the amount spent is ${olderRow.adSpend ?? 'unknown'}`,
    ),
  );
}

/**
 * Returns the reason why new results replace stored rows, for the import report. Returns undefined if the stored rows
 * are only an earlier version of the same results, that is, if they have the same period, breakdowns and currency.
 */
function findReplacementReason(
  replacedRows: readonly ResultRow[],
  newRow: ResultRow,
  storedCurrency: unknown,
  newCurrency: unknown,
): string | undefined {
  if (replacedRows.length === 0) return undefined;
  if (storedCurrency !== newCurrency)
    return `they are in ${storedCurrency ?? 'an unknown currency'} and the new results in ${newCurrency ?? 'an unknown currency'}`;
  const otherPeriod = replacedRows.map(formatPeriod).find((replacedPeriod) => replacedPeriod !== formatPeriod(newRow));
  if (otherPeriod !== undefined) return `their period ${otherPeriod} overlaps the new period ${formatPeriod(newRow)}`;
  const [earlierNames, newNames] = [replacedRows, [newRow]].map(formatBreakdownNames);
  return earlierNames === newNames
    ? undefined
    : `they are broken down by ${earlierNames || 'nothing'} and the new results by ${newNames || 'nothing'}`;
}

/** Formats the breakdowns (columns such as age or country) of rows as a sorted list, e.g. `Age, Gender`. */
const formatBreakdownNames = (rows: readonly ResultRow[]): string =>
  [...new Set(rows.flatMap(({ values }) => Object.keys(values)).filter(isBreakdownColumn))].sort().join(', ');

const textFields = new Set(['headline', 'body', 'linkDescription', 'offerLink', 'ctaType']);
const pickTexts = (ad: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(ad).filter(([name]) => textFields.has(name)));

/** Lists the rows of an ad. If the ad has a single row without breakdowns, builds the row from the fields of the ad. */
function listRows(ad: JsonObject): ResultRow[] {
  if (Array.isArray(ad.breakdown)) return ad.breakdown.filter(isObject) as unknown as ResultRow[];
  const { adSpendMin, impressionsMin, audienceReach, reportingStarts, reportingEnds } = ad;
  const results = Object.entries(ad).filter(
    ([name, value]) => isColumnWithoutField(name) && isResultColumn(name, value),
  );
  return [
    {
      values: {},
      ...(typeof reportingStarts === 'string' && { reportingStarts }),
      ...(typeof reportingEnds === 'string' && { reportingEnds }),
      ...(typeof adSpendMin === 'number' && { adSpend: adSpendMin }),
      ...(typeof impressionsMin === 'number' && { impressions: impressionsMin }),
      ...(typeof audienceReach === 'number' && { audienceReach }),
      ...(results.length > 0 && { results: Object.fromEntries(results) }),
    },
  ];
}

const resultFields = ['adSpendMin', 'adSpendMax', 'impressionsMin', 'impressionsMax', 'audienceReach'];
/** Returns true for a column that the import stores under the column's own name, and not as a field of the ad. */
const isColumnWithoutField = (columnName: string): boolean =>
  !fieldsOfWholeAd.has(columnName) && !textFields.has(columnName) && !resultFields.includes(columnName);

const listResultFields = (rows: readonly ResultRow[]): string[] => [
  ...resultFields,
  ...rows.flatMap(({ results }) => Object.keys(results ?? {})),
];

const omitFields = (ad: JsonObject, names: Iterable<string>): JsonObject => {
  const removedNames = new Set(names);
  return Object.fromEntries(Object.entries(ad).filter(([name]) => !removedNames.has(name)));
};

const hasResults = ({ adSpend, impressions, audienceReach, results }: AdResults): boolean =>
  (adSpend ?? impressions ?? audienceReach ?? results) !== undefined;

const isUnlabelledRow = ({ values }: ResultRow): boolean => Object.keys(values).length === 0;
const isBreakdownColumn = (columnName: string): boolean => breakdownKeys.includes(normalizeKey(columnName));
const hasBreakdown = (rows: readonly ResultRow[]): boolean =>
  rows.some(({ values }) => Object.keys(values).some(isBreakdownColumn));

/**
 * Returns the breakdown values of a row as JSON, e.g. its age range and country. Rows with equal JSON may still differ
 * in other columns.
 */
const formatBreakdownValues = ({ values }: ResultRow): string =>
  JSON.stringify(Object.entries(values).filter(([name]) => isBreakdownColumn(name)));
const formatPeriod = ({ reportingStarts = '', reportingEnds = '' }: ResultRow): string =>
  `${reportingStarts.slice(0, 10)} to ${reportingEnds.slice(0, 10)}`;

/** Returns the texts of a record that may distinguish it from other rows of the same ad, by field or column name. */
const listRowLabels = (ad: JsonObject): Record<string, string> =>
  Object.fromEntries(
    Object.entries(ad).flatMap(([name, value]) =>
      typeof value === 'string' &&
      value !== '' &&
      !fieldsOfWholeAd.has(name) &&
      !stateColumnPattern.test(name) &&
      !isResultColumn(name, value)
        ? [[name, value.trim()] as const]
        : [],
    ),
  );

/**
 * Adds a row to the rows of an ad. If two rows have the same breakdown values and period, another column must
 * distinguish them, such as a breakdown that the import does not know.
 * @returns the rows, and the names of the other columns that distinguish them
 * @throws Error if rows have different results although no column distinguishes them
 */
function addRow(
  earlierRows: readonly ResultRow[],
  laterRow: ResultRow,
  earlierAd: JsonObject,
  laterAd: JsonObject,
): { rows: ResultRow[]; labelColumns: string[] } {
  const [earlierLabels, laterLabels] = [listRowLabels(earlierAd), listRowLabels(laterAd)];
  const readLabel = ({ values }: ResultRow, name: string) => values[name] ?? earlierLabels[name];
  const knownColumns = new Set(
    earlierRows.flatMap(({ values }) => Object.keys(values)).filter((name) => !isBreakdownColumn(name)),
  );
  const labelColumns = new Set(knownColumns);
  const candidateColumns = [...new Set([...knownColumns, ...Object.keys(earlierLabels), ...Object.keys(laterLabels)])];
  const [laterBreakdown, laterPeriod, laterResults] = [
    formatBreakdownValues(laterRow),
    formatPeriod(laterRow),
    new Map(listResults(laterRow)),
  ];
  // If the later row has a different text in a column, store the text of each row in its `values`, even if the period or
  // the breakdown already distinguishes the rows. The ad itself keeps only the text of the last row, so the texts of the
  // earlier rows would be lost.
  for (const [name, label] of Object.entries(laterLabels))
    if (earlierLabels[name] !== undefined && earlierLabels[name] !== label && !textFields.has(name))
      labelColumns.add(name);
  for (const row of earlierRows) {
    if (formatBreakdownValues(row) !== laterBreakdown || formatPeriod(row) !== laterPeriod) continue;
    const isContradictory = hasDifferentResults(row, laterResults);
    const differentColumns = candidateColumns.filter((name) => {
      const [label, laterLabel] = [readLabel(row, name), laterLabels[name]];
      return label !== laterLabel && (isContradictory || (label !== undefined && laterLabel !== undefined));
    });
    // Rows with different texts but equal results are probably copies of the same row, if they have no ad id.
    if (!isContradictory && (differentColumns.length === 0 || laterAd.adId === undefined)) {
      const rows = earlierRows.map((otherRow) => (otherRow === row ? mergeRows(row, laterRow) : otherRow));
      return { rows, labelColumns: [...knownColumns] };
    }
    if (laterAd.adId === undefined)
      throw new Error(
        `Ad name: an earlier row has the same ad name ${quoteValue(laterAd.adName)} and other results; export the table with the column Ad ID`,
      );
    if (differentColumns.length === 0) throw new Error(describeContradiction(row, laterRow));
    for (const name of differentColumns) labelColumns.add(name);
  }
  const pickLabels = (read: (name: string) => string | undefined) =>
    Object.fromEntries(
      [...labelColumns].flatMap((name) => {
        const label = read(name);
        return label === undefined || totalValuePattern.test(label) ? [] : [[name, label]];
      }),
    );
  // If further columns now distinguish the rows, add the values of these columns to all earlier rows.
  const labelledRows =
    labelColumns.size === knownColumns.size
      ? earlierRows
      : earlierRows.map((row) => ({
          ...row,
          values: { ...row.values, ...pickLabels((name) => readLabel(row, name)) },
        }));
  const labelledRow = { ...laterRow, values: { ...laterRow.values, ...pickLabels((name) => laterLabels[name]) } };
  return { rows: [...labelledRows, labelledRow], labelColumns: [...labelColumns] };
}

/** Matches the word that a row with the total of an ad has in place of a breakdown value. */
export const totalValuePattern = /^(?:all|total)$/i;

/** Lists the results of a row by column name. Known results get their names in the export, such as `Amount spent`. */
const listResults = ({ adSpend, impressions, audienceReach, results = {} }: AdResults): [string, unknown][] =>
  Object.entries({ 'Amount spent': adSpend, Impressions: impressions, Reach: audienceReach, ...results }).filter(
    ([, value]) => value !== undefined,
  );

const hasDifferentResults = (row: AdResults, otherResults: ReadonlyMap<string, unknown>): boolean =>
  listResults(row).some(([name, value]) => otherResults.has(name) && otherResults.get(name) !== value);

/** Merges two rows with the same results. Each row may have columns that the other row lacks. */
const mergeRows = (row: ResultRow, otherRow: ResultRow): ResultRow => ({
  ...row,
  ...otherRow,
  values: { ...otherRow.values, ...row.values },
  ...((row.results ?? otherRow.results) !== undefined && { results: { ...row.results, ...otherRow.results } }),
});

/**
 * Formats an error message about two rows with different results. The rows are not combined, because nothing shows
 * whether the later row corrects the earlier row or is another part of the results.
 */
function describeContradiction(row: ResultRow, laterRow: ResultRow): string {
  const laterResults = new Map(listResults(laterRow));
  const [name, value] =
    listResults(row).find(([name, value]) => laterResults.has(name) && laterResults.get(name) !== value) ?? [];
  const laterValue = laterResults.get(name ?? '');
  const bothText =
    typeof value === 'number' && typeof laterValue === 'number' && name !== 'Reach'
      ? `, or ${roundSum(value + laterValue)} in both rows`
      : '';
  return `${name}: ${laterValue}, but an earlier row of the same ad, period and breakdown has ${value}; the total may be ${laterValue}${bothText}; export a column that tells the rows apart`;
}

/**
 * Checks that the amounts of two rows of an ad are in the same currency.
 * @throws Error if the currencies differ
 */
function checkCurrency(earlierAd: JsonObject, laterAd: JsonObject): void {
  if (earlierAd.currency === undefined || laterAd.currency === undefined || earlierAd.currency === laterAd.currency)
    return;
  throw new Error(
    `Amount spent: this row of the ad is in ${laterAd.currency} and an earlier row is in ${earlierAd.currency}, so they cannot be added up; export the ad in one currency`,
  );
}

interface Period {
  start: string;
  end: string;
}

const readPeriod = ({ reportingStarts, reportingEnds }: ResultRow): Period | undefined =>
  reportingStarts === undefined || reportingEnds === undefined
    ? undefined
    : { start: reportingStarts.slice(0, 10), end: reportingEnds.slice(0, 10) };

/** Returns true if both periods are known and have no day in common. */
const arePeriodsSeparate = (period: Period | undefined, otherPeriod: Period | undefined): boolean =>
  period !== undefined &&
  otherPeriod !== undefined &&
  (period.end < otherPeriod.start || otherPeriod.end < period.start);

/**
 * Computes the results of an ad from its rows. The result of a period is its row of totals, or the sum of its other
 * rows. A period within another period is not counted again.
 * @throws Error with both possible totals if two periods overlap only partly, or if a period is unknown
 */
function computeAdTotal(rows: readonly ResultRow[]): AdResults {
  const rowsWithResults = rows.filter(hasResults);
  const rowsByPeriod = [...groupBy(rowsWithResults, formatPeriod).values()];
  if (rowsByPeriod.length < 2) return computePeriodTotal(rowsWithResults);
  const periods = rowsByPeriod.map((periodRows) => ({
    period: readPeriod(periodRows[0] as ResultRow),
    total: computePeriodTotal(periodRows),
    name: formatPeriod(periodRows[0] as ResultRow),
  }));
  const outerPeriods = periods.filter(
    ({ period }) => !periods.some((other) => other.period !== period && isPeriodInside(period, other.period)),
  );
  for (const [index, { period, total, name }] of outerPeriods.entries())
    for (const other of outerPeriods.slice(index + 1)) {
      if (arePeriodsSeparate(period, other.period)) continue;
      const sums = sumResults([total, other.total]).adSpend;
      throw new Error(
        `Reporting starts: the periods ${name} and ${other.name} are not separate, so the amount spent may be ${other.total.adSpend ?? 'unknown'} or ${sums ?? 'unknown'}; export the ad without overlapping periods`,
      );
    }
  return sumResults(outerPeriods.map(({ total }) => total));
}

const isPeriodInside = (inner: Period | undefined, outer: Period | undefined): boolean =>
  outer !== undefined && inner !== undefined && outer.start <= inner.start && inner.end <= outer.end;

/**
 * Computes the results of an ad in one period. Rows by age and rows by country each contain all results, so rows of
 * different breakdowns are not added up. If no row has the total, returns the highest total of any breakdown.
 */
function computePeriodTotal(rows: readonly ResultRow[]): AdResults {
  const rowsByBreakdown = [...groupBy(rows, formatBreakdownValues).values()];
  // Rows with the same breakdown values differ in another column. One of these rows may be the total of the others.
  const breakdownTotals = rowsByBreakdown.map((rowsOfBreakdown) => {
    const [firstRow] = rowsOfBreakdown;
    const isTotalRow = ({ values }: ResultRow) => Object.keys(values).every(isBreakdownColumn);
    return {
      breakdown: Object.keys(firstRow?.values ?? {})
        .filter(isBreakdownColumn)
        .sort()
        .join(),
      results: sumUnlessTotal(
        rowsOfBreakdown.find(isTotalRow),
        rowsOfBreakdown.filter((row) => !isTotalRow(row)),
      ),
    };
  });
  const total = breakdownTotals.find(({ breakdown }) => breakdown === '')?.results;
  const totalsByBreakdown = groupBy(
    breakdownTotals.filter(({ breakdown }) => breakdown !== ''),
    ({ breakdown }) => breakdown,
  );
  const sums = [...totalsByBreakdown.values()].map((totalsOfBreakdown) =>
    totalsOfBreakdown.map(({ results }) => results),
  );
  if (sums.length < 2) return sumUnlessTotal(total, sums[0] ?? []);
  return total ?? pickHighestResults(sums.map(sumResults));
}

/**
 * Adds up the results of several rows. Labels are the values that distinguish the rows, e.g. a country. If the results
 * of the row without labels are at least the sum of the other rows, this row is the total. Otherwise, it is added too.
 */
function sumUnlessTotal(unlabelledRow: AdResults | undefined, labelledResults: readonly AdResults[]): AdResults {
  const sums = sumResults(labelledResults);
  if (!unlabelledRow) return sums;
  const sumByName = new Map(listResults(sums));
  const isTotal = listResults(unlabelledRow).every(([name, value]) => {
    const sumValue = sumByName.get(name);
    return (
      typeof value !== 'number' || typeof sumValue !== 'number' || name === 'Reach' || value >= sumValue * minTotalRatio
    );
  });
  return isTotal ? unlabelledRow : sumResults([unlabelledRow, ...labelledResults]);
}

/**
 * The lowest accepted ratio of a total to the sum of its rows. It is below 1, because Ads Manager rounds the amounts of
 * single rows.
 */
const minTotalRatio = 0.99;

/** Removes floating-point errors from a sum, e.g. 0.1 + 0.2 becomes 0.3. */
const roundSum = (sum: number): number => Number(sum.toPrecision(15));

/**
 * Adds up the results of several rows. Omits results that cannot be added up, such as the reach. Returns the results of
 * a single row unchanged.
 */
function sumResults(rowResults: readonly AdResults[]): AdResults {
  const [firstResults] = rowResults;
  if (!firstResults) return {};
  if (rowResults.length === 1) return firstResults;
  const sumField = (field: 'adSpend' | 'impressions') => {
    const values = rowResults.flatMap((row) => row[field] ?? []);
    return values.length > 0 ? { [field]: roundSum(values.reduce((total, value) => total + value, 0)) } : {};
  };
  const results: Record<string, unknown> = {};
  for (const name of new Set(rowResults.flatMap((row) => Object.keys(row.results ?? {})))) {
    const columnValues = rowResults.flatMap((row) => row.results?.[name] ?? []);
    // Do not add up a column with an unreadable value, because the sum would be too low.
    if (isActionColumn(name) && columnValues.every((value) => typeof value === 'number'))
      results[name] = roundSum((columnValues as number[]).reduce((total, value) => total + value, 0));
    else if (
      settingColumnPattern.test(name) &&
      columnValues.length === rowResults.length &&
      new Set(columnValues).size === 1
    )
      results[name] = columnValues[0];
  }
  return {
    ...sumField('adSpend'),
    ...sumField('impressions'),
    ...(Object.keys(results).length > 0 && { results }),
  };
}

function pickHighestResults(sums: readonly AdResults[]): AdResults {
  const pickField = (field: 'adSpend' | 'impressions') => {
    const values = sums.flatMap((sum) => sum[field] ?? []);
    return values.length > 0 ? { [field]: Math.max(...values) } : {};
  };
  const results: Record<string, unknown> = {};
  for (const { results: sumsByName = {} } of sums)
    for (const [name, value] of Object.entries(sumsByName)) {
      const highest = results[name];
      results[name] = typeof value === 'number' && typeof highest === 'number' ? Math.max(highest, value) : value;
    }
  return { ...pickField('adSpend'), ...pickField('impressions'), results };
}

const toResultFields = ({ adSpend, impressions, audienceReach }: AdResults): JsonObject => ({
  ...(adSpend !== undefined && { adSpendMin: adSpend, adSpendMax: adSpend }),
  ...(impressions !== undefined && { impressionsMin: impressions, impressionsMax: impressions }),
  ...(audienceReach !== undefined && { audienceReach }),
});

/** Reports the results that only appear in the list of rows, because they cannot be added up. */
function reportUnsummedResults(rows: readonly ResultRow[], total: AdResults, reportProblem: ReportProblem): void {
  const totalNames = new Set(listResults(total).map(([name]) => name));
  for (const name of new Set(rows.flatMap(listResults).map(([name]) => name))) {
    if (totalNames.has(name)) continue;
    const reason =
      name === 'Reach'
        ? 'several rows may count the same person'
        : isActionColumn(name)
          ? 'the value of a row is not a number'
          : 'only spend, impressions and actions can be added up';
    reportProblem(new Error(`${name}: kept for each row of an ad but not added up, because ${reason}`));
  }
}

/**
 * Combines the dates of two records of an ad. Returns the earlier start of the ad and of the report, the later end of
 * the report, and the later `lastSeenAt`.
 */
function combinePeriods(earlierAd: JsonObject, laterAd: JsonObject): JsonObject {
  const listSortedDates = (fieldName: string) =>
    [earlierAd[fieldName], laterAd[fieldName]].filter((value) => typeof value === 'string').sort();
  const period = {
    ...{ startedAt: listSortedDates('startedAt')[0], lastSeenAt: listSortedDates('lastSeenAt').at(-1) },
    ...{
      reportingStarts: listSortedDates('reportingStarts')[0],
      reportingEnds: listSortedDates('reportingEnds').at(-1),
    },
  };
  return Object.fromEntries(Object.entries(period).filter(([, value]) => value !== undefined));
}
