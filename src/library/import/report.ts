import type { ResultPage } from './sources/result-pages.ts';
import { countReason } from './stored-pictures.ts';
import type { UsedKeys } from './used-keys.ts';
import { removeAccessTokens } from './values/access-tokens.ts';
import type { WriteOutcome } from './writer.ts';

/** The report about one imported source, e.g. a file. The command `library import` prints it. */
export type ImportReport = {
  /** The number of stored ads. An ad that occurs several times in the import run counts once. */
  ads: number;
  /** The number of stored advertiser pages. A page that occurs several times in the import run counts once. */
  pages: number;
  /** The number of ads and pages that replaced a record from an earlier import run. */
  updated: number;
  /**
   * The number of imported ads that were last seen before the stored version of the same ad. Their values were added to
   * the history of the stored ad.
   */
  older: number;
  /** The number of records whose id an earlier record of this import run already has. */
  repeated: number;
  /** The number of stored ads and pages in each format, by the name of the format. */
  formats: Record<string, { ads: number; pages: number }>;
  /** The number of records that were not stored, because they are invalid or in an unknown format. */
  skipped: number;
  /**
   * The result pages in the source, in their order. A result page is a saved response of an API. Successive pages that
   * say nothing about other pages are combined into one item.
   */
  resultPages: ResultPage[];
  /** The number of result pages that `resultPages` leaves out because there are too many. */
  unlistedResultPages: number;
  /** Lists which columns of a table became which fields, and which columns were not used. */
  columns?: string;
  /** Lists which keys of JSON records became which fields, and how many records contained each unused key. */
  keys?: string;
  /**
   * Values that could not be parsed, with the number of stored records that lack them for this reason, and other
   * remarks.
   */
  notes: string[];
  /**
   * The first skipped records, with the reasons. `path` is the position inside a JSON document, and empty for a record
   * on a line of its own.
   */
  problems: { line: number; path: string; problem: string }[];
  /** The number of skipped records for each reason. It only counts records that are not in `problems`. */
  reasons: Record<string, number>;
};

/** Where a record is in its source: its line number, and its path in a JSON document. */
interface RecordLocation {
  line: number;
  path: string;
}

const maxProblems = 50;
const maxProblemLength = 500;
/** The maximum number of different keys that a report counts. */
const maxCountedKeys = 1000;
/** The maximum number of keys that a report lists. */
const maxListedKeys = 20;

/** The maximum number of result pages that a report lists. A page has up to 300 bytes. */
const maxResultPages = 20_000;

/** Returns true for a page with records that does not mention any other page of the same results. */
const isStandalonePage = ({ hasNextPage, hasPrevious, isFirst, isEmptyAnswer, ...page }: ResultPage): boolean =>
  !hasNextPage && !hasPrevious && !isFirst && !isEmptyAnswer && page.totalRecords === undefined && page.recordCount > 0;

/** Counts the records of an import, and collects the problems and the keys that were not recognized. */
export class ImportReporter {
  readonly report: ImportReport = {
    ...{ ads: 0, pages: 0, updated: 0, older: 0, repeated: 0, skipped: 0 },
    ...{ formats: {}, resultPages: [], unlistedResultPages: 0, notes: [], problems: [], reasons: {} },
  };
  readonly #unusedKeyCounts = new Map<string, number>();
  readonly #storedSecondKeys = new Map<string, number>();
  readonly #droppedSecondKeys = new Map<string, number>();
  readonly #valueProblems = new Map<string, { count: number; firstLocation: RecordLocation; message: string }>();

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

  /** Counts a record that was skipped, and adds the reason to the report. */
  countSkipped({ line, path }: RecordLocation, error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    const problem = removeAccessTokens(message).slice(0, maxProblemLength);
    this.report.skipped++;
    if (this.report.problems.length < maxProblems) this.report.problems.push({ line, path, problem });
    else countReason(this.report.reasons, problem.split(';', 1)[0] ?? '');
  }

  /** Adds a result page of the source. If the page contains an error, adds the error to the problems. */
  addResultPage(page: ResultPage): void {
    const { hasRecordList, hasNextPage, error } = page;
    if (error !== undefined) {
      const problem = `the source reports an error, so it may lack records: ${error}`;
      this.addProblem(removeAccessTokens(problem).slice(0, maxProblemLength));
    }
    if (!hasRecordList && !hasNextPage) return;
    const { resultPages } = this.report;
    const previousPage = resultPages.at(-1);
    // The website of the Meta Ad Library sends the ads of a page in one line, and in another line whether more follow.
    if (!hasRecordList && previousPage && !previousPage.hasNextPage && !previousPage.isLast)
      resultPages[resultPages.length - 1] = { ...page, ...previousPage, hasNextPage };
    else if (previousPage && isStandalonePage(previousPage) && isStandalonePage(page))
      previousPage.recordCount += page.recordCount;
    else if (resultPages.length < maxResultPages) resultPages.push(page);
    else this.report.unlistedResultPages++;
  }

