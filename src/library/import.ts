import { setImmediate as nextTurn } from 'node:timers/promises';
import type * as z from 'zod';
import { Ad, Page } from '../api/schemas.ts';
import { loadAdLanguage } from './ad-language.ts';
import { isJsonObject, isTooDeep, maxDepth } from './json.ts';
import { adFromPublicArchive, isPublicArchiveAd } from './public-archive.ts';
import { isUuid } from './request.ts';
import type { ServiceContext } from './service-context.ts';

export type ImportReport = {
  lines: number;
  ads: number;
  pages: number;
  /** Of the ads, those that came in the JSON of the public ad library. */
  fromPublicArchive: number;
  skipped: number;
  /** The first skipped records, each with the reason. */
  problems: { line: number; problem: string }[];
};

const maxProblems = 50;
const maxProblemLength = 500;
const maxLineLength = 8 * 1024 * 1024;
const maxRecordLength = 1024 * 1024;
/** Milliseconds of work per transaction, after which other callers get a turn. */
const sliceMs = 50;
/** Characters of lines read ahead. */
const batchLength = 1024 * 1024;

type Line = { number: number; text: string | null };
/** A checked record. `json` is the line itself, so that records are read back exactly as they were written. */
type ParsedRecord = { ad: Ad } | { page: Page };
type Entry = ParsedRecord & { json: string };

/**
 * Loads JSON Lines: ads and pages in the API's shapes, or ads of the public ad library. A line may also hold an array
 * of records, or an object with such an array in `data`. A record replaces one with the same id; a bad record is
 * reported and skipped. Memory is bounded by the longest line and one batch. Work is cut into short transactions, and
 * other callers get a turn after each.
 */
export async function importLines(
  { database, records }: Pick<ServiceContext, 'database' | 'records'>,
  source: AsyncIterable<string | Uint8Array>,
): Promise<ImportReport> {
  const report: ImportReport = { lines: 0, ads: 0, pages: 0, fromPublicArchive: 0, skipped: 0, problems: [] };
  const withLanguage = await loadAdLanguage();
  const put = (entry: Entry) => {
    if ('ad' in entry) {
      records.putAd(withLanguage(entry.ad), entry.json);
      report.ads++;
    } else {
      records.putPage(entry.page, entry.json);
      report.pages++;
    }
  };
  for await (const lines of batchesOf(linesOf(source))) {
    report.lines += lines.length;
    const entries = entriesOf(lines, report);
    for (let done = false; !done; ) {
      const end = performance.now() + sliceMs;
      database.unsynced(() => {
        while (!done && performance.now() < end) {
          const next = entries.next();
          if (next.done) done = true;
          else if (next.value) put(next.value);
        }
      });
      await nextTurn();
    }
  }
  database.sync();
  return report;
}

async function* batchesOf(lines: AsyncIterable<Line>): AsyncGenerator<Line[]> {
  let batch: Line[] = [];
  let length = 0;
  for await (const line of lines) {
    batch.push(line);
    length += line.text?.length ?? 0;
    if (length < batchLength) continue;
    yield batch;
    batch = [];
    length = 0;
  }
  yield batch;
}

/** One step per record. Skipped records give `undefined`, because skipping takes time too. */
function* entriesOf(lines: Line[], report: ImportReport): Generator<Entry | undefined, void> {
  for (const { number, text } of lines) {
    const skip = (error: unknown) => {
      report.skipped++;
      if (report.problems.length === maxProblems) return;
      const problem = error instanceof Error ? error.message : String(error);
      report.problems.push({ line: number, problem: problem.slice(0, maxProblemLength) });
    };
    for (const read of recordsOf(text)) {
      try {
        const { mapped, ...entry } = read();
        if (mapped) report.fromPublicArchive++;
        yield entry;
      } catch (error) {
        skip(error);
        yield undefined;
      }
    }
  }
}

/** The records of a line, as functions that read one each. */
function* recordsOf(text: string | null): Generator<() => Entry & { mapped?: boolean }> {
  if (text === null) return yield fail(`longer than ${maxLineLength} characters`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return yield fail('not JSON; every line takes one whole record');
  }
  const many = Array.isArray(value) ? value : isJsonObject(value) && Array.isArray(value.data) ? value.data : undefined;
  if (!many) return yield () => readEntry(value, text);
  for (const one of many) yield () => readEntry(one);
}

const fail = (problem: string) => () => {
  throw new Error(problem);
};

function readEntry(value: unknown, text?: string): Entry & { mapped?: boolean } {
  const found = readRecord(value);
  const json = found.mapped && 'ad' in found ? JSON.stringify(found.ad) : (text ?? JSON.stringify(value));
  if (json.length > maxRecordLength) throw new Error(`a record of more than ${maxRecordLength} characters`);
  return { ...found, json };
}

function readRecord(value: unknown): ParsedRecord & { mapped?: boolean } {
  if (!isJsonObject(value)) throw new Error('not a JSON object');
  if (isTooDeep(value)) throw new Error(`nested deeper than ${maxDepth} levels`);
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
    throw new Error(
      result.error.issues
        .slice(0, 5)
        .map(({ path, message }) => `${path.join('.')}: ${message}`)
        .join('; '),
    );
  }
  for (const key of dates) {
    const date = result.data[key];
    if (typeof date === 'string' && Number.isNaN(Date.parse(date)))
      throw new Error(`${key}: not an ISO 8601 date-time`);
  }
  return result.data;
}

/** The lines that are not blank; `text` is null for a line that is too long. */
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
    if (state.rest.length > maxLineLength) {
      state.tooLong = true;
      state.rest = '';
    }
  }
  if (state.rest !== '' || state.tooLong) yield* take(state.rest);
}
