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

/** A section of a stored report. The results of its SQL statement are stored separately. */
const StoredSection = z.object({
  heading: z.string(),
  text: z.string().optional(),
  /** Time at which the text was written, in milliseconds since the Unix epoch. */
  textAt: z.number(),
  sql: z.string().optional(),
  chart: z.enum(chartKinds).optional(),
  adIds: z.array(z.string()).optional(),
});

/**
 * The single row that the SQL statement of a section returned, by column. Numbers are figures to compare with later
 * reports; texts say what the figures measure.
 */
const StoredRow = z.record(z.string(), z.union([z.number(), z.string()]));
type StoredRow = z.infer<typeof StoredRow>;

/**
 * One run of a report: its time in milliseconds since the Unix epoch, and one row per section. The row is null if the
 * section did not return exactly one row.
 */
const StoredRun = z.object({ at: z.number(), rows: z.array(StoredRow.nullable()) });
type StoredRun = z.infer<typeof StoredRun>;

const ReportRecord = z.object({
  title: z.string(),
  sections: z.array(StoredSection),
  /** The last run, followed by the last run on an earlier day. */
  runs: z.array(StoredRun),
});

/** Parses stored reports. Records that do not match the schema are skipped. */
export const parseReports = (records: RecordsById) => parseNamedRecords(records, ReportRecord);
/** A stored report with its name. */
export type SavedReport = ReturnType<typeof parseReports>[number];

/**
 * Returns the last run of an earlier day. Skips runs of the same day, because a report is often written twice: first to
 * get its figures, then with texts about them.
 */
export const findPreviousRun = ({ runs }: Pick<SavedReport, 'runs'>, now: number): StoredRun | undefined =>
  runs.find(({ at }) => formatDay(at) !== formatDay(now));

/**
 * Maximum size of a report without its rows, in characters of JSON. With both limits, the largest report fits in one
 * record together with the rows of two runs.
 */
const maxReportChars = 48 * 1024;
/** Maximum size of a stored row, in characters of JSON. */
const maxRowChars = 400;

/**
 * Converts a row to its stored form. Returns null for a row that is too long to store; later runs then have no figures
 * to compare.
 */
export function buildStoredRow(columns: readonly string[], row: readonly unknown[]): StoredRow | null {
  const cells = Object.fromEntries(
    columns.flatMap((name, index) => {
      const cell = row[index];
      return typeof cell === 'number' || typeof cell === 'string' ? [[name, cell]] : [];
    }),
  );
  return JSON.stringify(cells).length > maxRowChars ? null : cells;
}

/**
 * Returns the numbers of an earlier row by column. Returns undefined unless the texts of both rows are equal. For
 * example, rows about different advertisers are not comparable.
 */
export function selectComparableFigures(
  earlierRow: StoredRow | null | undefined,
  currentRow: StoredRow | null,
): Record<string, number> | undefined {
  if (!earlierRow || !currentRow || !isDeepStrictEqual(selectTexts(earlierRow), selectTexts(currentRow))) return;
  const figures = Object.entries(earlierRow).filter((cell): cell is [string, number] => typeof cell[1] === 'number');
  return figures.length > 0 ? Object.fromEntries(figures) : undefined;
}

const selectTexts = (row: StoredRow) => new Map(Object.entries(row).filter(([, cell]) => typeof cell === 'string'));

/**
 * Checks that a report can be stored. Called before the report is written to a file.
 * @throws AdLibraryError `invalid_request` if the report is too large, or if there are too many reports
 */
export async function checkReportFits(userRecords: UserRecords, { name, title, sections }: Omit<SavedReport, 'runs'>) {
  if (JSON.stringify({ title, sections }).length > maxReportChars) throw createTooLargeError('report', maxReportChars);
  const storedReports = await userRecords.read('report');
  assertRecordLimit('report', storedReports.size, storedReports.size + Number(!storedReports.has(name)));
}

/**
 * Stores a report together with its latest run. Stores nothing if `isRewrite` is true but the report has been removed
 * meanwhile.
 */
export function saveReport(userRecords: UserRecords, { name, ...report }: SavedReport, isRewrite: boolean) {
  return userRecords.update('report', (records) => ({
    put: isRewrite && !records.has(name) ? [] : [[name, report]],
    result: undefined,
  }));
}
