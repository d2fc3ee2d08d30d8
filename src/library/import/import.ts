import { setImmediate as nextTurn } from 'node:timers/promises';
import type * as z from 'zod';
import { Ad, Page } from '../../api/schemas.ts';
import { isPathId, maxIdLength } from '../../api/url.ts';
import { timeOf } from '../../views/dates.ts';
import { isObject } from '../../views/view.ts';
import type { Database } from '../database/database.ts';
import { loadAdLanguage, type Records } from '../database/records.ts';
import { isTooDeep, isUuid, maxDepth } from '../service/request.ts';
import { countReason } from './pictures.ts';
import { adFromPublicArchive, isPublicArchiveAd } from './public-archive.ts';
import { maxRecordLength, type Piece, piecesOf, tooLong, UnreadableSource } from './sources.ts';

/** Milliseconds of work per transaction, after which other callers get a turn. */
const sliceMs = 50;

export type ImportReport = {
  ads: number;
  pages: number;
  /** Ads and pages that updated an earlier record, which may be of the same import. */
  updated: number;
  fromPublicArchive: number;
  skipped: number;
  /** How the columns of a CSV of one's own ads were understood, for people. */
  columns?: string;
  /** The first records that were skipped, each with the reason. `path` is the place in a document, empty for a line. */
  problems: { line: number; path: string; problem: string }[];
  /** How many further records were skipped, by reason. */
  reasons: Record<string, number>;
};

/**
 * Loads ads and pages in the API's shapes, or in those of the public ad library. A record replaces one with the same id;
 * one that cannot be used is skipped and reported. Memory is bounded by the longest record and a batch of text. Work is
 * cut into short transactions, and other callers get a turn after each.
 */
export async function importRecords(
  { database, records }: { database: Database; records: Records },
  source: AsyncIterable<string | Uint8Array>,
): Promise<ImportReport> {
  const counts = { ads: 0, pages: 0, updated: 0, fromPublicArchive: 0, skipped: 0 };
  const report: ImportReport = { ...counts, problems: [], reasons: {} };
  const withLanguage = await loadAdLanguage();
  let position = { line: 1, path: '' };
  const onColumns = (columns: string) => {
    report.columns = columns;
  };

  function put(piece: Piece): void {
    position = piece;
    let entry: ReturnType<typeof readEntry>;
    try {
      entry = readEntry(piece);
    } catch (error) {
      addProblem(report, piece, error);
      return;
    }
    const { ad, page, json, fromPublicArchive } = entry;
    const isKnown = ad ? records.putAd(withLanguage(ad), json) : records.putPage(page, json);
    if (isKnown) report.updated++;
    report[ad ? 'ads' : 'pages']++;
    if (fromPublicArchive) report.fromPublicArchive++;
  }

  try {
    for await (const some of piecesOf(source, onColumns)) {
      const pieces = some[Symbol.iterator]();
      for (let next = pieces.next(); !next.done; await nextTurn()) {
        const end = performance.now() + sliceMs;
        database.transaction(() => {
          for (; !next.done && performance.now() < end; next = pieces.next()) put(next.value);
        });
      }
    }
  } catch (error) {
    if (!(error instanceof UnreadableSource)) throw error;
    addProblem(report, position, error);
  }
  return report;
}

const maxProblems = 50;
const maxProblemLength = 500;

function addProblem(report: ImportReport, { line, path }: Pick<Piece, 'line' | 'path'>, error: unknown): void {
  const problem = (error instanceof Error ? error.message : String(error)).slice(0, maxProblemLength);
  report.skipped++;
  if (report.problems.length < maxProblems) report.problems.push({ line, path, problem });
  else countReason(report.reasons, problem.split(';', 1)[0] ?? '');
}

/**
 * Checks a record. `json` is the text to store: a record on a line of its own is stored as it was written.
 * @throws Error that says what is wrong; it begins with the key, if it is about one
 */
function readEntry({ text, read }: Piece) {
  const value = read();
  if (!isObject(value)) throw new Error('not a JSON object; a record is an ad or a page');
  if (isTooDeep(value)) throw new Error(`nested deeper than ${maxDepth} levels`);
  if (isPublicArchiveAd(value)) {
    const ad = checkedAd(adFromPublicArchive(value));
    return { ad, json: withinLength(JSON.stringify(ad)), fromPublicArchive: true };
  }
  const json = withinLength(text ?? JSON.stringify(value));
  if ('id' in value) return { ad: checkedAd(value), json };
  if ('pageId' in value) {
    const page = checked(Page, value);
    checkPageId(page.pageId);
    return { page, json };
  }
  throw new Error(
    'neither an ad (id) nor a page (pageId, pageName) nor an ad of the public ad library (ad_archive_id); a list of records stands alone or under "data" or "items"',
  );
}

function withinLength(json: string): string {
  if (json.length > maxRecordLength) throw new Error(tooLong);
  return json;
}

function checkedAd(value: unknown): Ad {
  const ad = checked(Ad, value);
  if (!isUuid(ad.id)) throw new Error(`id: an ad's id is a UUID; got "${ad.id.slice(0, 50)}"`);
  if (ad.pageId) checkPageId(ad.pageId);
  return ad;
}

/** With such an id, no call could ask for the page later. */
function checkPageId(id: string): void {
  if (isPathId(id) && !/\p{Cc}/u.test(id)) return;
  throw new Error(
    `pageId: cannot be asked for; a page id has 1 to ${maxIdLength} characters, no control characters, and is not "." or ".."`,
  );
}

const dates = ['startedAt', 'lastSeenAt', 'endDate', 'productCreatedAt', 'pageCreatedAt', 'createdAt'];

function checked<Item extends Record<string, unknown>>(schema: z.ZodType<Item>, value: unknown): Item {
  const result = schema.safeParse(value);
  if (!result.success) {
    const problems = result.error.issues.slice(0, 5).map(({ path, message }) => `${path.join('.')}: ${message}`);
    throw new Error(problems.join('; '));
  }
  for (const key of dates) {
    const date = result.data[key];
    if (typeof date === 'string' && timeOf(date) === undefined) throw new Error(`${key}: not an ISO 8601 date-time`);
  }
  return result.data;
}
