import { isObject } from '../../../views/view.ts';

/**
 * Converts a table that pandas wrote with `to_json` into one record per row. With `orient="split"`, the table is `{
 * columns, index, data }`. With `orient="columns"` (the default), each column is an object whose keys are row numbers.
 * @returns undefined if the value is not such a table
 */
export function readPandasTable(value: unknown): Record<string, unknown>[] | undefined {
  if (!isObject(value)) return undefined;
  const { columns, data } = value;
  if (Array.isArray(columns) && Array.isArray(data) && [...columns].every((name) => typeof name === 'string'))
    return data.every(Array.isArray)
      ? data.map((cells) => Object.fromEntries(columns.map((name, index) => [name, cells[index]])))
      : undefined;
  const entries = Object.entries(value);
  const rowNumbers = Object.keys((entries[0]?.[1] as object | null) ?? {});
  const isColumn = (column: unknown): column is Record<string, unknown> =>
    isObject(column) && !Array.isArray(column) && Object.keys(column).join() === rowNumbers.join();
  // The row numbers of a filtered table have gaps.
  if (rowNumbers.length === 0 || !rowNumbers.every((key) => /^\d+$/.test(key))) return undefined;
  if (!entries.every(([, cells]) => isColumn(cells))) return undefined;
  // Cells that are all objects are records, and the numbers are their ids.
  const cells = entries.flatMap(([, column]) => Object.values(column as object));
  if (cells.some(isObject) && cells.every((cell) => cell === null || isObject(cell))) return undefined;
  return rowNumbers.map((row) =>
    Object.fromEntries(entries.map(([name, cells]) => [name, (cells as Record<string, unknown>)[row]])),
  );
}
