import { stringify } from 'csv-stringify/sync';
import { invalidRequest } from '../api/call.ts';
import { count } from '../present/list-text.ts';
import type { DatasetContents } from '../state/dataset.ts';
import { type CoverageView, uncoveredText } from './coverage.ts';
import { countOutside, questionJson, type WholeGathering, wholeOf } from './gatherings.ts';
import type { SqlExport } from './sql/pool.ts';
import { type Cell, columnsOf, describedColumns, isoTime } from './tables.ts';
import { type RunStatement, type TypedFormat, writeTyped } from './typed-export.ts';

export type ExportFormat = 'csv' | 'jsonl' | TypedFormat;

export interface ExportCounts {
  rows: number;
  /** Cells of a sheet that were cut. */
  cut: number;
  /** The values of the column `id` or `adId`, if there is one. */
  ids: Set<Cell> | undefined;
}

interface ExportTarget {
  format: ExportFormat;
  /** Takes the next bytes; the next rows are read when it is done with them. */
  write(bytes: Uint8Array): void | Promise<void>;
  /** An export that would be larger fails. */
  maxBytes: number;
}

/** Every ad of the dataset, all columns but `json`. */
export const everyAdSql = `SELECT ${columnsOf('ads')
  .filter((name) => name !== 'json')
  .join(', ')} FROM ads ORDER BY rowid`;

/** Writes the rows of a statement as they come, never all of them at once in memory. */
export async function writeExport(run: RunStatement, { format, ...target }: ExportTarget): Promise<ExportCounts> {
  let bytes = 0;
  const write = async (part: Uint8Array) => {
    bytes += part.length;
    if (bytes > target.maxBytes) {
      throw invalidRequest(`The export would have more than ${target.maxBytes} bytes. Select fewer columns or rows.`);
    }
    await target.write(part);
  };
  const counts: ExportCounts = { rows: 0, cut: 0, ids: undefined };
  const counted: RunStatement = (read) => run((exported) => read({ ...exported, rows: countRows(exported, counts) }));
  if (format === 'csv' || format === 'jsonl') {
    await counted(({ columns, rows }) => writeText(format, { columns, rows }, (text) => write(Buffer.from(text))));
  } else {
    counts.cut = await writeTyped(format, counted, write);
  }
  return counts;
}

/** Starts counting again at the first row. */
async function* countRows({ columns, rows }: SqlExport, counts: ExportCounts): SqlExport['rows'] {
  const [column] = columns.flatMap((name, index) => (name === 'id' || name === 'adId' ? [index] : []));
  counts.rows = 0;
  counts.ids = column === undefined ? undefined : new Set();
  for await (const batch of rows) {
    counts.rows += batch.length;
    if (column !== undefined) for (const row of batch) counts.ids?.add(row[column] ?? null);
    yield batch;
  }
}

async function writeText(
  format: 'csv' | 'jsonl',
  { columns, rows }: SqlExport,
  write: (text: string) => Promise<void>,
): Promise<void> {
  if (format === 'csv') await write(`${byteOrderMark}${csvOf([columns])}`);
  for await (const batch of rows) {
    if (batch.length > 0) await write(format === 'csv' ? csvOf(batch) : jsonLinesOf(batch, columns));
  }
}

/** So that spreadsheets read UTF-8. */
const byteOrderMark = '\ufeff';

/** RFC 4180, and in quotes whatever one of the separators of spreadsheets would cut. */
const csvOf = (rows: readonly (readonly Cell[])[]): string =>
  stringify(rows.map(withoutFormulas), { record_delimiter: 'windows', quoted_match: /[;|\t\r\n]/ });

/**
 * An apostrophe before what a spreadsheet would run as a formula. With another list separator than ours it sees no
 * quotes, and begins cells inside of a text, which go on to the end of the line and so into our next cells; there a line
 * `- of a list` that calls nothing stays as it is.
 */
function withoutFormulas(row: readonly Cell[]): Cell[] {
  let isCallBehind = false;
  const safe = row.toReversed().map((cell) => {
    if (typeof cell !== 'string') return cell;
    const goesOn = isCallBehind;
    isCallBehind ||= call.test(cell);
    // Every second part is a line break.
    const lines = cell.replace(formula, "'").split(/([\r\n])/);
    return lines.map((line, at) => withoutCells(line, at > 0, goesOn && at === lines.length - 1)).join('');
  });
  return safe.reverse();
}

