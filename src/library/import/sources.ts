import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import type { CsvError } from 'csv-parse';
import { isObject } from '../../views/view.ts';
import { adReader, areOwnAds, columnsText } from './own-ads.ts';
import { archiveKeys } from './public-archive.ts';

/** What the source has in the place of a record. */
export type Piece = {
  /** The line of the record; 0 in a document, where the path says more. */
  line: number;
  /** The place of the record in its document; empty for a line. */
  path: string;
  /** The record as it is written, where it is a line of its own. */
  text?: string;
  /** @throws Error that says what is wrong with it */
  read(): unknown;
};

/** Characters of one record. */
export const maxRecordLength = 1024 * 1024;
export const tooLong = `a record of more than ${maxRecordLength} characters; a list of records goes into [ ], alone or under "data" or "items"`;

/** The most characters of a line, and of a document whose records do not stand on lines of their own. */
const maxLineLength = 4 * maxRecordLength;
const maxDocumentLength = 256 * 1024 * 1024;

/** From these bytes on, the source cannot be read. Records before them can be used. */
export class UnreadableSource extends Error {}

const failed = (problem: string) => (): never => {
  throw new Error(problem);
};

/**
 * The records of a source, whose format is found by content: JSON Lines, JSON of another layout, or CSV, compressed or
 * not. JSON Lines and CSV are read in bounded memory, line by line; another document is read whole.
 * @param onColumns receives how the columns of a CSV are understood
 * @throws UnreadableSource
 */
export async function* piecesOf(
  source: AsyncIterable<string | Uint8Array>,
  onColumns: (text: string) => void,
): AsyncGenerator<Iterable<Piece>> {
  const { first: head = '', all } = await peek(textOf(source));
  const delimiter = csvDelimiter(head);
  if (delimiter !== undefined) yield* csvPieces(all, delimiter, onColumns);
  else yield* isByLine(head) ? linePieces(all) : documentPieces(all);
}

/** Characters of a source that are read at once. */
const batchLength = 256 * 1024;

/** UTF-8, compressed by gzip or not. */
async function* textOf(source: AsyncIterable<string | Uint8Array>) {
  let { first, all } = await peek(buffersOf(source));
  // The first byte of gzip, with which no text begins.
  if (first?.[0] === 0x1f) ({ first, all } = await peek(unpacked(all)));
  if (first?.toString('latin1', 0, 4) === 'PK\x03\x04')
    throw new UnreadableSource('a ZIP archive or a workbook; unpack it, or save it as CSV, and import the file inside');
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const decode = (chunk?: Buffer) => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined });
    } catch {
      throw new UnreadableSource('bytes that are not UTF-8; save the file as UTF-8 and import it again');
    }
  };
  let batch = '';
  for await (const chunk of all) {
    batch += decode(chunk);
    if (batch.length < batchLength) continue;
    yield batch;
    batch = '';
  }
  yield batch + decode();
}

async function* buffersOf(source: AsyncIterable<string | Uint8Array>): AsyncGenerator<Buffer> {
  for await (const chunk of source) yield Buffer.from(chunk as Uint8Array);
}

/** The first of the items, and all of them. */
async function peek<Item>(items: AsyncGenerator<Item>) {
  const { value: first, done } = await items.next();
  async function* all(): AsyncGenerator<Item> {
    if (done) return;
    yield first;
    yield* items;
  }
  return { first: done ? undefined : (first as Item), all: all() };
}

async function* unpacked(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const gunzip = createGunzip();
  // Reading `gunzip` fails with the same error.
  pipeline(bytes, gunzip).catch(() => {});
  try {
    yield* gunzip;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (!code.startsWith('Z_')) throw error;
    const what = code === 'Z_BUF_ERROR' ? 'cut off' : 'damaged';
    throw new UnreadableSource(`the compressed data is ${what}; import a whole copy`);
  }
}

/** Whether each line stands for itself: the first one, or half of the first ones, can be read alone. */
function isByLine(head: string): boolean {
  const [first = '', ...lines] = head.trimStart().split('\n', 20);
  const filled = lines.filter((line) => line.trim() !== '');
  const alone = filled.filter((line) => jsonOf(line) !== undefined);
  return lines.length > 0 && (jsonOf(first) !== undefined || 2 * alone.length > filled.length);
}

