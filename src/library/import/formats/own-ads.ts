import { Ad } from '../../../api/schemas.ts';
import { isUuid } from '../../../views/safe-text.ts';
import { uuidFromName } from '../../service/request.ts';
import { type ColumnValueParser, isMissing, type NumberRange } from '../values/column-value-parser.ts';
import { parseCountryCode } from '../values/countries.ts';
import type { ImportFormat, JsonObject } from './import-format.ts';
import type { SourceRecord } from './source-record.ts';

/** The columns of a table that somebody wrote, or exported from a program for ads: which field a column is. */
const columnNames: Record<string, string> = {
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
  startedAt: 'startedat started start starts startdate firstseen date',
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
  picture: 'picture image imageurl pictureurl',
};

/** `Ad headline` and `Creative headline` are the headline, as `headline` is. */
const columns = Object.fromEntries(
  Object.entries(columnNames).map(([field, names]) => [
    field,
    names.split(' ').flatMap((name) => [name, `ad${name}`, `creative${name}`]),
  ]),
);

const dates = ['startedAt', 'lastSeenAt', 'endDate'];
const counts = ['duplicates', 'audienceReach'];
const amounts = ['adSpendMin', 'adSpendMax', 'revenueMin', 'revenueMax'];

/** Tables of ads that somebody collected. Every value of a known column must be understood, or the row is refused. */
export const ownAdsFormat: ImportFormat = {
  name: 'own-ads',
  title: 'a table of your own, with a column for the headline or the body of each ad',
  layouts: ['table'],
  keysByField: columns,
  matches: (record) => record.hasAny([...(columns.headline ?? []), ...(columns.body ?? [])]),
  toAd,
};

/**
 * An ad without a UUID of its own gets an id that is made from its advertiser and the id of its row, or else from its
 * content: the same advertiser, start, headline and body are the same ad, and a changed text is another ad.
 */
function toAd(record: SourceRecord, values: ColumnValueParser): JsonObject {
  const ad: JsonObject = {};
  for (const [field, keys] of Object.entries(columns)) {
    const key = keys.find((one) => record.has(one));
    if (key === undefined) continue;
    record.markUsed(key);
    const cell = String(record.get(key) ?? '').trim();
    // NA is Namibia.
    if (isMissing(cell) && !(field === 'countries' && cell === 'NA')) continue;
    const value = readCell(field, record.getSourceName(key), cell, values);
    if (value === undefined) continue;
    ad[field] = value;
    if (field === 'spend') ad.currency ??= /\(([A-Z]{3})\)$/.exec(record.getSourceName(key))?.[1];
  }
  // `Amount spent (USD)` names the currency where no column does.
  if (ad.currency === undefined) delete ad.currency;
  const { id = '', pageName = '', pageId = '', picture, spend, impressions, ...fields } = ad;
  const { headline = '', body = '', startedAt = '' } = fields;
  if (headline === '' && body === '') throw new Error('neither headline nor body; an ad has words');
  const madeOf = id === '' ? [pageName, startedAt, headline, body] : [pageName || pageId, id];
  const [spent, seen] = [spend as NumberRange | undefined, impressions as NumberRange | undefined];
  return {
    ...otherCells(record, values),
    ...(spent && { adSpendMin: spent.min, adSpendMax: spent.max }),
    ...(seen && { impressionsMin: seen.min, impressionsMax: seen.max }),
    ...fields,
    id: isUuid(String(id)) ? String(id).toLowerCase() : uuidFromName(JSON.stringify(madeOf)),
    ...(pageName !== '' && { page: { pageName } }),
    ...((pageId !== '' || pageName !== '') && { pageId: pageId || uuidFromName(JSON.stringify(['page', pageName])) }),
    ...(picture !== undefined && { media: [{ type: 'THUMB', url: picture, nr: 0 }] }),
  };
}

function readCell(field: string, column: string, cell: string, values: ColumnValueParser): unknown {
  const count = { isCount: true, label: field };
  if (dates.includes(field)) return values.parseDate(column, cell, field);
  if (counts.includes(field)) return values.parseNumber(column, cell, count);
  if (amounts.includes(field)) return values.parseNumber(column, cell, { label: field });
  if (field === 'spend') return values.parseRange(column, cell, { label: field });
  if (field === 'impressions') return values.parseRange(column, cell, count);
  // A program that met a gap in the column writes the id 12 as 12.0.
  if (field === 'pageId' || field === 'id') return cell.replace(/^(\d{1,15})\.0$/, '$1');
  if (field === 'countries') return countriesOf(values.names(column, cell) ?? [cell]);
  if (field === 'languages') return values.names(column, cell)?.map((one) => one.toLowerCase());
  if (field === 'publisherPlatform') return values.names(column, cell)?.map((one) => one.toUpperCase());
  return cell;
}

const countriesOf = (names: readonly string[]): string[] => [...new Set(names.map(parseCountryCode))];

/** Columns that are no field are kept under their own names, unless the API has a field of this name and another type. */
function otherCells(record: SourceRecord, values: ColumnValueParser): JsonObject {
  const others = record.getUnusedFields().flatMap(({ name, value }): [string, unknown][] => {
    const text = String(value ?? '').trim();
    if (text === '' || name === '' || Object.hasOwn(columns, name)) return [];
    const schema = Object.hasOwn(Ad.shape, name) ? Ad.shape[name as keyof typeof Ad.shape] : undefined;
    const kept = schema === undefined ? text : (values.parseStructure(text) ?? text);
    if (schema === undefined || schema.safeParse(kept).success) return [[name, kept]];
    values.addValueError(new Error(`${name}: left out, because the field ${name} of an ad cannot hold a text`));
    return [];
  });
  return Object.fromEntries(others);
}
