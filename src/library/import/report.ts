import type { ItemType } from '../../api/schemas.ts';
import type { ResultPage } from './sources/result-pages.ts';
import { countReason } from './stored-pictures.ts';
import type { UsedKeyTracker } from './used-keys.ts';
import { removeAccessTokens } from './values/access-tokens.ts';
import type { WriteOutcome } from './writer.ts';

/** The report about an imported source, e.g. a file. The `library import` command prints the report. */
export type ImportReport = {
  /** The number of stored ads. An ad that occurs several times in an import run counts once. */
  ads: number;
  /** The number of stored advertiser pages. A page that occurs several times in an import run counts once. */
  pages: number;
  /** The number of ads and pages that replaced a record of an earlier import run. */
  updated: number;
  /**
   * The number of ads whose stored version was seen later than the imported version. The import adds the values of such
   * an ad to the history of the stored ad.
   */
  older: number;
  /** The number of records that have the same id as an earlier record of the import run. */
  repeated: number;
  /** The numbers of stored ads and advertiser pages in each format, by format name. */
  formats: Record<string, { ads: number; pages: number }>;
  /** The number of records that were not stored, because they are invalid or have an unknown format. */
  skipped: number;
  /**
   * The result pages (saved API responses) in the source, in their original order. Successive pages that do not mention
   * other pages are combined into one item.
   */
  resultPages: ResultPage[];
  /** The number of result pages that `resultPages` does not list, because there are too many. */
  unlistedResultPages: number;
  /** A text that says which columns of a table became which fields, and which columns were not used. */
  columns?: string;
  /**
   * A text that says which keys of JSON records became which fields, and how many records contained each unused key.
   */
  keys?: string;
  /**
   * Remarks about the import, e.g. which values could not be parsed and how many records were stored without these
   * values.
   */
  notes: string[];
  /**
   * The first skipped records and the reasons. `path` is the position in a JSON document. It is empty for a record on
   * its own line.
   */
  problems: { line: number; path: string; problem: string }[];
  /** The number of skipped records by reason, without the records in `problems`. */
  reasons: Record<string, number>;
};

/** The location of a record in its source: the line number, and the path in a JSON document. */
interface RecordLocation {
  line: number;
  path: string;
}

const maxProblems = 50;
const maxProblemLength = 500;
/**
 * The maximum number of different keys for which a report counts records. The limit saves memory if a file has very
 * many keys.
 */
const maxCountedKeys = 1000;
/** The maximum number of keys that a report lists by name. */
const maxListedKeys = 20;

/** The maximum number of result pages that a report lists. Each listed page takes up to 300 bytes. */
const maxResultPages = 20_000;

/** Returns true for a result page that contains records and does not mention any other page of the same results. */
const isStandalonePage = ({
  hasNextPage,
  hasPreviousPage,
  isFirstPage,
  isEmptyResponse,
  ...page
}: ResultPage): boolean =>
  !hasNextPage &&
  !hasPreviousPage &&
  !isFirstPage &&
  !isEmptyResponse &&
  page.totalRecordCount === undefined &&
  page.recordCount > 0;

/** Counts the records of an import, and collects problems and unknown keys for the report. */
export class ImportReporter {
  readonly report: ImportReport = {
    ...{ ads: 0, pages: 0, updated: 0, older: 0, repeated: 0, skipped: 0 },
    ...{ formats: {}, resultPages: [], unlistedResultPages: 0, notes: [], problems: [], reasons: {} },
  };
  readonly #unusedKeyCounts = new Map<string, number>();
  readonly #storedAlternativeKeyCounts = new Map<string, number>();
  readonly #droppedAlternativeKeyCounts = new Map<string, number>();
  readonly #valueProblems = new Map<string, { count: number; firstLocation: RecordLocation; message: string }>();

  countStoredRecord(formatName: string, itemType: ItemType, outcome: WriteOutcome): void {
    this.report.formats[formatName] ??= { ads: 0, pages: 0 };
    if (outcome === 'repeated') {
      this.report.repeated++;
      return;
    }
    this.report.formats[formatName][itemType]++;
    this.report[itemType]++;
    if (outcome === 'updated') this.report.updated++;
    if (outcome === 'older') this.report.older++;
  }

  /** Counts a skipped record, and adds the reason (an error or a text) to the report. */
  countSkippedRecord({ line, path }: RecordLocation, reason: unknown): void {
    const message = reason instanceof Error ? reason.message : String(reason);
    const problem = removeAccessTokens(message).slice(0, maxProblemLength);
    this.report.skipped++;
    if (this.report.problems.length < maxProblems) this.report.problems.push({ line, path, problem });
    else countReason(this.report.reasons, problem.split(';', 1)[0] ?? '');
  }

