import { Ad } from '../../../api/schemas.ts';
import { isUuid } from '../../../views/safe-text.ts';
import { computeUuidFromName } from '../../service/request.ts';
import { type ColumnValueParser, isMissingValue, type NumberRange } from '../values/column-value-parser.ts';
import { parseCountryCode } from '../values/countries.ts';
import { amountFields } from '../values/currencies.ts';
import { checkRange } from './field-reader.ts';
import type { ImportFormat, JsonObject } from './import-format.ts';
import { computePageId } from './library-ids.ts';
import type { SourceRecord } from './source-record.ts';

/**
 * The column names that the import accepts for each field of an ad, normalized and separated by spaces. People use
 * these names in their own tables, and advertising programs use them in exports.
 */
const columnNamesByField: Record<string, string> = {
  id: 'id adid',
  pageId: 'pageid advertiserid',
  pageName: 'advertiser advertisername page pagename brand brandname company companyname account',
  headline: 'headline title',
  body: 'body text copy primarytext adtext message',
  linkDescription: 'linkdescription description',
  offerLink: 'offerlink link url landingpage landingpageurl destination destinationurl finalurl websiteurl',
  displayUrl: 'displayurl displaylink',
  ctaType: 'ctatype cta calltoaction',
  displayFormat: 'displayformat format',
  startedAt: 'startedat started start starts startdate startedrunning startedrunningon firstseen date',
  lastSeenAt: 'lastseenat lastseen',
  endDate: 'enddate ended end',
  countries: 'countries country',
  languages: 'languages language',
  publisherPlatform: 'publisherplatform publisherplatforms platforms platform',
  duplicates: 'duplicates copies',
  audienceReach: 'audiencereach reach',
  impressions: 'impressions',
  spend: 'spend amountspent adspend cost',
  adSpendMin: 'adspendmin spendmin minspend spendfrom',
  adSpendMax: 'adspendmax spendmax maxspend spendto',
  revenueMin: 'revenuemin',
  revenueMax: 'revenuemax',
  currency: 'currency',
  payer: 'payer paidby paidforby',
  beneficiary: 'beneficiary',
  picture: 'picture image imageurl pictureurl',
};

/**
 * The accepted keys for each field of an ad. Each column name may also have a prefix, e.g. `Ad headline` or `Creative
 * headline`.
 */
const keysByField = Object.fromEntries(
  Object.entries(columnNamesByField).map(([field, spaceSeparatedNames]) => [
    field,
    spaceSeparatedNames.split(' ').flatMap((columnName) => [columnName, `ad${columnName}`, `creative${columnName}`]),
  ]),
);

const dateFields = ['startedAt', 'lastSeenAt', 'endDate'];
const countFields = ['duplicates', 'audienceReach'];

/**
 * A table of ads that a user has collected. The import rejects a row if the value of a known column cannot be parsed.
 */
export const ownAdsFormat: ImportFormat = {
  name: 'own-ads',
  title: 'a table of your own, with a column for the headline or the body of each ad',
  documentation: 'docs/archive.md',
  layouts: ['table'],
  keysByField,
  matches: (record) => record.hasAny([...(keysByField.headline ?? []), ...(keysByField.body ?? [])]),
  toAd,
};

/**
 * Converts a row to an ad. If the id in the row is not a UUID, the ad's id is computed from the advertiser and that id.
 * If the row has no id, the ad's id is computed from the advertiser, start date, headline and body. In this case, rows
 * with equal content are the same ad, and a row with a changed text is a different ad.
 */
