import { countReason } from './stored-pictures.ts';
import { removeAccessTokens } from './values/access-tokens.ts';
import type { WriteOutcome } from './writer.ts';

/** The result of an import, for people. */
export type ImportReport = {
  /** How many ads were stored, not counting repeated records. */
  ads: number;
  /** How many pages were stored, not counting repeated records. */
  pages: number;
  /** How many of the ads and pages replaced a record that the library contained before this import. */
  updated: number;
  /** How many ads are older than the stored reading of the same ad. They became a part of its history. */
  older: number;
  /** How many records had the id of another record that the same run of imports wrote. */
  repeated: number;
  /** How many ads and pages had each format, not counting repeated records. */
  formats: Record<string, { ads: number; pages: number }>;
  /** How many records were not stored. */
  skipped: number;
  /** Which columns of a table became which fields. */
  columns?: string;
  /** Keys and values that were not understood although their record was stored, each with the number of occurrences. */
  notes: string[];
  /**
   * The first records that were skipped, each with the reason. `path` is the place of the record in a document, and is
   * empty for a record on a line of its own.
   */
  problems: { line: number; path: string; problem: string }[];
  /** For the skipped records that `problems` does not list, the number of records by reason. */
  reasons: Record<string, number>;
};

/** The place of a record in its source. */
interface Place {
  line: number;
  path: string;
}

const maxProblems = 50;
const maxProblemLength = 500;
/** The largest number of different keys that a report counts. */
const maxCountedKeys = 1000;
/** The largest number of keys that a report lists. */
const maxListedKeys = 20;

/** Counts the records of an import, and collects what the import does not understand. */
export class ImportReporter {
  readonly report: ImportReport = {
    ...{ ads: 0, pages: 0, updated: 0, older: 0, repeated: 0, skipped: 0 },
    ...{ formats: {}, notes: [], problems: [], reasons: {} },
  };
  readonly #unusedKeyCounts = new Map<string, number>();
  readonly #valueProblems = new Map<string, { count: number; firstPlace: Place; message: string }>();

  /** Counts a record that was stored. */
  countStored(formatName: string, kind: 'ads' | 'pages', outcome: WriteOutcome): void {
    this.report.formats[formatName] ??= { ads: 0, pages: 0 };
    if (outcome === 'repeated') {
      this.report.repeated++;
      return;
    }
    this.report.formats[formatName][kind]++;
    this.report[kind]++;
    if (outcome === 'updated') this.report.updated++;
    if (outcome === 'older') this.report.older++;
  }

  /** Counts a record that cannot be used, and stores the reason. */
  countSkipped({ line, path }: Place, error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    const problem = removeAccessTokens(message).slice(0, maxProblemLength);
    this.report.skipped++;
    if (this.report.problems.length < maxProblems) this.report.problems.push({ line, path, problem });
    else countReason(this.report.reasons, problem.split(';', 1)[0] ?? '');
  }

  /** Adds a problem that concerns the whole source. */
  addProblem(problem: string): void {
    this.report.problems.push({ line: 0, path: '', problem });
  }

  /** Counts a key that does not belong to any field of an ad. */
  countUnusedKey(key: string): void {
    if (this.#unusedKeyCounts.has(key) || this.#unusedKeyCounts.size < maxCountedKeys)
      this.#unusedKeyCounts.set(key, (this.#unusedKeyCounts.get(key) ?? 0) + 1);
  }

  /**
   * Counts a value that was not understood, if its record was stored without the value.
   * @param message a message that begins with the key. Messages with the same key are counted together.
   */
  countValueProblem(place: Place, message: string): void {
    const key = /^[^:]{1,100}: /.exec(message)?.[0] ?? message;
    const valueProblem = this.#valueProblems.get(key);
    if (valueProblem) valueProblem.count++;
    else if (this.#valueProblems.size < maxCountedKeys)
      this.#valueProblems.set(key, { count: 1, firstPlace: place, message });
  }

  /**
   * Completes the report.
   * @param isTable whether the source was a table. Then `columns` already lists the columns that were not used.
   */
  finish(isTable: boolean): ImportReport {
    const { report } = this;
    const valueProblems = [...this.#valueProblems.values()];
    for (const { count, firstPlace, message } of valueProblems.slice(0, maxListedKeys)) {
      const { line, path } = firstPlace;
      const place = [line > 0 ? `line ${line}` : '', path].filter((part) => part !== '').join(', ');
      const text = removeAccessTokens(message).slice(0, maxProblemLength);
      report.notes.push(`${count.toLocaleString('en-US')} × ${text} (first: ${place})`);
    }
    if (valueProblems.length > maxListedKeys)
      report.notes.push(`values of ${valueProblems.length - maxListedKeys} more keys were not understood`);
    if (!isTable && this.#unusedKeyCounts.size > 0) report.notes.push(describeUnusedKeys(this.#unusedKeyCounts));
    return report;
  }
}

function describeUnusedKeys(countByKey: ReadonlyMap<string, number>): string {
  const sortedCounts = Array.from(countByKey).sort(([, leftCount], [, rightCount]) => rightCount - leftCount);
  const listedKeys = sortedCounts
    .slice(0, maxListedKeys)
    .map(([key, count]) => `${removeAccessTokens(key).replace(/\p{C}/gu, ' ').slice(0, 60)} (${count})`);
  const unlisted = sortedCounts.length > maxListedKeys ? ` and ${sortedCounts.length - maxListedKeys} more` : '';
  return `unknown keys, stored under their own names: ${listedKeys.join(', ')}${unlisted}`;
}
