import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import type { CsvError } from 'csv-parse';
import { adOfRow, ownFields } from './own-ads.ts';
import type { Json } from './public-archive.ts';

/** What should be a record, or what is wrong in its place. `path` is where it is in its document, empty for a line. */
export type Piece = { line: number; path: string } & ({ text: string } | { value: unknown } | { problem: string });

/** Characters of one record as it is written. */
export const maxRecordLength = 1024 * 1024;
export const tooLong = `a record of more than ${maxRecordLength} characters; a list of records goes into [ ], alone or under "data" or "items"`;

/** Bytes that cannot be read on. What came before them can be used. */
export class UnreadableSource extends Error {}

/** Characters that are handed on at once. */
const batchLength = 256 * 1024;

/**
 * The text of a source in batches: UTF-8 or UTF-16, compressed by gzip or not, as its first bytes say.
 * @param warn receives what may have been lost
 * @throws UnreadableSource
 */
export async function* textOf(
  source: AsyncIterable<string | Uint8Array>,
  warn: (message: string) => void,
): AsyncGenerator<string> {
  let { head, bytes } = await withHead(source);
  if (isGzip(head)) ({ head, bytes } = await withHead(unpacked(bytes)));
  if (isGzip(head)) throw new UnreadableSource('compressed twice; unpack the file once and import the result');
  if (head.toString('latin1') === 'PK\x03\x04')
    throw new UnreadableSource('a ZIP archive or a workbook; unpack it, or save it as CSV, and import the file inside');
  const charset = charsetOf(head);
  const decoder = new TextDecoder(charset);
  /** Decodes a second time, until the first bytes that fit no character. */
  const strict = new TextDecoder(charset, { fatal: true });
  let isValid = true;
  const decode = (chunk?: Buffer) => {
    const options = { stream: chunk !== undefined };
    try {
      if (isValid) strict.decode(chunk, options);
    } catch {
      isValid = false;
      warn(`bytes that are not ${charset.toUpperCase()} were stored as �; save the file as UTF-8 and import it again`);
    }
    return decoder.decode(chunk, options);
  };
  let batch = '';
  for await (const chunk of bytes) {
    batch += decode(chunk);
    if (batch.length < batchLength) continue;
    yield batch;
    batch = '';
  }
  yield batch + decode();
}

const isGzip = (head: Buffer) => head[0] === 0x1f && head[1] === 0x8b;

/** JSON and CSV begin with an ASCII character, so a zero byte beside it gives UTF-16 away. */
function charsetOf([one, two]: Buffer): string {
  if ((one === 0xff && two === 0xfe) || (one !== 0 && two === 0)) return 'utf-16le';
  return (one === 0xfe && two === 0xff) || (one === 0 && two !== undefined && two !== 0) ? 'utf-16be' : 'utf-8';
}

