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

/** Schema of a section of a stored report. The results of its SQL statement are stored separately. */
const StoredSection = z.object({
  heading: z.string(),
  text: z.string().optional(),
  /** The time at which the text was written, in milliseconds since the Unix epoch. */
  textWrittenAt: z.number(),
  sql: z.string().optional(),
  chart: z.enum(chartKinds).optional(),
  adIds: z.array(z.string()).optional(),
});

/**
 * Schema of the only row that the SQL statement of a section returned, by column name. Later reports compare their
 * numbers with the numbers in this row. The texts in the row say what the numbers measure, e.g. an advertiser's name.
 */
const StoredRow = z.record(z.string(), z.union([z.number(), z.string()]));
type StoredRow = z.infer<typeof StoredRow>;

/**
 * Schema of one run of a report: its time in milliseconds since the Unix epoch, and one row per section. The row is
 * null if the section did not return exactly one row.
 */
const StoredRun = z.object({ writtenAt: z.number(), rows: z.array(StoredRow.nullable()) });
type StoredRun = z.infer<typeof StoredRun>;

const ReportRecord = z.object({
  title: z.string(),
  sections: z.array(StoredSection),
  /**
   * The last run of the report, followed by the last run of an earlier day. A report compares its figures with the
   * figures of an earlier day.
   */
  runs: z.array(StoredRun),
});

/** Parses stored reports. Skips records that do not match the schema. */
export const parseReports = (records: RecordsById) => parseNamedRecords(records, ReportRecord);
/** A stored report with its name. */
export type SavedReport = ReturnType<typeof parseReports>[number];

/**
 * Returns the last run of a report on an earlier day. Skips runs of the same day, because a report is often written
 * twice: first to get its figures, then with texts about them.
 */
export const findRunOfEarlierDay = ({ runs }: Pick<SavedReport, 'runs'>, now: number): StoredRun | undefined =>
  runs.find(({ writtenAt }) => formatDay(writtenAt) !== formatDay(now));

/**
 * The maximum size of a report without its rows, in characters of JSON. Together with `maxRowChars`, this limit ensures
 * that the largest report fits in one record with the rows of two runs.
 */
const maxReportChars = 48 * 1024;
/** The maximum size of a stored row, in characters of JSON. A longer row is not stored. */
const maxRowChars = 400;

/**
 * Converts a row to its stored form. Returns null for a row that is too long to store; later runs then have no figures
 * for comparison.
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
 * Returns the numbers of an earlier row by column name. Returns undefined unless both rows contain the same texts,
 * because rows about different advertisers, for example, are not comparable.
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
 * Checks that a report can be stored, before it is written to a file.
 * @throws AdLibraryError `invalid_request` if the report is too large, or if there are too many reports
 */
export async function assertCanStoreReport(
  userRecords: UserRecords,
  { name, title, sections }: Omit<SavedReport, 'runs'>,
) {
  if (JSON.stringify({ title, sections }).length > maxReportChars) throw createTooLargeError('report', maxReportChars);
  const storedReports = await userRecords.read('report');
  assertRecordLimit('report', storedReports.size, storedReports.size + Number(!storedReports.has(name)));
}

/**
 * Stores a report together with its latest run. If `isRewrite` is true, stores nothing when the report has been removed
 * in the meantime. Otherwise, replaces a stored report of the same name, and returns true if there is one.
 */
export function saveReport(userRecords: UserRecords, { name, ...report }: SavedReport, isRewrite: boolean) {
  return userRecords.update('report', (records) => ({
    put: isRewrite && !records.has(name) ? [] : [[name, report]],
    result: !isRewrite && records.has(name),
  }));
}
