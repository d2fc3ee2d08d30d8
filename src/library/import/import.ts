import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { formatCount } from '../../views/numbers.ts';
import { type Database, isWriteError } from '../database/database.ts';
import type { RecordStore } from '../database/records.ts';
import { isNestedTooDeep } from '../service/request.ts';
import { FormatDetector, parseColumnPath } from './formats/formats.ts';
import { SourceRecord } from './formats/source-record.ts';
import { createRowConverter } from './formats/table-rows.ts';
import { type ImportReport, ImportReporter, shortenKeyList } from './report.ts';
import type { GuessedEncoding } from './sources/decode-text.ts';
import { readSource } from './sources/read-source.ts';
import type { ResultPage } from './sources/result-pages.ts';
import { type SourceEntry, UnreadableSourceError } from './sources/source-entry.ts';
import type { TableLayout } from './sources/table.ts';
import { LineSpool } from './spool.ts';
import { UsedKeyTracker } from './used-keys.ts';
import { tooDeepProblem, unknownFormatProblem, validateRecord } from './validate-record.ts';
import { ColumnValueParser } from './values/column-value-parser.ts';
import { parseJson } from './values/literals.ts';
import { openRecordWriter, type RecordWriter } from './writer.ts';

export type { ImportReport } from './report.ts';

/**
 * The maximum duration of a database transaction, in milliseconds. It is short, because the server can handle other
 * requests only between two transactions.
 */
const maxTransactionMs = 50;

/**
 * The number of unusable records that stops an import. A file with so many unusable records is probably not an archive
 * of ads.
 */
const maxUnusableRecords = 100_000;

/** The options for importing one source, e.g. a file. */
export interface ImportOptions {
  /** The name of the format of all records. If omitted, the import detects the format of each record. */
  format?: string | undefined;
  /**
   * The number of the import run, as returned by `startImportRun`. A run is one call of `library import` with all its
   * files, each of which may contain a part of the same ad. By default, each file is a separate run.
   */
  runNumber?: number | undefined;
  /**
   * The name under which the user saves the results of a search, e.g. `socks`. The `question` filter of the library
   * finds ads by this name.
   */
  question?: string | undefined;
  /** Reports the progress, many times per second. Never called if another process runs the import. */
  onProgress?: ((counts: ImportCounts) => void) | undefined;
}

/** The numbers of records that the import has read and stored so far. The command prints these numbers as progress. */
export interface ImportCounts {
  readRecords: number;
  storedRecords: number;
  /** False while the import reads the source, and true while it stores the records. */
  isStoring: boolean;
}

interface ImportDependencies {
  database: Database;
  recordStore: RecordStore;
  /** Returns the current time in Unix milliseconds. */
  now: () => number;
}

/**
 * Imports ads and advertiser pages in any supported format. A record replaces an earlier record with the same id.
 * Unusable records are skipped and reported.
 *
 * The import processes all records twice. The first pass detects how each column writes numbers and dates, and stores
 * nothing. The second pass stores the records in short transactions, so that other requests can run in between.
 *
 * @throws Error if there is no format with the given name
 */
export async function importRecords(
  dependencies: ImportDependencies,
  source: AsyncIterable<string | Uint8Array>,
  options: ImportOptions = {},
): Promise<ImportReport> {
  const importer = new SourceImporter(dependencies, options);
  try {
    await importer.observeRecords(source);
    return await importer.storeRecords();
  } finally {
    await importer.close();
  }
}

/** Starts an import run, that is, one call of `library import` with all its files. Returns the number of the run. */
export const startImportRun = ({ database, now }: Pick<ImportDependencies, 'database' | 'now'>): number =>
  database.run('INSERT INTO import_runs (startedAt) VALUES (?)', [now()]).rowid;

/**
 * A line of the temporary file that stores records between the two passes of an import. It has the line number and JSON
 * path of a record, and either its content or the reason why it is unusable.
 */
