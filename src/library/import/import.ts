import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Database } from '../database/database.ts';
import type { RecordStore } from '../database/records.ts';
import { isNestedTooDeep } from '../service/request.ts';
import { detectRecordFormat } from './formats/formats.ts';
import { metaAdLibraryFormat } from './formats/meta-ad-library.ts';
import { SourceRecord } from './formats/source-record.ts';
import { createRowReader } from './formats/table-rows.ts';
import { type ImportReport, ImportReporter } from './report.ts';
import { readSource } from './sources/read-source.ts';
import { type SourceEntry, UnreadableSourceError } from './sources/source-entry.ts';
import type { Table } from './sources/table.ts';
import { Spool } from './spool.ts';
import { tooDeepProblem, unknownFormatProblem, validateRecord } from './validate-record.ts';
import { ColumnValueParser } from './values/column-value-parser.ts';
import { openRecordWriter, type RecordWriter } from './writer.ts';

export type { ImportReport } from './report.ts';

/** Milliseconds of work per transaction, after which other callers get a turn. */
const sliceMs = 50;

/** A source of which so many records cannot be used is no archive of ads. */
const maxSkipped = 100_000;

interface ImportTarget {
  database: Database;
  records: RecordStore;
  now: () => number;
}

/**
 * Loads ads and pages of any format into the library. A record replaces one with the same id; one that cannot be used is
 * skipped and reported.
 *
 * All records are read twice. The first reading finds how each column writes its numbers and dates, and stores nothing;
 * the second reading stores the records. Work is cut into short transactions, and other callers get a turn after each.
 */
export async function importRecords(
  target: ImportTarget,
  source: AsyncIterable<string | Uint8Array>,
): Promise<ImportReport> {
  const importing = new Import(target);
  try {
    await importing.survey(source);
    return await importing.store();
  } finally {
    await importing.close();
  }
}

/** A line of the spool: the place of a record, and the record, or what is wrong with it. */
type Entry = [line: number, path: string, kind: 'value' | 'text' | 'cells' | 'problem', content: unknown];

class Import {
  readonly #target: ImportTarget;
  readonly #values: ColumnValueParser;
  readonly #reporter = new ImportReporter();
  readonly #spool = new Spool();
  #table: Table | undefined;
  #readRow: ((cells: readonly string[]) => SourceRecord) | undefined;
  /** Why the source was not read to its end. */
  #end: { line: number; error: Error } | undefined;
  #hasCopy = false;

  constructor(target: ImportTarget) {
    this.#target = target;
    this.#values = new ColumnValueParser(target.now());
  }

  close(): Promise<void> {
    return this.#spool.close();
  }

  /** The first reading. */
  async survey(source: AsyncIterable<string | Uint8Array>): Promise<void> {
    let line = 1;
    let skipped = 0;
    const onTable = (table: Table) => {
      this.#table = table;
      this.#readRow = createRowReader(table.columns, table);
      this.#reporter.report.columns = columnsText(table);
    };
    const onNaN = (line: number) =>
      this.#reporter.countValueProblem({ line, path: '' }, 'NaN or Infinity: no JSON, so it was read as null');
    try {
      for await (const pieces of readSource(source, { onTable, onNaN })) {
        let end = performance.now() + sliceMs;
        for (const found of pieces) {
          const piece = this.#observe(found);
          line = piece.line || line;
          if ('problem' in piece && ++skipped >= maxSkipped)
            throw new UnreadableSourceError(
              `${maxSkipped.toLocaleString('en-US')} records cannot be used; nothing after this place was read`,
            );
          await this.#spool.writeLine(spoolLine(piece));
          if (performance.now() < end) continue;
          await nextTurn();
          end = performance.now() + sliceMs;
        }
        await nextTurn();
      }
    } catch (error) {
      if (!(error instanceof UnreadableSourceError)) throw error;
      this.#end = { line, error };
    }
  }

  /**
   * Shows a record to the readers of its columns. Returns the record, or what is wrong with it where no format knows it.
   * Everything else that may be wrong is found when the record is stored.
   */
  #observe(piece: SourceEntry): SourceEntry {
    if ('problem' in piece) return piece;
    if ('value' in piece && isNestedTooDeep(piece.value))
      return { line: piece.line, path: piece.path, problem: tooDeepProblem };
    const record = 'cells' in piece ? this.#readRow?.(piece.cells) : SourceRecord.fromObject(piece.value);
    const format = this.#table?.format ?? (record && detectRecordFormat(record));
    if (!record || !format) return { line: piece.line, path: piece.path, problem: unknownFormatProblem };
    try {
      format.toAd(record, this.#values);
    } catch {}
    this.#values.valueErrors.length = this.#values.unusedKeys.length = 0;
    return piece;
  }