  /** Adds a result page (a saved API response) to the report. If the response is an error, also adds a problem. */
  addResultPage(page: ResultPage): void {
    const { hasRecordList, hasNextPage, errorMessage } = page;
    if (errorMessage !== undefined) {
      const problem = `the source reports an error, so it may lack records: ${errorMessage}`;
      this.addProblem(removeAccessTokens(problem).slice(0, maxProblemLength));
    }
    if (!hasRecordList && !hasNextPage) return;
    const { resultPages } = this.report;
    const previousPage = resultPages.at(-1);
    // The website of the Meta Ad Library sends the ads of a result page in one line. Another line says whether more ads
    // follow. Combine both lines into one page.
    if (!hasRecordList && previousPage && !previousPage.hasNextPage && !previousPage.isLastPage)
      resultPages[resultPages.length - 1] = { ...page, ...previousPage, hasNextPage };
    else if (previousPage && isStandalonePage(previousPage) && isStandalonePage(page))
      previousPage.recordCount += page.recordCount;
    else if (resultPages.length < maxResultPages) resultPages.push(page);
    else this.report.unlistedResultPages++;
  }

  /** Adds a problem that concerns the whole source. The report lists it without a line number. */
  addProblem(problem: string): void {
    if (this.report.problems.length < maxProblems) this.report.problems.push({ line: 0, path: '', problem });
  }

  /**
   * Counts an alternative key, i.e. a key for a field that was already read from another key of the record. `isStored`
   * is true if the import stores the value under its own name, and false if the import drops the value.
   */
  countAlternativeKey({ key, isStored }: { key: string; isStored: boolean }): void {
    const keyCounts = isStored ? this.#storedAlternativeKeyCounts : this.#droppedAlternativeKeyCounts;
    if (keyCounts.has(key) || keyCounts.size < maxCountedKeys) keyCounts.set(key, (keyCounts.get(key) ?? 0) + 1);
  }

  /** Counts a key that the import does not know. The report lists the most frequent unknown keys. */
  countUnusedKey(key: string): void {
    if (this.#unusedKeyCounts.has(key) || this.#unusedKeyCounts.size < maxCountedKeys)
      this.#unusedKeyCounts.set(key, (this.#unusedKeyCounts.get(key) ?? 0) + 1);
  }

  /**
   * Counts a value that could not be parsed. The import stored the record without this value.
   * @param message starts with the key; messages that differ only in values are counted together
   */
  countValueProblem(location: RecordLocation, message: string): void {
    const messageKey = removeValuesFromMessage(message);
    const valueProblem = this.#valueProblems.get(messageKey);
    if (valueProblem) valueProblem.count++;
    else if (this.#valueProblems.size < maxCountedKeys)
      this.#valueProblems.set(messageKey, { count: 1, firstLocation: location, message });
  }

  /**
   * Completes the report and returns it.
   * @param usedKeys the keys of JSON records that became fields; undefined for a table, which has columns instead of
   * keys
   */
  finishReport(usedKeys: UsedKeyTracker | undefined): ImportReport {
    const { report } = this;
    const valueProblems = [...this.#valueProblems.values()];
    for (const { count, firstLocation, message } of valueProblems.slice(0, maxListedKeys)) {
      const { line, path } = firstLocation;
      const locationText = [line > 0 ? `line ${line}` : '', path].filter((text) => text !== '').join(', ');
      const shortMessage = removeAccessTokens(message).slice(0, maxProblemLength);
      report.notes.push(`${count.toLocaleString('en-US')} × ${shortMessage} (first: ${locationText})`);
    }
    if (valueProblems.length > maxListedKeys)
      report.notes.push(`values were not understood for ${valueProblems.length - maxListedKeys} more reasons`);
    if (this.#storedAlternativeKeyCounts.size > 0)
      report.notes.push(
        `values that are not used for their fields, but stored under their own names: ${describeKeys(this.#storedAlternativeKeyCounts)}`,
      );
    if (this.#droppedAlternativeKeyCounts.size > 0)
      report.notes.push(
        `values that are not stored, because another key has the same field: ${describeKeys(this.#droppedAlternativeKeyCounts)}`,
      );
    if (usedKeys) {
      const unusedKeys =
        this.#unusedKeyCounts.size > 0 ? `not used: ${describeKeys(this.#unusedKeyCounts)}` : undefined;
      const keys = [usedKeys.formatUsedKeys(), unusedKeys].filter((text) => text !== undefined).join('; ');
      if (keys !== '') report.keys = shortenKeyList(keys);
    }
    return report;
  }
}

/** Removes the quoted values and numbers from a message, so that problems of the same kind have the same text. */
const removeValuesFromMessage = (message: string): string =>
  message.replace(/"[^"]*"/g, '""').replace(/\d[\d.,-]*/g, '#');

/** The maximum length of the list of columns or keys in a report, in characters. */
const maxKeyListChars = 2000;

/**
 * Shortens a list of columns or keys for a report. Replaces control characters, because they would disturb a terminal.
 */
export const shortenKeyList = (keyList: string): string =>
  removeAccessTokens(keyList).replace(/\p{C}/gu, ' ').slice(0, maxKeyListChars);

function describeKeys(countByKey: ReadonlyMap<string, number>): string {
  const sortedCounts = Array.from(countByKey).sort(([, leftCount], [, rightCount]) => rightCount - leftCount);
  const listedKeys = sortedCounts
    .slice(0, maxListedKeys)
    .map(([key, count]) => `${removeAccessTokens(key).slice(0, 60)} (${count})`);
  const unlistedNote = sortedCounts.length > maxListedKeys ? ` and ${sortedCounts.length - maxListedKeys} more` : '';
  return `${listedKeys.join(', ')}${unlistedNote}`;
}
