import type { CsvError } from 'csv-parse';
import { UnreadableSource } from './import-text.ts';
import type { Json } from './loose-values.ts';
import { maxRecordLength, type Piece } from './piece.ts';

/** Where the columns of a CSV end, by its first line. */
const delimiterOf = (line: string) =>
  [',', ';', '\t']
    .map((delimiter) => ({ delimiter, count: line.split(delimiter).length - 1 }))
    .sort((left, right) => right.count - left.count)
    .find(({ count }) => count > 0)?.delimiter;

/** The delimiter, if the text begins like a CSV and not like JSON. */
export function csvDelimiter(text: string): string | undefined {
  const [first = '', second = ''] = text
    .slice(0, 64 * 1024)
    .trimStart()
    .split('\n', 2);
  return [first, second].some((line) => /^\s*[{[]/.test(line)) ? undefined : delimiterOf(first);
}

type Row = { cells: string[]; line: number };

/** The rows of a CSV of the public archive: ads, or the advertisers of its report. */
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
  let columns: string[] | undefined;
  const pieces = (): Piece[] => {
    columns ??= rows[0] && columnsOf(rows.shift()?.cells ?? []);
    return rows.splice(0).map(({ cells, line }) => ({ line, path: '', ...pieceOf(cells, columns ?? []) }));
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

/** @throws UnreadableSource when the columns are none that the archive uses */
function columnsOf(cells: string[]): string[] {
  const columns = cells.map((cell) => cell.trim());
  const names = new Set(columns.map((name) => name.toLowerCase()));
  if (names.has('ad_archive_id') || (names.has('id') && columns.some((name) => name.startsWith('ad_')))) return columns;
  if (names.has('page id') && names.has('page name')) return columns;
  throw new UnreadableSource(
    'neither JSON nor a CSV of the public ad library, which has a column "ad_archive_id" (ads) or "Page ID" (advertisers) in its first line',
  );
}

function pieceOf(cells: string[], columns: string[]): { value: Json } | { problem: string } {
  if (cells.length !== columns.length)
    return {
      problem: `${cells.length} cells where the first line has ${columns.length}; is a quotation mark missing?`,
    };
  const filled = columns.flatMap((name, at): [string, unknown][] => {
    const cell = cells[at] ?? '';
    return cell.trim() === '' ? [] : [[name, cell]];
  });
  if (columns.some((name) => name.toLowerCase() === 'page id')) return { value: Object.fromEntries(filled) };
  const read = filled.map(([name, cell]) => [name, cellValue(name, String(cell))]);
  // The key makes it an ad of the archive also where the column is called `id`.
  return { value: { ad_archive_id: undefined, ...Object.fromEntries(read) } };
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
