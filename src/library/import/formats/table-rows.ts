import { isMissingValue } from '../values/column-value-parser.ts';
import { namibiaCode } from '../values/countries.ts';
import { parseColumnPath, type TableFormat } from './formats.ts';
import { SourceRecord } from './source-record.ts';

/** Creates a function that converts a row of a table to a record. The function omits empty cells. */
export function createRowConverter(columnNames: readonly string[], { format, fields }: TableFormat) {
  if (format.hasColumnPaths) {
    const paths = columnNames.map(parseColumnPath);
    const canBeNamibia = columnNames.map((name, index) => fields[index] === 'countries' || /region_?code$/i.test(name));
    const hasValue = (cell: string, index: number) =>
      !isMissingValue(cell) || (canBeNamibia[index] === true && cell.trim() === namibiaCode);
    return (cells: readonly string[]) => {
      const cellsWithValues = cells.map((cell, index) => (hasValue(cell, index) ? cell : ''));
      return new SourceRecord(Object.entries(buildObject(columnNames, paths, cellsWithValues)), { isTableRow: true });
    };
  }
  const ignoredNames = new Set(
    columnNames.filter((name, index) => fields[index] === undefined && columnNames.indexOf(name) === index),
  );
  return (cells: readonly string[]): SourceRecord => {
    const cellByName = new Map<string, string>();
    for (const [index, name] of columnNames.entries()) {
      const cell = cells[index] ?? '';
      if (cell.trim() !== '' && !cellByName.has(name)) cellByName.set(name, cell);
    }
    return new SourceRecord(cellByName, { ignoredNames, isTableRow: true });
  };
}

type ColumnTree = Map<string, ColumnTree | string>;

/**
 * Builds an object from the cells of a flattened row. For example, the `snapshot/body/text` column becomes `{ snapshot:
 * { body: { text: … } } }`. An object whose keys are all numbers becomes a list.
 */
function buildObject(
  columnNames: readonly string[],
  columnPaths: readonly string[][],
  cells: readonly string[],
): object {
  const rootColumns: ColumnTree = new Map();
  for (const [index, path] of columnPaths.entries()) {
    const cell = cells[index] ?? '';
    const column = columnNames[index] ?? '';
    // Skip columns without a name, e.g. the row numbers that pandas adds, because no field can contain them.
    if (cell.trim() === '' || column.trim() === '') continue;
    if (!setCell(rootColumns, path, cell) && !rootColumns.has(column)) rootColumns.set(column, cell);
  }
  return Object.fromEntries(Array.from(rootColumns, ([key, value]) => [key, toPlainValue(value)]));
}

/**
 * Stores a cell under its path in a tree of columns. Returns false if another column already has a value on this path.
 */
function setCell(rootColumns: ColumnTree, columnPath: readonly string[], cell: string): boolean {
  let subtree = rootColumns;
  for (const key of columnPath.slice(0, -1)) {
    const child = subtree.get(key) ?? new Map();
    if (typeof child === 'string') return false;
    subtree.set(key, child);
    subtree = child;
  }
  const lastKey = columnPath.at(-1) ?? '';
  if (subtree.has(lastKey)) return false;
  subtree.set(lastKey, cell);
  return true;
}

function toPlainValue(value: ColumnTree | string): unknown {
  if (typeof value === 'string') return value;
  const entries = Array.from(value, ([key, child]) => [key, toPlainValue(child)] as const);
  return entries.every(([key]) => /^\d{1,6}$/.test(key))
    ? entries.sort(([leftKey], [rightKey]) => Number(leftKey) - Number(rightKey)).map(([, child]) => child)
    : Object.fromEntries(entries);
}