type SpooledRecord = [
  line: number,
  path: string,
  contentKind: 'value' | 'text' | 'cells' | 'problem',
  content: unknown,
];

class SourceImporter {
  readonly #dependencies: ImportDependencies;
  readonly #formatDetector: FormatDetector;
  readonly #runNumber: number;
  readonly #question: string | undefined;
  readonly #onProgress: ImportOptions['onProgress'];
  readonly #counts: ImportCounts = { readRecords: 0, storedRecords: 0, isStoring: false };
  readonly #parser: ColumnValueParser;
  readonly #reporter = new ImportReporter();
  readonly #spool = new LineSpool();
  readonly #usedKeys = new UsedKeyTracker();
  #tableLayout: TableLayout | undefined;
  #convertRow: ((cells: readonly string[]) => SourceRecord) | undefined;
  /**
   * The error that made the rest of the source unreadable, and the line number of the error. The import stores the
   * records before this line.
   */
  #readError: { line: number; error: Error } | undefined;
  #hasAdText = false;
  /** The number of ignored rows by reason, e.g. because a row contains totals and not an ad. */
  readonly #ignoredCountByReason = new Map<string, number>();

  constructor(dependencies: ImportDependencies, { format, runNumber, question, onProgress }: ImportOptions) {
    this.#dependencies = dependencies;
    this.#formatDetector = new FormatDetector(format);
    this.#runNumber = runNumber ?? startImportRun(dependencies);
    this.#question = question;
    this.#onProgress = onProgress;
    this.#parser = new ColumnValueParser(dependencies.now());
  }

  close(): Promise<void> {
    return this.#spool.close();
  }