async function* linePieces(text: AsyncIterable<string>): AsyncGenerator<Iterable<Piece>> {
  let line = 0;
  let last = '';
  function* read(lines: readonly string[]): Generator<Piece> {
    for (const written of lines) {
      const piece = { line: ++line, path: '' };
      const text = written.trim();
      if (text === '') continue;
      const value = text.length > maxLineLength ? undefined : jsonOf(text);
      if (value === undefined) yield { ...piece, read: failed(text.length > maxLineLength ? tooLong : notJson) };
      else if (isRecord(value)) yield { ...piece, text, read: () => value };
      else yield* recordsIn(value, line);
    }
  }
  for await (const chunk of text) {
    // A line that is too long is held only as far as needed to see that it is too long.
    const from = last.length > maxLineLength ? chunk.indexOf('\n') : 0;
    if (from < 0) continue;
    const lines = (last + chunk.slice(from)).split('\n');
    last = lines.pop() ?? '';
    yield read(lines);
  }
  yield read([last]);
}

async function* documentPieces(text: AsyncIterable<string>): AsyncGenerator<Iterable<Piece>> {
  let document = '';
  for await (const chunk of text) {
    document += chunk;
    if (document.length > maxDocumentLength)
      throw new UnreadableSource(
        'a document of more than 256 MB; write each record on a line of its own (JSON Lines), which may be of any length',
      );
  }
  const value = jsonOf(document);
  if (value !== undefined) yield recordsIn(value, 0);
  else if (document.trim() !== '') yield [{ line: 1, path: '', read: failed(notJson) }];
}

const notJson = 'not JSON, or cut off; "library import --help" names the formats';

/** The keys by which an object is a record, and none around a list of records. */
const recordKeys = [...archiveKeys, 'id', 'pageId'];

const lists = ['data', 'items'];
/** Lists and objects around a record. */
const maxAround = 16;

/** An object, unless it is around a list of records. */
const isRecord = (value: unknown): boolean =>
  isObject(value) &&
  (recordKeys.some((key) => Object.hasOwn(value, key)) || !lists.some((key) => Array.isArray(value[key])));

/** The records of a value: a list, an object with a list in `data` or `items`, lists of those, or one record. */
function* recordsIn(value: unknown, line: number, path = '', depth = 0): Generator<Piece> {
  if (depth < maxAround && Array.isArray(value))
    for (const [at, item] of value.entries()) yield* recordsIn(item, line, `${path}[${at}]`, depth + 1);
  else if (depth < maxAround && isObject(value) && !isRecord(value))
    for (const key of lists) {
      const list = value[key];
      if (Array.isArray(list)) yield* recordsIn(list, line, path === '' ? key : `${path}.${key}`, depth + 1);
    }
  else yield { line: line || Number(path === ''), path, read: () => value };
}

