import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';
import { chartKinds } from '../charts/chart-kinds.ts';
import {
  assertRecordLimit,
  createTooLargeError,
  parseNamedRecords,
  type RecordsById,
  type UserRecords,
} from '../storage/user-records.ts';
import { formatDay } from '../views/dates.ts';

const Section = z.object({
  heading: z.string(),
  text: z.string().optional(),
  /** When the text was written, in milliseconds since the epoch. */
  textAt: z.number(),
  sql: z.string().optional(),
  chart: z.enum(chartKinds).optional(),
  adIds: z.array(z.string()).optional(),
});

/** The cells of a section with one row, by their columns. Numbers are its figures, and texts say what they measure. */
const Row = z.record(z.string(), z.union([z.number(), z.string()]));
type Row = z.infer<typeof Row>;

/** One writing of the report: the row of each section, null for a section without exactly one row. */
const Run = z.object({ at: z.number(), rows: z.array(Row.nullable()) });
type ReportRun = z.infer<typeof Run>;

const ReportRecord = z.object({
  title: z.string(),
  sections: z.array(Section),
  /** The last run, and the last one of an earlier day, the newest first. */
  runs: z.array(Run),
});

export const parseReports = (records: RecordsById) => parseNamedRecords(records, ReportRecord);
export type SavedReport = ReturnType<typeof parseReports>[number];

/**
 * Returns the last run of an earlier day. A report may be written twice on one day, first for its figures, then with
 * texts about them.
 */
export const findPreviousRun = ({ runs }: Pick<SavedReport, 'runs'>, now: number): ReportRun | undefined =>
  runs.find(({ at }) => formatDay(at) !== formatDay(now));

/** Characters of a report as JSON without its rows, and of one row: the rows of two runs fit beside the largest report. */
const maxChars = 48 * 1024;
const maxRowChars = 400;

/** Returns the row that a run stores of a section. Null for a row that is too long: its figures are not compared. */
export function buildStoredRow(columns: readonly string[], row: readonly unknown[]): Row | null {
  const cells = Object.fromEntries(
    columns.flatMap((name, index) => {
      const cell = row[index];
      return typeof cell === 'number' || typeof cell === 'string' ? [[name, cell]] : [];
    }),
  );
  return JSON.stringify(cells).length > maxRowChars ? null : cells;
}

/**
 * Returns the figures of an earlier row, by their columns, if they measure the same as those of the row of today: all
 * texts of both rows have to be equal. A row that now names another advertiser has no earlier figures.
 */
export function selectComparableFigures(
  earlier: Row | null | undefined,
  now: Row | null,
): Record<string, number> | undefined {
  if (!earlier || !now || !isDeepStrictEqual(textsIn(earlier), textsIn(now))) return;
  const figures = Object.entries(earlier).filter((cell): cell is [string, number] => typeof cell[1] === 'number');
  return figures.length > 0 ? Object.fromEntries(figures) : undefined;
}

const textsIn = (row: Row) => new Map(Object.entries(row).filter(([, cell]) => typeof cell === 'string'));

/** @throws AdLibraryError for a report that cannot be kept, before it is made */
export async function checkReportFits(userRecords: UserRecords, { name, title, sections }: Omit<SavedReport, 'runs'>) {
  if (JSON.stringify({ title, sections }).length > maxChars) throw createTooLargeError('report', maxChars);
  const kept = await userRecords.read('report');
  assertRecordLimit('report', kept.size, kept.size + Number(!kept.has(name)));
}

/** Keeps a report with its last run, unless it was removed while it was written again. */
export function saveReport(userRecords: UserRecords, { name, ...report }: SavedReport, isAgain: boolean) {
  return userRecords.update('report', (records) => ({
    put: isAgain && !records.has(name) ? [] : [[name, report]],
    result: undefined,
  }));
}