/** The first bytes, four if there are so many, and all of them. */
async function withHead(source: AsyncIterable<string | Uint8Array>) {
  const chunks = source[Symbol.asyncIterator]();
  let read = Buffer.alloc(0);
  for (let next = await chunks.next(); !next.done; next = await chunks.next()) {
    read = Buffer.concat([read, Buffer.from(next.value as Uint8Array)]);
    if (read.length >= 4) break;
  }
  async function* bytes(): AsyncGenerator<Buffer> {
    yield read;
    for await (const chunk of { [Symbol.asyncIterator]: () => chunks }) yield Buffer.from(chunk as Uint8Array);
  }
  return { head: read.subarray(0, 4), bytes: bytes() };
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

/** Lists inside of lists that are looked into for records. */
const maxLists = 8;

/** A value in the place of a record. `text` is undefined once it is too long, `depth` is 0 for anything but an object. */
interface Value {
  line: number;
  path: string;
  text: string | undefined;
  depth: number;
  /** It has a key of a record, so that a list in it is a part of it. */
  isRecord?: boolean;
  /** A list of records stands in it, so that it is none. */
  isAround?: boolean;
}

/** A list of records. `around` is the object it stands in. */
interface List {
  name: string;
  index: number;
  line: number;
  around?: Value;
}

/** The characters that matter next. */
const marks = {
  inText: /"|\n|\\[^\n]?/g,
  inObject: /["{}[\]\n]/g,
  inWord: /["\n,\]}]/g,
  between: /\n|\S/g,
  lineEnd: /\n/g,
};

/** Whether each line stands for itself: half of the first ones can be read alone. */
export function isByLine(head: string): boolean {
  const lines = head.split('\n', 20).map((line) => line.trim());
  const filled = lines.filter(Boolean);
  return lines.length > 1 && 2 * filled.filter((line) => jsonOf(line) !== undefined).length >= filled.length;
}

/**
 * Cuts JSON of any layout into the texts of its records, with no more than one of them in memory: one record on each
 * line, a list, an object with a list in `data` or `items`, one object, several of these one after another. Where a text
 * or a bracket is not closed, nothing more is read of its line, or of the source if lines do not stand for themselves.
 */
export class JsonPieces {
  readonly #isByLine: boolean;
  readonly #recordKeys: readonly string[];
  readonly #lists: List[] = [];
  #value: Value | undefined;
  #chunk = '';
  /** Behind the last mark. */
  #at = 0;
  /** Where the part of the value that is not in its text yet begins. */
  #from = 0;
  #line = 1;
  #isInText = false;
  #isEscaped = false;
  #isBroken = false;

  /** `recordKeys` are those by which an object is a record and not an object around a list of records. */
  constructor(byLine: boolean, recordKeys: readonly string[]) {
    this.#isByLine = byLine;
    this.#recordKeys = recordKeys;
  }

  *read(chunk: string): Generator<Piece> {
    this.#chunk = chunk;
    this.#from = 0;
    this.#at = this.#isEscaped && chunk[0] !== '\n' ? 1 : 0;
    if (chunk !== '') this.#isEscaped = false;
    for (;;) {
      const pattern = this.#marks();
      pattern.lastIndex = this.#at;
      const [mark] = pattern.exec(chunk) ?? [];
      if (mark === undefined) break;
      this.#at = pattern.lastIndex;
      const piece = mark === '\n' ? this.#endLine() : this.#readMark(mark);
      if (piece) yield piece;
    }
    if (this.#value) this.#addTo(this.#value, chunk.length);
  }

  *end(): Generator<Piece> {
    const piece = this.#endOpen('; is the file cut off?');
    if (piece) yield piece;
  }

  #marks(): RegExp {
    if (this.#isBroken) return marks.lineEnd;
    if (this.#isInText) return marks.inText;
    if (!this.#value) return marks.between;
    if (this.#value.depth > 0) return marks.inObject;
    return this.#lists.length > 0 ? marks.inWord : marks.lineEnd;
  }

  #readMark(mark: string): Piece | undefined {
    if (this.#isInText) {
      this.#isEscaped = mark === '\\';
      this.#isInText = mark !== '"';
    } else if (!this.#value) this.#readBetween(mark);
    else if (mark === '"') this.#isInText = true;
    else return this.#value.depth > 0 ? this.#readInObject(this.#value, mark) : this.#readInWord(this.#value, mark);
  }

  #endLine(): Piece | undefined {
    const isWord = this.#value?.depth === 0;
    // No text of JSON holds a line end.
    this.#isBroken ||= !this.#isByLine && this.#isInText && !isWord;
    const isOver = this.#isByLine || this.#isBroken || isWord;
    const piece = isOver ? this.#endOpen(this.#isByLine ? '' : '; nothing after it was read') : undefined;
    this.#line++;
    return piece;
  }

  /** The last record, or what is still open at the end of the source or of a line that stands for itself. */
  #endOpen(hint: string): Piece | undefined {
    const value = this.#value;
    this.#isInText = this.#isEscaped = false;
    if (value?.depth === 0) return this.#finish(value, this.#at);
    const [list] = this.#lists.splice(0);
    this.#value = undefined;
    const { line, path } = value ?? { line: list?.line, path: '' };
    const what = value ? 'a text or a bracket' : 'a list';
    return line === undefined ? undefined : { line, path, problem: `not JSON: ${what} is not closed${hint}` };
  }

  /** Between records. */
  #readBetween(mark: string): void {
    if (mark === ',') return;
    if (mark === ']' && this.#lists.length > 0) {
      this.#value = this.#lists.pop()?.around;
      this.#from = this.#at;
      return;
    }
    const list = this.#lists.at(-1);
    if (list) list.index++;
    if (mark === '[' && this.#lists.length < maxLists) {
      this.#lists.push({ name: '', index: -1, line: this.#line });
      return;
    }
    const path = this.#lists.map(({ name, index }) => `${name && `.${name}`}[${index}]`).join('');
    this.#isInText = mark === '"' && this.#lists.length > 0;
    this.#from = this.#at - 1;
    this.#value = { line: this.#line, path: path.replace(/^\./, ''), text: '', depth: mark === '{' ? 1 : 0 };
  }

  /** Anything but an object in the place of a record: it ends with its line, or where the next record of a list begins. */
  #readInWord(value: Value, mark: string): Piece | undefined {
    const piece = this.#finish(value, this.#at - 1);
    if (mark !== '}') this.#readBetween(mark);
    return piece;
  }

  #readInObject(value: Value, mark: string): Piece | undefined {
    const name = mark === '[' && value.depth === 1 ? this.#listIn(value) : undefined;
    if (name !== undefined) {
      // Of what is around a list only the keys behind it still count.
      Object.assign(value, { isAround: true, text: '{"":0' });
      this.#lists.push({ name, index: -1, line: this.#line, around: value });
      this.#value = undefined;
    } else if (mark === '[' || mark === '{') value.depth++;
    else if (--value.depth === 0) return this.#finish(value, this.#at);
  }

  /** The key of a list of records that begins here, in an object that is no record itself. */
  #listIn(value: Value): string | undefined {
    this.#addTo(value, this.#at - 1);
    if (value.isRecord || value.text === undefined) return;
    const [, name] = /"(data|items)"\s*:\s*$/.exec(value.text.slice(-100)) ?? [];
    const before = name && jsonOf(`${value.text}0}`);
    value.isRecord = typeof before === 'object' && this.#recordKeys.some((key) => Object.hasOwn(before ?? {}, key));
    return value.isRecord ? undefined : name;
  }

  #addTo(value: Value, end: number): void {
    if (value.text !== undefined) value.text += this.#chunk.slice(this.#from, end);
    if (value.text && value.text.length > maxRecordLength) value.text = undefined;
    this.#from = end;
  }

  #finish(value: Value, end: number): Piece | undefined {
    this.#addTo(value, end);
    this.#value = undefined;
    const { line, path, text, isAround } = value;
    if (isAround) return;
    return text === undefined ? { line, path, problem: tooLong } : { line, path, text: text.trim() };
  }
}