/** The delimiter, if the text begins like a CSV and not like JSON: the most frequent one in its first line. */
function csvDelimiter(text: string): string | undefined {
  const [first = '', second = ''] = text
    .slice(0, 64 * 1024)
    .trimStart()
    .split('\n', 2);
  if ([first, second].some((line) => /^\s*[{[]/.test(line))) return undefined;
  const amount = (delimiter: string) => first.split(delimiter).length;
  const [most = ','] = [',', ';', '\t'].sort((left, right) => amount(right) - amount(left));
  return amount(most) > 1 ? most : undefined;
}

type ReadCells = (cells: readonly string[]) => unknown;

async function* csvPieces(
  text: AsyncIterable<string>,
  delimiter: string,
  onColumns: (text: string) => void,
): AsyncGenerator<Piece[]> {
  // Loaded on demand: most imports are JSON.
  const { parse } = await import('csv-parse');
  const rows: { cells: string[]; line: number }[] = [];
  let line = 1;
  const parser = parse({
    delimiter,
    record_delimiter: ['\r\n', '\n'],
    bom: true,
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    max_record_size: maxRecordLength,
    on_record(cells: string[], { lines }) {
      rows.push({ cells, line });
      line = lines + 1;
      return null;
    },
  });
  parser.on('error', () => {}).resume();
  let columns: string[] | undefined;
  let read: ReadCells | undefined;
  let length = 0;
  /** Dates of one's own ads are understood by all rows of their column. */
  const pieces = (isEnd = false): Piece[] => {
    if (columns === undefined && rows[0]) {
      columns = rows.shift()?.cells.map((cell) => cell.trim()) ?? [];
      if (isArchive(columns)) read = archiveReader(columns);
      else if (areOwnAds(columns)) onColumns(columnsText(columns));
      else throw new UnreadableSource(unknownColumns);
    }
    if (columns === undefined || (read === undefined && !isEnd)) return [];
    const [wanted, readCells] = [columns.length, read ?? ownReader(columns, rows)];
    const readRow = (cells: string[]) => {
      if (cells.length === wanted) return readCells(cells);
      throw new Error(`${cells.length} cells where the first line has ${wanted}; is a quotation mark missing?`);
    };
    return rows.splice(0).map(({ cells, line }) => ({ line, path: '', read: () => readRow(cells) }));
  };
  const ended = (error: unknown): Piece[] => [{ line, path: '', read: failed(explain(error)) }];
  for await (const chunk of text) {
    length += chunk.length;
    if (read === undefined && length > maxDocumentLength)
      throw new UnreadableSource('a CSV of your own ads has 256 MB at most; import it in parts');
    const error = await new Promise<unknown>((resolve) => parser.write(chunk, resolve));
    yield pieces(Boolean(error));
    if (error) return yield ended(error);
  }
  const error = await new Promise<unknown>((resolve) => parser.on('error', resolve).end(resolve));
  yield pieces(true);
  if (error) yield ended(error);
}

function explain(error: unknown): string {
  const { code, message } = error as CsvError;
  if (code === 'CSV_MAX_RECORD_SIZE' || code === 'CSV_QUOTE_NOT_CLOSED')
    return 'a row without an end; is a quotation mark not closed? Nothing after it was read';
  return `not CSV: ${message}. Nothing after it was read`;
}

const unknownColumns =
  'neither JSON nor a CSV of ads: its first line names no column "headline" or "body" (ads of your own) or "ad_archive_id" (ads of the public ad library)';

const isArchive = (columns: readonly string[]) =>
  columns.some((name) => name.toLowerCase() === 'ad_archive_id') ||
  (columns.includes('id') && columns.some((name) => /^ad_(?:creat|delivery|snapshot)/.test(name)));

/** @throws UnreadableSource where a column cannot be understood */
function ownReader(columns: string[], rows: readonly { cells: string[] }[]): ReadCells {
  try {
    return adReader(
      columns,
      rows.map(({ cells }) => cells),
    );
  } catch (error) {
    throw new UnreadableSource((error as Error).message);
  }
}

/** The key `ad_archive_id` makes it an ad of the archive also where the column is called `id`. */
const archiveReader =
  (columns: string[]): ReadCells =>
  (cells) => ({
    ad_archive_id: undefined,
    ...Object.fromEntries(
      columns.flatMap((name, at) => (cells[at]?.trim() ? [[name, cellValue(name, cells[at])]] : [])),
    ),
  });

const copies = /^ad_creative_/;
const names = /^(publisher_platforms?|languages|targeted_or_reached_countries)$/;
const ranges = /^(impressions|spend|estimated_audience_size)$/;
const lowerBound = /lower_bound\W{1,5}([\d.]+)/;
const upperBound = /upper_bound\W{1,5}([\d.]+)/;

/** A cell holds what the archive's JSON has there: a list, a range, objects, some names, or a text. */
function cellValue(name: string, cell: string): unknown {
  const json = jsonOf(cell);
  if (copies.test(name)) return Array.isArray(json) ? json : [cell];
  if (json !== undefined) return json;
  if (names.test(name)) return cell.split(',').map((one) => one.trim());
  if (!ranges.test(name)) return cell;
  const [, lower_bound] = lowerBound.exec(cell) ?? [];
  const [, upper_bound] = upperBound.exec(cell) ?? [];
  return (lower_bound ?? upper_bound) === undefined ? cell : { lower_bound, upper_bound };
}

/** Some cells list their objects without brackets around them. */
function jsonOf(cell: string): unknown {
  if (!/^\s*[{[]/.test(cell)) return;
  for (const text of [cell, `[${cell}]`]) {
    try {
      return JSON.parse(text);
    } catch {}
  }
  return;
}
