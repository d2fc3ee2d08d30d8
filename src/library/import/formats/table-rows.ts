import { isMissing } from '../values/column-value-parser.ts';
import { parseColumnPath, type TableFormat } from './formats.ts';
import { SourceRecord } from './source-record.ts';

/** Makes records of the rows of a table, from the cells that are not empty. */
export function createRowReader(columns: readonly string[], { format, fields }: TableFormat) {
  if (format.hasColumnPaths) {
    const paths = columns.map(parseColumnPath);
    const hasValue = (cell: string, at: number) =>
      !isMissing(cell) || (fields[at] === 'countries' && cell.trim() === namibia);
    return (cells: readonly string[]) => {
      const filled = cells.map((cell, at) => (hasValue(cell, at) ? cell : ''));
      return new SourceRecord(Object.entries(objectOf(columns, paths, filled)));
    };
  }
  const unread = new Set(columns.filter((name, at) => fields[at] === undefined && columns.indexOf(name) === at));
  return (cells: readonly string[]): SourceRecord => {
    const named = new Map<string, string>();
    for (const [at, name] of columns.entries()) {
      const cell = cells[at] ?? '';
      if (cell.trim() !== '' && !named.has(name)) named.set(name, cell);
    }
    return new SourceRecord(named, { unread });
  };
}

/** The code of the country, which R writes for a missing value. */
const namibia = 'NA';

type Branch = Map<string, Branch | string>;

/** `{ snapshot: { body: { text: … } } }` of the column `snapshot/body/text`; numbers in paths make lists. */
function objectOf(columns: readonly string[], paths: readonly string[][], cells: readonly string[]): object {
  const root: Branch = new Map();
  for (const [at, path] of paths.entries()) {
    const cell = cells[at] ?? '';
    if (cell.trim() === '') continue;
    if (!put(root, path, cell) && !root.has(columns[at] ?? '')) root.set(columns[at] ?? '', cell);
  }
  return Object.fromEntries(Array.from(root, ([key, value]) => [key, plainOf(value)]));
}

/** Returns false where another column already has a value on the path. */
function put(root: Branch, path: readonly string[], cell: string): boolean {
  let branch = root;
  for (const part of path.slice(0, -1)) {
    const next = branch.get(part) ?? new Map();
    if (typeof next === 'string') return false;
    branch.set(part, next);
    branch = next;
  }
  const last = path.at(-1) ?? '';
  if (branch.has(last)) return false;
  branch.set(last, cell);
  return true;
}

function plainOf(value: Branch | string): unknown {
  if (typeof value === 'string') return value;
  const entries = Array.from(value, ([key, one]) => [key, plainOf(one)] as const);
  return entries.every(([key]) => /^\d{1,6}$/.test(key))
    ? entries.sort(([one], [other]) => Number(one) - Number(other)).map(([, one]) => one)
    : Object.fromEntries(entries);
}