function toAd(record: SourceRecord, parser: ColumnValueParser): JsonObject {
  const ad: JsonObject = {};
  for (const [field, keys] of Object.entries(keysByField)) {
    const key = keys.find((candidate) => record.has(candidate));
    if (key === undefined) continue;
    record.markUsed(key);
    const column = record.getSourceName(key);
    const cell = String(record.get(key) ?? '').trim();
    // Keep the cell `NA` in a column of countries, because it is the code of Namibia there. In other columns, it means
    // a missing value.
    if (isMissingValue(cell) && !(field === 'countries' && cell === 'NA')) continue;
    const value = parseCell(field, column, cell, parser);
    if (value === undefined) continue;
    ad[field] = value;
    // Read the currency from a column name such as `Amount spent (USD)`, unless the table has a column for the
    // currency.
    if (field === 'spend') ad.currency ??= /\(([A-Z]{3})\)$/.exec(column)?.[1];
  }
  if (ad.currency === undefined) delete ad.currency;
  const { id = '', pageName = '', pageId = '', picture, spend, impressions, ...fields } = ad;
  const { headline = '', body = '', startedAt = '' } = fields;
  if (headline === '' && body === '') throw new Error('neither a headline nor a body; an ad needs one of them');
  const identifyingValues = id === '' ? [pageName, startedAt, headline, body] : [pageName || pageId, id];
  const [spendRange, impressionsRange] = [spend as NumberRange | undefined, impressions as NumberRange | undefined];
  const { adSpendMin, adSpendMax, revenueMin, revenueMax } = fields as Record<string, number | undefined>;
  checkRange('spend', spendRange ?? { min: adSpendMin, max: adSpendMax });
  checkRange('impressions', impressionsRange ?? {});
  checkRange('revenue', { min: revenueMin, max: revenueMax });
  return {
    ...collectOtherCells(record, parser),
    ...(spendRange && { adSpendMin: spendRange.min, adSpendMax: spendRange.max }),
    ...(impressionsRange && { impressionsMin: impressionsRange.min, impressionsMax: impressionsRange.max }),
    ...fields,
    adLibrary: 'own',
    id: isUuid(String(id)) ? String(id).toLowerCase() : computeUuidFromName(JSON.stringify(identifyingValues)),
    ...(pageName !== '' && { page: { pageName } }),
    ...((pageId !== '' || pageName !== '') && {
      pageId:
        pageId === '' ? computeUuidFromName(JSON.stringify(['page', pageName])) : computePageId('own', String(pageId)),
    }),
    ...(picture !== undefined && { media: [{ type: 'THUMB', url: picture, nr: 0 }] }),
  };
}

function parseCell(field: string, column: string, cell: string, parser: ColumnValueParser): unknown {
  const countOptions = { isCount: true, label: field };
  if (dateFields.includes(field)) return parser.parseDate(column, cell, field);
  if (countFields.includes(field)) return parser.parseNumber(column, cell, countOptions);
  if (amountFields.includes(field)) return parser.parseNumber(column, cell, { label: field });
  if (field === 'spend') return parser.parseRange(column, cell, { label: field });
  if (field === 'impressions') return parser.parseRange(column, cell, countOptions);
  // Some programs write the id 12 as 12.0 if another cell of the column is empty.
  if (field === 'pageId' || field === 'id') return cell.replace(/^(\d{1,15})\.0$/, '$1');
  if (field === 'countries') return toCountryCodes(parser.parseNames(column, cell) ?? [cell]);
  if (field === 'languages') return parser.parseNames(column, cell)?.map((name) => name.toLowerCase());
  if (field === 'publisherPlatform') return parser.parseNames(column, cell)?.map((name) => name.toUpperCase());
  return cell;
}

const toCountryCodes = (names: readonly string[]): string[] => [...new Set(names.map(parseCountryCode))];

/**
 * Collects the cells of unknown columns under their column names. If a column has the name of an API field, skips and
 * reports each cell whose value does not have the type of that field.
 */
function collectOtherCells(record: SourceRecord, parser: ColumnValueParser): JsonObject {
  const otherCells = record.getUnusedFields().flatMap(({ name, value }): [string, unknown][] => {
    const cellText = String(value ?? '').trim();
    if (cellText === '' || name === '' || Object.hasOwn(keysByField, name)) return [];
    const schema = Object.hasOwn(Ad.shape, name) ? Ad.shape[name as keyof typeof Ad.shape] : undefined;
    const fieldValue = schema === undefined ? cellText : (parser.parseStructure(cellText) ?? cellText);
    if (schema === undefined || schema.safeParse(fieldValue).success) return [[name, fieldValue]];
    parser.addValueError(new Error(`${name}: left out, because the field ${name} of an ad cannot contain a text`));
    return [];
  });
  return Object.fromEntries(otherCells);
}