  /** The second reading. */
  async store(): Promise<ImportReport> {
    const { report } = this.#reporter;
    try {
      this.#values.decideNotations();
    } catch (error) {
      this.#reporter.countSkipped({ line: 1, path: '' }, error);
      return this.#reporter.finish(this.#table !== undefined);
    }
    const writer = await openRecordWriter(this.#target);
    for await (const lines of this.#spool.readLines()) {
      for (let at = 0; at < lines.length; await nextTurn()) {
        const end = performance.now() + sliceMs;
        this.#target.database.transaction(() => {
          for (; at < lines.length && performance.now() < end; at++) {
            if (lines[at]) this.#storeEntry(JSON.parse(lines[at] ?? '') as Entry, writer);
          }
        });
      }
    }
    if (this.#end) this.#reporter.countSkipped({ line: this.#end.line, path: '' }, this.#end.error);
    if (this.#table && this.#table.titleLineCount > 0) report.notes.push(aboveText(this.#table));
    if (report.ads > 0 && !this.#hasCopy) report.notes.push('no ad has a headline or a body');
    if (report.ads + report.pages + report.skipped === 0) this.#reporter.addProblem('no ad and no page is in it');
    return this.#reporter.finish(this.#table !== undefined);
  }

  #storeEntry([line, path, kind, content]: Entry, writer: RecordWriter): void {
    const place = { line, path };
    try {
      if (kind === 'problem') throw new Error(String(content));
      this.#storeRecord(kind, content, writer);
      for (const error of this.#values.valueErrors) this.#reporter.countValueProblem(place, error.message);
      for (const key of this.#values.unusedKeys) this.#reporter.countUnusedKey(key);
    } catch (error) {
      this.#reporter.countSkipped(place, error);
    }
    this.#values.valueErrors.length = this.#values.unusedKeys.length = 0;
  }

  /** @throws Error that says why the record cannot be used */
  #storeRecord(kind: Entry[2], content: unknown, writer: RecordWriter): void {
    const { report } = this.#reporter;
    const record =
      kind === 'cells'
        ? this.#readRow?.(content as string[])
        : SourceRecord.fromObject((kind === 'text' ? JSON.parse(String(content)) : content) as Record<string, unknown>);
    if (!record) return;
    const format = this.#table?.format ?? detectRecordFormat(record);
    if (!format) throw new Error(unknownFormatProblem);
    const text = kind === 'text' ? String(content) : undefined;
    const { ad, page, json } = validateRecord(record, { format, text, values: this.#values });
    const outcome = ad ? writer.putAd(ad, json) : writer.putPage(page, json);
    if (outcome === 'repeated') report.repeated++;
    else report[ad ? 'ads' : 'pages']++;
    if (outcome === 'updated') report.updated++;
    if (outcome !== 'repeated' && format === metaAdLibraryFormat) report.fromPublicArchive++;
    if (ad && (ad.headline || ad.body || ad.cards?.length)) this.#hasCopy = true;
  }
}

/** A record that has a line of its own in JSON is kept as it is written there. */
function spoolLine(piece: SourceEntry): string {
  const [kind, content] =
    'problem' in piece
      ? (['problem', piece.problem] as const)
      : 'cells' in piece
        ? (['cells', piece.cells] as const)
        : 'text' in piece && isJson(piece.text)
          ? (['text', piece.text] as const)
          : (['value', piece.value] as const);
  return JSON.stringify([piece.line, piece.path, kind, content] satisfies Entry);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const maxColumnsText = 2000;

/** How the columns are understood, for people: the first of the columns that a field is made from. */
function columnsText({ columns, fields }: Table): string {
  const used = new Map<string, string>();
  const unused: string[] = [];
  for (const [at, column] of columns.entries()) {
    const field = fields[at];
    if (field !== undefined && !used.has(field)) used.set(field, column);
    if (field === undefined && column !== '') unused.push(column);
  }
  const text = [
    Array.from(used, ([field, column]) => `${field} ← ${column}`).join(', '),
    ...(unused.length > 0 ? [`not used: ${unused.join(', ')}`] : []),
  ].join('; ');
  return text.replace(/\p{C}/gu, ' ').slice(0, maxColumnsText);
}

const aboveText = ({ titleLineCount: titlesAbove }: Table) =>
  titlesAbove === 1
    ? 'the line above the column names was not read'
    : `${titlesAbove} lines above the column names were not read`;