  /** Adds a problem of the whole source, which is listed without a line number. */
  addProblem(problem: string): void {
    if (this.report.problems.length < maxProblems) this.report.problems.push({ line: 0, path: '', problem });
  }

  /** Counts a key whose field another key already has. */
  countSecondKey({ key, isStored }: { key: string; isStored: boolean }): void {
    const secondKeyCounts = isStored ? this.#storedSecondKeys : this.#droppedSecondKeys;
    if (secondKeyCounts.has(key) || secondKeyCounts.size < maxCountedKeys)
      secondKeyCounts.set(key, (secondKeyCounts.get(key) ?? 0) + 1);
  }

  /** Counts a key that the import does not know. The report lists the most frequent ones. */
  countUnusedKey(key: string): void {
    if (this.#unusedKeyCounts.has(key) || this.#unusedKeyCounts.size < maxCountedKeys)
      this.#unusedKeyCounts.set(key, (this.#unusedKeyCounts.get(key) ?? 0) + 1);
  }

  /**
   * Counts a value that could not be parsed. The record was stored without this value.
   * @param message starts with the key; messages that differ only in the value are counted together
   */
  countValueProblem(location: RecordLocation, message: string): void {
    const messageKey = removeValues(message);
    const valueProblem = this.#valueProblems.get(messageKey);
    if (valueProblem) valueProblem.count++;
    else if (this.#valueProblems.size < maxCountedKeys)
      this.#valueProblems.set(messageKey, { count: 1, firstLocation: location, message });
  }

  /**
   * Completes and returns the report.
   * @param usedKeys the keys of JSON records that became fields; undefined for a table, which has columns instead
   */
  finish(usedKeys: UsedKeys | undefined): ImportReport {
    const { report } = this;
    const valueProblems = [...this.#valueProblems.values()];
    for (const { count, firstLocation, message } of valueProblems.slice(0, maxListedKeys)) {
      const { line, path } = firstLocation;
      const locationText = [line > 0 ? `line ${line}` : '', path].filter((part) => part !== '').join(', ');
      const shortMessage = removeAccessTokens(message).slice(0, maxProblemLength);
      report.notes.push(`${count.toLocaleString('en-US')} × ${shortMessage} (first: ${locationText})`);
    }
    if (valueProblems.length > maxListedKeys)
      report.notes.push(`values were not understood for ${valueProblems.length - maxListedKeys} more reasons`);
    if (this.#storedSecondKeys.size > 0)
      report.notes.push(
        `values that are not used for their fields, but stored under their own names: ${describeKeys(this.#storedSecondKeys)}`,
      );
    if (this.#droppedSecondKeys.size > 0)
      report.notes.push(
        `values that are not stored, because another key has the same field: ${describeKeys(this.#droppedSecondKeys)}`,
      );
    if (usedKeys) {
      const unusedKeys =
        this.#unusedKeyCounts.size > 0 ? `not used: ${describeKeys(this.#unusedKeyCounts)}` : undefined;
      const keys = [usedKeys.describe(), unusedKeys].filter((part) => part !== undefined).join('; ');
      if (keys !== '') report.keys = shortenKeyList(keys);
    }
    return report;
  }
}

/** Returns a message without its quoted values and its numbers, so that equal problems have the same text. */
const removeValues = (message: string): string => message.replace(/"[^"]*"/g, '""').replace(/\d[\d.,-]*/g, '#');

/** The maximum length of the list of columns or keys in a report. */
const maxKeyListLength = 2000;

/** Shortens a list of columns or keys for a report, and removes characters that would disturb a terminal. */
export const shortenKeyList = (text: string): string =>
  removeAccessTokens(text).replace(/\p{C}/gu, ' ').slice(0, maxKeyListLength);

function describeKeys(countByKey: ReadonlyMap<string, number>): string {
  const sortedCounts = Array.from(countByKey).sort(([, leftCount], [, rightCount]) => rightCount - leftCount);
  const listedKeys = sortedCounts
    .slice(0, maxListedKeys)
    .map(([key, count]) => `${removeAccessTokens(key).slice(0, 60)} (${count})`);
  const unlistedNote = sortedCounts.length > maxListedKeys ? ` and ${sortedCounts.length - maxListedKeys} more` : '';
  return `${listedKeys.join(', ')}${unlistedNote}`;
}
