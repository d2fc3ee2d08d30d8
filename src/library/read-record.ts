import type * as z from 'zod';
import { isPathId, maxIdLength } from '../api/call.ts';
import { Ad, Page } from '../api/schemas.ts';
import { timeOf } from '../present/dates.ts';
import { isReportRow, pageOfReport } from './advertiser-report.ts';
import { isJsonObject, isTooDeep, maxDepth } from './loose-values.ts';
import { maxRecordLength, type Piece, tooLong } from './piece.ts';
import { adFromPublicArchive, isPublicArchiveAd } from './public-archive.ts';
import { isUuid } from './request.ts';

/** A checked record. `json` is the text to store: what stands on one line is kept as it was written. */
export type Entry = { ad: Ad; json: string; fromPublicArchive: boolean } | { page: Page; json: string };

/**
 * `pageById` finds a page that is stored already.
 * @throws Error that says what is wrong; it begins with the key, if it is about one
 */
export function readEntry(piece: Piece, pageById: (id: string) => Page | undefined): Entry {
  if ('problem' in piece) throw new Error(piece.problem);
  const value = 'text' in piece ? parsed(piece.text) : piece.value;
  if (!isJsonObject(value)) throw new Error('not a JSON object; a record is an ad or a page');
  if (isTooDeep(value)) throw new Error(`nested deeper than ${maxDepth} levels`);
  if (isPublicArchiveAd(value)) {
    const ad = checkedAd(adFromPublicArchive(value));
    return { ad, json: withinLength(JSON.stringify(ad)), fromPublicArchive: true };
  }
  if ('value' in piece && isReportRow(value)) {
    const page = pageOfReport(value, pageById);
    checkPageId('Page ID', page.pageId);
    return { page, json: withinLength(JSON.stringify(page)) };
  }
  const json = withinLength('text' in piece && !piece.text.includes('\n') ? piece.text : JSON.stringify(value));
  if ('id' in value) return { ad: checkedAd(value), json, fromPublicArchive: false };
  if ('pageId' in value) {
    const page = checked(Page, value);
    checkPageId('pageId', page.pageId);
    return { page, json };
  }
  throw new Error(
    'neither an ad (id) nor a page (pageId, pageName) nor an ad of the public ad library (ad_archive_id); a list of records stands alone or under "data" or "items"',
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error('not JSON; "library import --help" names the formats');
  }
}

function withinLength(json: string): string {
  if (json.length > maxRecordLength) throw new Error(tooLong);
  return json;
}

function checkedAd(value: unknown): Ad {
  const ad = checked(Ad, value);
  if (!isUuid(ad.id)) throw new Error(`id: an ad's id is a UUID; got "${ad.id.slice(0, 50)}"`);
  if (ad.pageId) checkPageId('pageId', ad.pageId);
  return ad;
}

/** No call could ask for the page later. */
function checkPageId(key: string, id: string): void {
  if (isPathId(id) && !/\p{Cc}/u.test(id)) return;
  throw new Error(
    `${key}: cannot be asked for; a page id has 1 to ${maxIdLength} characters, no control characters, and is not "." or ".."`,
  );
}

const dates = ['startedAt', 'lastSeenAt', 'endDate', 'productCreatedAt', 'pageCreatedAt', 'createdAt'];

function checked<Item extends Record<string, unknown>>(schema: z.ZodType<Item>, value: unknown): Item {
  const result = schema.safeParse(value);
  if (!result.success) {
    throw new Error(
      result.error.issues
        .slice(0, 5)
        .map(({ path, message }) => `${path.join('.')}: ${message}`)
        .join('; '),
    );
  }
  for (const key of dates) {
    const date = result.data[key];
    if (typeof date === 'string' && timeOf(date) === undefined) throw new Error(`${key}: not an ISO 8601 date-time`);
  }
  return result.data;
}
