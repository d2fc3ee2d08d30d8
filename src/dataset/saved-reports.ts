import * as z from 'zod';
import { invalidRequest } from '../api/errors.ts';
import { isNear, nearestFirst } from '../api/nearest.ts';
import { chartKinds } from '../charts/kinds.ts';
import { namedRecords, type RecordsById, requireRoom, tooLarge, type UserRecords } from '../storage/user-records.ts';
import { dayOf } from '../views/dates.ts';
import { quote } from '../views/safe-text.ts';
import { untrustedText } from '../views/tokens.ts';
import { cleanLabel } from './labels.ts';

const Section = z.object({
  heading: z.string(),
  text: z.string().optional(),
  /** When the text was written, in milliseconds since the epoch. */
  textAt: z.number(),
  sql: z.string().optional(),
  chart: z.enum(chartKinds).optional(),
  adIds: z.array(z.string()).optional(),
});

/** The numbers of each section that had one row, by their columns. */
const Run = z.object({ at: z.number(), rows: z.array(z.record(z.string(), z.number()).nullable()) });
type ReportRun = z.infer<typeof Run>;

const ReportRecord = z.object({
  title: z.string(),
  sections: z.array(Section),
  /** The last run, and the last one of an earlier day, the newest first. */
  runs: z.array(Run),
});

export const reportsIn = (records: RecordsById) => namedRecords(records, ReportRecord);
export type SavedReport = ReturnType<typeof reportsIn>[number];

/** The last run of another day: a report may be written twice a day, first for its figures, then with texts. */
export const runBefore = ({ runs }: Pick<SavedReport, 'runs'>, now: number): ReportRun | undefined =>
  runs.find(({ at }) => dayOf(at) !== dayOf(now));

/** Characters of a report as JSON without its figures, and of the figures of one section: two runs of them fit beside it. */
const maxChars = 48 * 1024;
const maxRowChars = 400;

/** What is kept of a section with one row. A row of very many numbers is not compared. */
export function figuresIn(columns: readonly string[], row: readonly unknown[]): Record<string, number> | null {
  const figures = Object.fromEntries(
    columns.flatMap((name, index) => (typeof row[index] === 'number' ? [[name, row[index]]] : [])),
  );
  return JSON.stringify(figures).length > maxRowChars ? null : figures;
}

/** @throws AdLibraryError for a report that cannot be kept, before it is made */
export async function checkRoom(userRecords: UserRecords, { name, title, sections }: Omit<SavedReport, 'runs'>) {
  if (JSON.stringify({ title, sections }).length > maxChars) throw tooLarge('report', maxChars);
  const kept = await userRecords.read('report');
  requireRoom('report', kept.size, kept.size + Number(!kept.has(name)));
}

/** Keeps a report with its last run, unless it was removed while it was written again. */
export function saveReport(userRecords: UserRecords, { name, ...report }: SavedReport, isAgain: boolean) {
  return userRecords.update('report', (records) => ({
    put: isAgain && !records.has(name) ? [] : [[name, report]],
    result: undefined,
  }));
}

export function findNamed<Named extends { name: string }>(kind: string, kept: readonly Named[], names: string[]) {
  const savedNames = kept.map(({ name }) => name);
  return [...new Set(names.map(cleanLabel))].map((name) => {
    const one = kept.find((other) => other.name === name);
    if (one) return one;
    const [nearest = ''] = nearestFirst(name, savedNames);
    const hint = isNear(name, nearest)
      ? `Did you mean ${quote(nearest)}?`
      : `Kept: ${savedNames.slice(0, 20).map(quote).join(', ') || 'none'}.`;
    throw invalidRequest(`There is no ${kind} ${untrustedText(name, 30)}. ${hint}`);
  });
}
