import { isObject } from '../../../views/view.ts';
import type { ColumnValueParser, NumberRange } from '../values/column-value-parser.ts';
import { parseCount, parseId, parseText } from './field-parsers.ts';
import { FieldReader, type FieldRule, listKeysByField, type RangeRule } from './field-reader.ts';
import type { ImportFormat, JsonObject } from './import-format.ts';
import type { SourceRecord } from './source-record.ts';

/**
 * The spend of an advertiser page under one disclaimer (the statement of who paid for a political ad). The report has a
 * row for each disclaimer of a page.
 */
interface DisclaimerSpend {
  disclaimer: string;
  adSpendMin?: number;
  adSpendMax?: number;
  adsAmount?: number;
}

const fieldRules: readonly FieldRule[] = [
  ['pageId', parseId, 'pageid'],
  ['sourcePageExternalId', parseId, 'pageid'],
  ['pageName', parseText, 'pagename'],
  ['disclaimer', parseText, 'disclaimer'],
  ['adsAmount', parseCount, 'numberofadsinlibrary', 'numberofads', 'adsinlibrary'],
];
const rangeRules: readonly RangeRule[] = [['adSpend', ['amountspent'], true]];

/**
 * The table of advertisers in Meta's Ad Library Report, with the spend of each page and disclaimer. Each row becomes a
 * part of an advertiser page. Small amounts are written as `≤100`, and the column name `Amount spent (EUR)` contains
 * the currency.
 *
 * The ZIP archive of a report also contains a table of locations, which has no page ids, and a folder `regions` with
 * the spend of the same pages in each region. A table of a region is recognized because it lacks the number of ads.
 */
export const metaAdvertiserReportFormat: ImportFormat = {
  name: 'meta-advertiser-report',
  title: 'the table of advertisers of the Ad Library Report: pages with their spend',
  documentation: 'https://www.facebook.com/ads/library/report/',
  layouts: ['json', 'table'],
  keysByField: listKeysByField(fieldRules, rangeRules),
  matches: (record) =>
    record.has('pageid') && record.has('amountspent') && record.hasAny(['disclaimer', 'numberofadsinlibrary']),
  getIgnoreReason: (record) =>
    record.hasAny(['numberofadsinlibrary', 'numberofads', 'adsinlibrary'])
      ? undefined
      : 'they hold the spend of a page in one region; the table of advertisers holds its whole spend',
  toAd() {
    throw new Error('a row of the Ad Library Report describes a page and not an ad');
  },
  toPage,
  combinePartialRecords: combineDisclaimerRows,
};

function toPage(record: SourceRecord, parser: ColumnValueParser): JsonObject {
  const reader = new FieldReader(parser, (key) => [record, key]);
  reader.readFields(fieldRules);
  reader.readRanges(rangeRules);
  const { disclaimer = '', ...page } = reader.ad;
  const currency = /\(([A-Z]{3})\)\s*$/.exec(record.getSourceName('amountspent'))?.[1];
  const { adSpendMin, adSpendMax } = page as { adSpendMin?: number; adSpendMax?: number };
  const adsAmount = page.adsAmount as number | undefined;
  const disclaimerSpend: DisclaimerSpend = { disclaimer: String(disclaimer) };
  if (adSpendMin !== undefined) disclaimerSpend.adSpendMin = adSpendMin;
  if (adSpendMax !== undefined) disclaimerSpend.adSpendMax = adSpendMax;
  if (adsAmount !== undefined) disclaimerSpend.adsAmount = adsAmount;
  for (const { name, value } of record.getUnusedFields()) {
    parser.unusedKeys.push(name);
    page[name] ??= value;
  }
  return { ...page, ...(currency && { currency }), spendByDisclaimer: [disclaimerSpend] };
}

/**
 * Adds a later row of the report to an advertiser page and computes the totals of all disclaimers again. The later row
 * replaces an earlier row with the same disclaimer.
 */
function combineDisclaimerRows(earlierPage: JsonObject, laterPage: JsonObject): JsonObject {
  const spendByDisclaimer = new Map(
    [earlierPage, laterPage].flatMap((page) =>
      ((page.spendByDisclaimer ?? []) as DisclaimerSpend[])
        .filter(isObject)
        .map((spend) => [spend.disclaimer, spend] as const),
    ),
  );
  const disclaimerSpends = [...spendByDisclaimer.values()];
  const { adSpendMin: _, adSpendMax: __, adsAmount: ___, ...page } = laterPage;
  return { ...earlierPage, ...page, ...sumSpend(disclaimerSpends), spendByDisclaimer: disclaimerSpends };
}

/**
 * Returns the total spend and number of ads of all disclaimers. A missing lower bound counts as 0. If any other value
 * is missing, its total is omitted.
 */
function sumSpend(disclaimerSpends: readonly DisclaimerSpend[]): NumberRange & JsonObject {
  const totals: JsonObject = {};
  for (const field of ['adSpendMin', 'adSpendMax', 'adsAmount'] as const) {
    const values = disclaimerSpends.map((spend) => spend[field] ?? (field === 'adSpendMin' ? 0 : undefined));
    if (values.every((value) => value !== undefined)) totals[field] = values.reduce((sum, value) => sum + value, 0);
  }
  return totals;
}