  /**
   * Runs the first pass of the import. Reads all records, detects how each column writes dates and numbers, and saves
   * the records in a temporary file for the second pass.
   */
  async observeRecords(source: AsyncIterable<string | Uint8Array>): Promise<void> {
    let lastLineNumber = 1;
    let unusableCount = 0;
    const onTableDetected = (tableLayout: TableLayout) => {
      this.#tableLayout = tableLayout;
      this.#convertRow = createRowConverter(tableLayout.columnNames, tableLayout);
      this.#reporter.report.columns = describeColumns(tableLayout);
    };
    const onNaNFound = (lineNumber: number) =>
      this.#reporter.countValueProblem(
        { line: lineNumber, path: '' },
        'NaN or Infinity: JSON does not allow this value, so it was read as null',
      );
    const onResultPageRead = (page: ResultPage) => this.#reporter.addResultPage(page);
    const onEncodingGuessed = (encoding: GuessedEncoding) =>
      this.#reporter.report.notes.push(
        `the text is not UTF-8 and was read as ${encoding}, which is a guess; check its letters with accents`,
      );
    try {
      for await (const entries of readSource(source, {
        ...{
          formatDetector: this.#formatDetector,
          onTableDetected,
          onNaNFound,
          onResultPageRead,
          onEncodingGuessed,
        },
      })) {
        let nextPauseAt = performance.now() + maxTransactionMs;
        for (const sourceEntry of entries) {
          const entry = this.#observeEntry(sourceEntry);
          lastLineNumber = entry.line || lastLineNumber;
          if ('problem' in entry && ++unusableCount >= maxUnusableRecords)
            throw new UnreadableSourceError(
              `${maxUnusableRecords.toLocaleString('en-US')} records cannot be used; nothing after this place was read`,
            );
          await this.#spool.writeLine(formatSpoolLine(entry));
          this.#counts.readRecords++;
          if (performance.now() < nextPauseAt) continue;
          await yieldToEventLoop();
          nextPauseAt = performance.now() + maxTransactionMs;
        }
        this.#onProgress?.({ ...this.#counts });
        await yieldToEventLoop();
      }
    } catch (error) {
      if (!(error instanceof UnreadableSourceError)) throw error;
      this.#readError = { line: lastLineNumber, error };
    }
  }

  /**
   * Passes the values of a record to the parser, which learns how each column writes dates and numbers. Returns the
   * record, or a problem if no format matches it. The second pass finds all other problems.
   */
  #observeEntry(entry: SourceEntry): SourceEntry {
    if ('problem' in entry) return entry;
    const { line, path } = entry;
    if ('value' in entry && isNestedTooDeep(entry.value)) return { line, path, problem: tooDeepProblem };
    const record = 'cells' in entry ? this.#convertRow?.(entry.cells) : SourceRecord.fromObject(entry.value);
    const format = this.#tableLayout?.format ?? (record && this.#formatDetector.detectRecordFormat(record));
    if (!record || !format) return { line, path, problem: unknownFormatProblem };
    if (format.getIgnoreReason?.(record) !== undefined) return entry;
    try {
      format.toPage?.(record, this.#parser) ?? format.toAd(record, this.#parser);
    } catch {}
    this.#parser.startRecord();
    return entry;
  }

  /**
   * Runs the second pass of the import. Stores the records from the temporary file in the database. Returns the report.
   */
  async storeRecords(): Promise<ImportReport> {
    const { report } = this.#reporter;
    try {
      this.#parser.decideNotations();
    } catch (error) {
      this.#reporter.countSkippedRecord({ line: 1, path: '' }, error);
      return this.#finishReport();
    }
    const writer = await openRecordWriter(this.#dependencies, {
      runNumber: this.#runNumber,
      questionName: this.#question,
      reportProblem: (problem) => this.#parser.addValueError(problem),
    });
    for await (const lines of this.#spool.readLines()) {
      for (let index = 0; index < lines.length; await yieldToEventLoop()) {
        this.#onProgress?.({ ...this.#counts, isStoring: true });
        const transactionEndsAt = performance.now() + maxTransactionMs;
        this.#dependencies.database.transaction(() => {
          for (; index < lines.length && performance.now() < transactionEndsAt; index++) {
            if (lines[index]) {
              this.#storeEntry(JSON.parse(lines[index] ?? '') as SpooledRecord, writer);
              this.#counts.storedRecords++;
            }
          }
        });
      }
    }
    if (this.#readError)
      this.#reporter.countSkippedRecord({ line: this.#readError.line, path: '' }, this.#readError.error);
    if (this.#tableLayout && this.#tableLayout.titleLineCount > 0)
      report.notes.push(describeTitleLines(this.#tableLayout));
    for (const [reason, count] of this.#ignoredCountByReason)
      report.notes.push(`ignored, because ${reason}: ${formatCount(count, 'row')}`);
    if (report.ads > 0 && !this.#hasAdText) report.notes.push('no ad has a headline or a body');
    if (report.ads + report.pages + report.repeated + report.skipped === 0) {
      const { resultPages } = report;
      const isEmptyResponse = resultPages.length > 0 && resultPages.every((page) => page.isEmptyResponse);
      if (isEmptyResponse) report.notes.push('the search has no results: its response lists no ad');
      else this.#reporter.addProblem('the source contains no ad and no page');
    }
    return this.#finishReport();
  }

  #finishReport(): ImportReport {
    const { report } = this.#reporter;
    if (this.#tableLayout?.format.hasColumnPaths && this.#usedKeys.hasFields)
      report.columns = describeColumns(this.#tableLayout, this.#usedKeys);
    return this.#reporter.finishReport(this.#tableLayout ? undefined : this.#usedKeys);
  }

  #storeEntry([line, path, contentKind, content]: SpooledRecord, writer: RecordWriter): void {
    const location = { line, path };
    try {
      if (contentKind === 'problem') throw new Error(String(content));
      this.#storeRecord(contentKind, content, writer);
      for (const error of this.#parser.valueErrors) this.#reporter.countValueProblem(location, error.message);
      for (const key of this.#parser.unusedKeys) this.#reporter.countUnusedKey(key);
      for (const alternativeKey of this.#parser.alternativeKeys) this.#reporter.countAlternativeKey(alternativeKey);
    } catch (error) {
      // The records before this one are lost with the transaction, so do not go on as if only this record was unusable.
      if (isWriteError(error)) throw error;
      this.#reporter.countSkippedRecord(location, error);
    }
    this.#parser.startRecord();
  }

  /**
   * Converts a record to an ad or an advertiser page, and stores it in the database.
   * @throws Error that explains why the record is unusable
   */
  #storeRecord(contentKind: SpooledRecord[2], content: unknown, writer: RecordWriter): void {
    const record =
      contentKind === 'cells'
        ? this.#convertRow?.(content as string[])
        : SourceRecord.fromObject(
            (contentKind === 'text' ? parseJson(String(content)) : content) as Record<string, unknown>,
          );
    if (!record) return;
    const format = this.#tableLayout?.format ?? this.#formatDetector.detectRecordFormat(record);
    if (!format) throw new Error(unknownFormatProblem);
    const ignoreReason = format.getIgnoreReason?.(record);
    if (ignoreReason !== undefined) {
      this.#ignoredCountByReason.set(ignoreReason, (this.#ignoredCountByReason.get(ignoreReason) ?? 0) + 1);
      return;
    }
    const originalText = contentKind === 'text' ? String(content) : undefined;
    const { ad, page, json } = validateRecord(record, { format, originalText, parser: this.#parser });
    const { outcome } = ad ? writer.putAd(ad, json, format) : writer.putPage(page, json, format);
    const { fieldSources } = this.#parser;
    if (fieldSources.length > 0) this.#usedKeys.rememberFieldSources(fieldSources);
    else if (contentKind !== 'cells') this.#usedKeys.observeRecord(format, record.toObject());
    this.#reporter.countStoredRecord(format.name, ad ? 'ads' : 'pages', outcome);
    if (format.addToStoredAd || (ad && (ad.headline || ad.body || ad.cards?.length))) this.#hasAdText = true;
  }
}

/**
 * Converts an entry of a source (a record, or the problem with it) to a line of the temporary file. If the entry is JSON
 * on a line of its own, the line contains its text, so that the library can store the original text unchanged.
 */
function formatSpoolLine(entry: SourceEntry): string {
  const [contentKind, content] =
    'problem' in entry
      ? (['problem', entry.problem] as const)
      : 'cells' in entry
        ? (['cells', entry.cells] as const)
        : 'text' in entry && isValidJson(entry.text)
          ? (['text', entry.text] as const)
          : (['value', entry.value] as const);
  return JSON.stringify([entry.line, entry.path, contentKind, content] satisfies SpooledRecord);
}

function isValidJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * Describes the fields that the columns of a table became, e.g. `headline ← Ad title; not used: Notes`. If several
 * columns form a field, lists only the first of them.
 * @param usedKeys the fields that were stored; if omitted, the names of the columns determine the fields
 */
function describeColumns({ columnNames, fields }: TableLayout, usedKeys?: UsedKeyTracker): string {
  const columnByField = new Map<string, string>();
  const unusedColumns: string[] = [];
  for (const [index, column] of columnNames.entries()) {
    const field = usedKeys && fields[index] ? usedKeys.findField(parseColumnPath(column)) : fields[index];
    if (field !== undefined && !columnByField.has(field)) columnByField.set(field, column);
    if (fields[index] === undefined && column !== '') unusedColumns.push(column);
  }
  const columnList = [
    Array.from(columnByField, ([field, column]) => `${field} ← ${column}`).join(', '),
    ...(unusedColumns.length > 0 ? [`not used: ${unusedColumns.join(', ')}`] : []),
  ].join('; ');
  return shortenKeyList(columnList);
}

const describeTitleLines = ({ titleLineCount }: TableLayout) =>
  titleLineCount === 1
    ? 'the line above the column names was ignored'
    : `${titleLineCount} lines above the column names were ignored`;
