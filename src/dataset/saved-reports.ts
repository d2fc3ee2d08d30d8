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

/** A section of a stored report. */
const Section = z.object({
  heading: z.string(),
  text: z.string().optional(),
  /** When the text was written, in milliseconds since the epoch. */
  textAt: z.number(),
  sql: z.string().optional(),
  chart: z.enum(chartKinds).optional(),
  adIds: z.array(z.string()).optional(),
});

/**
 * The cells of a section with exactly one row, by column. Numbers are figures, and texts say what the figures measure.
 */
const Row = z.record(z.string(), z.union([z.number(), z.string()]));
type Row = z.infer<typeof Row>;

/**
 * One run of the report: its time in milliseconds since the epoch, and the row of each section. A section without
 * exactly one row has null.
 */
const Run = z.object({ at: z.number(), rows: z.array(Row.nullable()) });
type ReportRun = z.infer<typeof Run>;

const ReportRecord = z.object({
  title: z.string(),
  sections: z.array(Section),
  /** The last run and the last run of an earlier day, the newest first. */
  runs: z.array(Run),
});

/** Parses the stored reports. Records that do not match are left out. */
export const parseReports = (records: RecordsById) => parseNamedRecords(records, ReportRecord);
/** A stored report with its name. */
export type SavedReport = ReturnType<typeof parseReports>[number];

/**
 * Returns the last run of an earlier day. A report may be written twice on one day, first for its figures, then with
 * texts about them.
 */
export const findPreviousRun = ({ runs }: Pick<SavedReport, 'runs'>, now: number): ReportRun | undefined =>
  runs.find(({ at }) => formatDay(at) !== formatDay(now));

/**
 * The most characters of a report as JSON without its rows, and of one row as JSON. Together with the rows of two runs,
 * the largest report still fits into a record.
 */
const maxReportChars = 48 * 1024;
const maxRowChars = 400;

/**
 * Returns the row of a section in the form in which a run stores it. Returns null for a row that is too long to store;
 * its figures are not compared.
 */
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
 * Returns the figures of an earlier row by column, if they measure the same as the current row. They do if all texts of
 * both rows are equal: a row that now names another advertiser has no earlier figures.
 */
export function selectComparableFigures(
  earlier: Row | null | undefined,
  now: Row | null,
): Record<string, number> | undefined {
  if (!earlier || !now || !isDeepStrictEqual(selectTexts(earlier), selectTexts(now))) return;
  const figures = Object.entries(earlier).filter((cell): cell is [string, number] => typeof cell[1] === 'number');
  return figures.length > 0 ? Object.fromEntries(figures) : undefined;
}

const selectTexts = (row: Row) => new Map(Object.entries(row).filter(([, cell]) => typeof cell === 'string'));

/**
 * Checks that a report can be stored, before the report is made.
 * @throws AdLibraryError if the report is too large, or if there are too many reports
 */
export async function checkReportFits(userRecords: UserRecords, { name, title, sections }: Omit<SavedReport, 'runs'>) {
  if (JSON.stringify({ title, sections }).length > maxReportChars) throw createTooLargeError('report', maxReportChars);
  const storedReports = await userRecords.read('report');
  assertRecordLimit('report', storedReports.size, storedReports.size + Number(!storedReports.has(name)));
}

/** Stores a report with its last run. A report that was removed while it was being written again stays removed. */
export function saveReport(userRecords: UserRecords, { name, ...report }: SavedReport, isAgain: boolean) {
  return userRecords.update('report', (records) => ({
    put: isAgain && !records.has(name) ? [] : [[name, report]],
    result: undefined,
  }));
}
