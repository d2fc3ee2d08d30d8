import type * as z from 'zod';
import { Ad, Page } from '../../api/schemas.ts';
import { isPathId, maxIdLength } from '../../api/url.ts';
import { parseTime } from '../../views/dates.ts';
import { isUuid } from '../../views/safe-text.ts';
import { maxNestingDepth, quoteValue } from '../service/request.ts';
import { apiFormat } from './formats/api.ts';
import type { ImportFormat } from './formats/import-format.ts';
import type { SourceRecord } from './formats/source-record.ts';
import { maxRecordLength, tooLongProblem } from './sources/source-entry.ts';
import { hasAccessToken, removeAccessTokensDeep } from './values/access-tokens.ts';
import type { ColumnValueParser } from './values/column-value-parser.ts';

interface Given {
  format: ImportFormat;
  /** The record as it is written, if it is a line of its own. */
  text: string | undefined;
  values: ColumnValueParser;
}

type Entry = { json: string } & ({ ad: Ad; page?: undefined } | { page: Page; ad?: undefined });

/**
 * Makes an ad or a page of a record and checks it. `json` is the text to store: as it is written, where the record needs
 * no change.
 * @throws Error that says what is wrong; the message begins with the key if it is about one key
 */
export function validateRecord(record: SourceRecord, { format, text, values }: Given): Entry {
  const source = record.toObject();
  const made = format.toPage?.(record);
  if (made) {
    const page = cleaned(made);
    return { page: checkedPage(page), json: jsonOf(page, page === source ? text : undefined) };
  }
  const read = checkedAd(cleaned(format.toAd(record, values)));
  // What an API says is stored as it is.
  const ad = format === apiFormat ? read : withPastLastSeen(read, values);
  return { ad, json: jsonOf(ad, (ad as object) === source ? text : undefined) };
}

export const tooDeepProblem = `nested deeper than ${maxNestingDepth} levels`;

export const unknownFormatProblem =
  'neither an ad (id) nor a page (pageId, pageName) nor an ad of the Meta Ad Library (ad_archive_id); the fields are those of the API or of a format in "library import --help"';

/** The same value where it has no access token. */
function cleaned<Value extends object>(value: Value): Value {
  return hasAccessToken(value) ? (removeAccessTokensDeep(value) as Value) : value;
}

function jsonOf(value: object, text = JSON.stringify(value)): string {
  if (text.length > maxRecordLength) throw new Error(tooLongProblem);
  return text;
}

function checkedAd(value: object): Ad {
  // The parsed copy has no other values than the object, and the object may be stored as it is written.
  const ad = checked(Ad, value);
  if (!isUuid(ad.id)) throw new Error(`id: an ad's id is a UUID; got "${ad.id.slice(0, 50)}"`);
  if (ad.pageId) checkPageId(ad.pageId);
  return ad;
}

function checkedPage(value: object): Page {
  const page = checked(Page, value);
  checkPageId(page.pageId);
  return page;
}

/** With such an id, no call could ask for the page later. */
function checkPageId(id: string): void {
  if (isPathId(id) && !/\p{Cc}/u.test(id)) return;
  throw new Error(
    `pageId: cannot be asked for; a page id has 1 to ${maxIdLength} characters, no control characters, and is not "." or ".."`,
  );
}

/** Nobody has seen an ad after the import. */
function withPastLastSeen(ad: Ad, { now, valueErrors: rejected }: ColumnValueParser): Ad {
  const lastSeen = parseTime(ad.lastSeenAt);
  if (lastSeen === undefined || lastSeen <= now) return ad;
  rejected.push(
    new Error(`lastSeenAt: ${quoteValue(ad.lastSeenAt)} is after the import, so the time of the import is stored`),
  );
  return { ...ad, lastSeenAt: new Date(now).toISOString() };
}

const dates = ['startedAt', 'lastSeenAt', 'endDate', 'productCreatedAt', 'pageCreatedAt', 'createdAt'];
const isoDate = /^(\d{4}-\d\d-\d\d)(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)? ?(?:Z|[+-]\d\d(?::?\d\d)?)?)?$/i;
const counts = [
  ...['duplicates', 'audienceReach', 'adSpendMin', 'adSpendMax', 'revenueMin', 'revenueMax'],
  ...['impressionsMin', 'impressionsMax', 'audienceSizeMin', 'audienceSizeMax', 'adsAmount', 'adsTotalDuplicates'],
  ...['averageDuplicates', 'pageLikes', 'pageIgFollowers'],
];

/** Returns the value itself. */
function checked<Item extends Record<string, unknown>>(schema: z.ZodType<Item>, value: object): Item {
  const result = schema.safeParse(value);
  if (!result.success) {
    const problems = result.error.issues.slice(0, 5).map(({ path, message }) => `${path.join('.')}: ${message}`);
    throw new Error(problems.join('; '));
  }
  const item = value as Item;
  for (const key of dates) {
    const date = item[key];
    if (typeof date === 'string' && !isIsoDate(date)) {
      throw new Error(`${key}: not an ISO 8601 date-time; got ${quoteValue(date)}`);
    }
  }
  for (const key of counts) {
    const count = item[key];
    if (typeof count === 'number' && count < 0) throw new Error(`${key}: ${count} is below 0`);
  }
  return item;
}

function isIsoDate(text: string): boolean {
  const [, day] = isoDate.exec(text.trim()) ?? [];
  const time = parseTime(day);
  // JavaScript reads 30 February as 2 March.
  return time !== undefined && parseTime(text) !== undefined && new Date(time).toISOString().startsWith(day ?? '');
}
