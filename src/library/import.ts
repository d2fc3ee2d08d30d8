import { setImmediate as nextTurn } from 'node:timers/promises';
import type * as z from 'zod';
import { Ad, Page } from '../api/schemas.ts';
import { adFromPublicArchive, isPublicArchiveAd } from './public-archive.ts';
import { isUuid } from './request.ts';
import type { Shop } from './shop.ts';

export type ImportReport = {
  lines: number;
  ads: number;
  pages: number;
  /** Of the ads, those that came in the JSON of the public ad library. */
  fromPublicArchive: number;
  skipped: number;
  /** The first of the skipped, with why. */
  problems: { line: number; problem: string }[];
};

const mostProblems = 50;
/** Large enough that waiting for the disk once a batch is little, small enough that nobody else waits for long. */
const batchSize = 500;
const longestLine = 8 * 1024 * 1024;

type Line = { number: number; text: string | null };
/** A checked record; `json` is the line itself, so that what is read back is what was written. */
type Found = { ad: Ad } | { page: Page };
type Entry = Found & { json: string };

/**
 * Loads records, one JSON text a line: ads and pages in the API's shapes, or ads of the public ad library. A line may
 * also hold an array of records, or an object with such an array in `data`. The same id replaces; a bad line is
 * reported and skipped. Memory is bounded by the longest line and one batch; every batch is one transaction, after
 * which other work of the process gets its turn.
 */
export async function importLines(
  { database, records }: Pick<Shop, 'database' | 'records'>,
  source: AsyncIterable<string | Uint8Array>,
): Promise<ImportReport> {
  const report: ImportReport = { lines: 0, ads: 0, pages: 0, fromPublicArchive: 0, skipped: 0, problems: [] };
  let batch: Entry[] = [];
  const flush = async () => {
    database.transaction(() => {
      for (const entry of batch)
        'ad' in entry ? records.putAd(entry.ad, entry.json) : records.putPage(entry.page, entry.json);
    });
    for (const entry of batch) 'ad' in entry ? report.ads++ : report.pages++;
    batch = [];
    await nextTurn();
  };
  for await (const line of linesOf(source)) {
    report.lines++;
    for (const entry of entriesOf(line, report)) batch.push(entry);
    if (batch.length >= batchSize) await flush();
  }
  await flush();
  return report;
}

function* entriesOf(line: Line, report: ImportReport): Generator<Entry> {
  const skip = (problem: string) => {
    report.skipped++;
    if (report.problems.length < mostProblems) report.problems.push({ line: line.number, problem });
  };
  if (line.text === null) return skip(`longer than ${longestLine} characters`);
  let value: unknown;
  try {
    value = JSON.parse(line.text);
  } catch {
    return skip('not JSON; every line takes one whole record');
  }
  const many = Array.isArray(value) ? value : isObject(value) && Array.isArray(value.data) ? value.data : undefined;
  for (const one of many ?? [value]) {
    try {
      const { mapped, ...found } = readRecord(one);
      if (mapped) report.fromPublicArchive++;
      const json = mapped && 'ad' in found ? JSON.stringify(found.ad) : many ? JSON.stringify(one) : line.text;
      yield { ...found, json };
    } catch (error) {
      skip(error instanceof Error ? error.message : String(error));
    }
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function readRecord(value: unknown): Found & { mapped?: boolean } {
  if (!isObject(value)) throw new Error('not a JSON object');
  if (isPublicArchiveAd(value)) return { ad: checked(Ad, adFromPublicArchive(value)), mapped: true };
  if ('id' in value) {
    const ad = checked(Ad, value);
    if (!isUuid(ad.id)) throw new Error(`id: an ad's id is a UUID; got "${ad.id.slice(0, 50)}"`);
    return { ad };
  }
  if ('pageId' in value) return { page: checked(Page, value) };
  throw new Error(
    'neither an ad (id) nor a page (pageId, pageName) nor an ad of the public ad library (ad_archive_id)',
  );
}

const dates = ['startedAt', 'lastSeenAt', 'endDate', 'productCreatedAt', 'pageCreatedAt', 'createdAt'];

function checked<Item extends Record<string, unknown>>(schema: z.ZodType<Item>, value: unknown): Item {
  const result = schema.safeParse(value);
  if (!result.success) {
    throw new Error(result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; '));
  }
  for (const key of dates) {
    const date = result.data[key];
    if (typeof date === 'string' && Number.isNaN(Date.parse(date)))
      throw new Error(`${key}: not an ISO 8601 date-time`);
  }
  return result.data;
}

/** Lines that are not blank, in chunks of any size; `text` is null for one that is too long to be kept. */
async function* linesOf(source: AsyncIterable<string | Uint8Array>): AsyncGenerator<Line> {
  const decoder = new TextDecoder();
  const state = { rest: '', number: 0, tooLong: false };
  const take = (text: string): Line[] => {
    state.number++;
    const trimmed = state.tooLong ? null : text.trim();
    state.tooLong = false;
    return trimmed === '' ? [] : [{ number: state.number, text: trimmed }];
  };
  for await (const chunk of source) {
    const [first = '', ...others] = (typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true })).split(
      '\n',
    );
    state.rest += first;
    for (const next of others) {
      yield* take(state.rest);
      state.rest = next;
    }
    if (state.rest.length > longestLine) {
      state.tooLong = true;
      state.rest = '';
    }
  }
  if (state.rest !== '' || state.tooLong) yield* take(state.rest);
}