/** @param isBehindBreak a cell may begin where the line does. @param goesOn behind the line something is called */
function withoutCells(line: string, isBehindBreak: boolean, goesOn: boolean): string {
  const lastCall = goesOn ? line.length : Math.max(line.lastIndexOf('|'), line.lastIndexOf('('));
  return line.replace(isBehindBreak ? cellInLaterLine : cellInLine, (before, start: number) => {
    const sign = start + before.length;
    const isOfList = '+-'.includes(line.charAt(sign)) && line.charAt(sign + 1) === ' ' && sign > lastCall;
    return isOfList ? before : `${before}'`;
  });
}

const call = /[|(]/;
const formula = /^(?=[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n])/;
const cellInLine = /[;|\t]"*(?=[=+\-@\uff1d\uff0b\uff0d\uff20])/g;
const cellInLaterLine = /(?:^|[;|\t])"*(?=[=+\-@\uff1d\uff0b\uff0d\uff20])/g;

const jsonLinesOf = (rows: readonly (readonly Cell[])[], columns: readonly string[]): string =>
  rows
    .map((row) => `${JSON.stringify(Object.fromEntries(columns.map((name, index) => [name, row[index] ?? null])))}\n`)
    .join('');

interface MethodsNote {
  contents: DatasetContents;
  coverage: CoverageView;
  sql: string;
  rows: number;
  /** Ids of the ads in the rows, as `idKey` writes them, where these are known. */
  adIds?: ReadonlySet<string> | undefined;
  /** Milliseconds since the epoch. */
  now: number;
  version: string;
}

/** The note beside an export, as Markdown: questions, dates, totals, coverage. */
export function methodsNote({ contents, coverage, sql, rows, adIds, now, version }: MethodsNote): string {
  const { ads, pages, evicted } = contents;
  const gatherings = contents.gatherings
    .map((gathering) => wholeOf(gathering, contents))
    .filter((gathering) => !adIds || [...gathering.adIds].some((id) => adIds.has(id)));
  const others = contents.gatherings.length - gatherings.length;
  const outside = countOutside(contents);
  return `# How these ads were gathered

Exported ${isoTime(now)} by ad-library-mcp ${version}: ${rows} rows from ${ads.length} ads and ${pages.length} pages.

## Statement

${indented(sql)}

## Gatherings

${gatherings.length === 0 && others === 0 ? 'None: the ads are those that searches happened to show. Shares and totals say nothing about all ads there are.' : [tableHead, ...gatherings.map(tableRow)].join('\n')}
${others > 0 ? `\n${count(others, 'other gathering')} of the dataset read none of these ads.\n` : ''}${outside > 0 ? `\n${outside} of the ads came only from searches or earlier gatherings. The newest gathering of each question does not have them.${uncoveredText(coverage)}\n` : ''}${evicted.ads > 0 ? `\n${evicted.ads} ads were removed to make room.\n` : ''}
## What to keep in mind

- "Found" is the total that the service gave, "read" the number of different ads that were read. A gathering that is not complete is a part of what there is, in the service's order, and no random sample.
- Each ad is in its newest version. A field that a later answer left out keeps its earlier value.
${describedColumns()
  .flatMap(({ name, meaning }) => (meaning === undefined ? [] : `- \`${name}\`: ${meaning}.\n`))
  .join(
    '',
  )}- \`duplicates\`: copies of the ad, itself included. Dates are in UTC; one that came without an offset counts as UTC.
- Reach, spend, revenue, trend and performance are the service's own estimates; its document does not define them.
- An ad that is no longer found has not necessarily ended.
`;
}

const indented = (sql: string) => sql.trim().replace(/^/gm, '    ');

const tableHead = '| gathering | question | gathered | found | read | complete |\n|---|---|---|---|---|---|';

function tableRow(gathering: WholeGathering): string {
  const { id, gatheredAt, found, foundInParts, adIds, complete } = gathering;
  const cells = [
    id,
    `\`${questionJson(gathering).replace(/[`|\n\r]/g, ' ')}\``,
    isoTime(gatheredAt),
    found ?? foundInParts ?? 'not stated',
    adIds.size,
    complete ? 'yes' : 'no',
  ];
  return `| ${cells.join(' | ')} |`;
}
