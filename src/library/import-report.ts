import type { Piece } from './piece.ts';

export type ImportReport = {
  ads: number;
  pages: number;
  /** Of the ads and pages, those that updated an earlier record, also one of the same import. */
  updated: number;
  /** Of the ads, those that came in a format of the public ad library. */
  fromPublicArchive: number;
  skipped: number;
  /** The first that were skipped, each with the reason. `path` is where it is in a document, empty for a line. */
  problems: { line: number; path: string; problem: string }[];
  /** How many of the others were skipped for which reason. */
  reasons: Record<string, number>;
  /** What was not skipped and is still not as it was in the file. */
  notes: string[];
};

const maxProblems = 50;
const maxProblemLength = 500;
const maxReasons = 20;
const otherReasons = 'other reasons';

export const emptyReport = (): ImportReport => ({
  ads: 0,
  pages: 0,
  updated: 0,
  fromPublicArchive: 0,
  skipped: 0,
  problems: [],
  reasons: {},
  notes: [],
});

export function addProblem(report: ImportReport, { line, path }: Pick<Piece, 'line' | 'path'>, error: unknown): void {
  const problem = (error instanceof Error ? error.message : String(error)).slice(0, maxProblemLength);
  report.skipped++;
  if (report.problems.length < maxProblems) {
    report.problems.push({ line, path, problem });
    return;
  }
  const [reason = ''] = problem.split(';', 1);
  const isFull = !Object.hasOwn(report.reasons, reason) && Object.keys(report.reasons).length >= maxReasons;
  const counted = isFull ? otherReasons : reason;
  report.reasons[counted] = (report.reasons[counted] ?? 0) + 1;
}