/** The delimiter, if the text begins like a CSV and not like JSON: what its first line has most of. */
export function csvDelimiter(text: string): string | undefined {
  const [first = '', second = ''] = text
    .slice(0, 64 * 1024)
    .trimStart()
    .split('\n', 2);
  if ([first, second].some((line) => /^\s*[{[]/.test(line))) return undefined;
  const amount = (delimiter: string) => first.split(delimiter).length;
  const [most = ','] = [',', ';', '\t'].sort((left, right) => amount(right) - amount(left));
  return amount(most) > 1 ? most : undefined;
}

type Row = { cells: string[]; line: number };

/** The rows of a CSV: ads or advertisers of the public archive, or ads that somebody wrote down. */
export async function* csvPieces(text: AsyncIterable<string>, delimiter: string): AsyncGenerator<Piece[]> {
  // Loaded on demand: most imports are JSON.
  const { parse } = await import('csv-parse');
  const rows: Row[] = [];
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
  let read: ((cells: string[]) => { value: Json } | { problem: string }) | undefined;
  const pieces = (): Piece[] => {
    read ??= rows[0] && readerOf(rows.shift()?.cells ?? []);
    return rows.splice(0).map(({ cells, line }) => ({ line, path: '', ...read?.(cells) }) as Piece);
  };
  for await (const chunk of text) {
    const error = await new Promise<unknown>((resolve) => parser.write(chunk, resolve));
    yield pieces();
    if (error) return yield [{ line, path: '', problem: explain(error) }];
  }
  const error = await new Promise<unknown>((resolve) => parser.on('error', resolve).end(resolve));
  yield pieces();
  if (error) yield [{ line, path: '', problem: explain(error) }];
}

function explain(error: unknown): string {
  const { code, message } = error as CsvError;
  if (code === 'CSV_MAX_RECORD_SIZE' || code === 'CSV_QUOTE_NOT_CLOSED')
    return 'a row without an end; is a quotation mark not closed? Nothing after it was read';
  return `not CSV: ${message}. Nothing after it was read`;
}

/** @throws UnreadableSource when the columns are neither those of the archive nor of ads that somebody wrote down */
function readerOf(head: string[]) {
  const columns = head.map((cell) => cell.trim());
  const names = new Set(columns.map((name) => name.toLowerCase()));
  const isAds = names.has('ad_archive_id') || (names.has('id') && columns.some((name) => name.startsWith('ad_')));
  const isReport = names.has('page id') && names.has('page name');
  const own = isAds || isReport ? undefined : ownFields(columns);
  if (!isAds && !isReport && own === undefined)
    throw new UnreadableSource(
      'neither JSON nor a CSV of ads: its first line names no column "headline" or "body" (ads of your own), "ad_archive_id" (ads of the public ad library) or "Page ID" (its advertisers)',
    );
  return (cells: string[]): { value: Json } | { problem: string } => {
    const [amount, wanted] = [cells.length, columns.length];
    if (amount !== wanted)
      return { problem: `${amount} cells where the first line has ${wanted}; is a quotation mark missing?` };
    if (own) return ownAd(own, cells);
    const filled = columns.flatMap((name, at): [string, unknown][] => {
      const cell = cells[at] ?? '';
      return cell.trim() === '' ? [] : [[name, isAds ? cellValue(name, cell) : cell]];
    });
    // The key makes it an ad of the archive also where the column is called `id`.
    return { value: { ...(isAds && { ad_archive_id: undefined }), ...Object.fromEntries(filled) } };
  };
}

function ownAd(fields: readonly string[], cells: readonly string[]): { value: Json } | { problem: string } {
  try {
    return { value: adOfRow(fields, cells) };
  } catch (error) {
    return { problem: (error as Error).message };
  }
}

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
