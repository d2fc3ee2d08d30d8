import { sanitizeLine } from '../views/safe-text.ts';
import type { Content } from './jsx.d.ts';

interface TableProps {
  /** The accessible name of the table, for screen readers. */
  label: string;
  columns: readonly string[];
  /** For each column, the function that formats its numbers. Undefined for a column that contains other values. */
  columnFormatters: readonly ColumnFormatter[];
  children?: Content;
}

/** A table with a header row. `children` are the rows of the table body. */
export function Table({ label, columns, columnFormatters, children }: TableProps) {
  const className = columns.length > maxColumnsInNormalPrintSize ? 'table many' : 'table';
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must be able to scroll the table
    <section class={className} aria-label={sanitizeLine(label)} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map((name, index) => (
              <th scope="col" class={columnFormatters[index] && 'number'}>
                {sanitizeLine(name)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}

/**
 * The maximum number of columns that fit on paper in the normal font size. Wider tables are printed in a smaller font.
 */
const maxColumnsInNormalPrintSize = 8;

interface TableRowsProps {
  rows: readonly (readonly unknown[])[];
  columnFormatters: readonly ColumnFormatter[];
}

/** Renders the rows of a table body. Each number has the format of its column. */
export const TableRows = ({ rows, columnFormatters }: TableRowsProps) => (
  <>
    {rows.map((cells) => (
      <tr>
        {columnFormatters.map((formatter, index) => (
          <TableCell cell={cells[index] ?? null} formatter={formatter} />
        ))}
      </tr>
    ))}
  </>
);

function TableCell({ cell, formatter }: { cell: unknown; formatter: ColumnFormatter }) {
  if (cell === null)
    return (
      <td class={formatter && 'number'}>
        <span class="soft">–</span>
      </td>
    );
  if (formatter !== undefined && typeof cell === 'number') return <td class="number">{formatter(cell)}</td>;
  const text = formatCell(cell);
  if (datePattern.test(text)) return <td class="date">{text}</td>;
  return (
    <td>
      <bdi>{text}</bdi>
    </td>
  );
}

/** Formats a cell as text. Shortens an ISO time to the minute, or to the day if it is midnight, e.g. `2026-08-10`. */
export const formatCell = (cell: unknown): string =>
  sanitizeLine(String(cell).replace(isoMidnightPattern, '').replace(isoSecondsPattern, ' $1'));

const datePattern = /^\d{4}-\d{2}-\d{2}(?: \d{2}:\d{2})?$/;
const isoMidnightPattern = /(?<=^\d{4}-\d{2}-\d{2})T00:00:00\.000Z$/;
const isoSecondsPattern = /(?<=^\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}):\d{2}\.\d{3}Z$/;

/** The function that formats the numbers of a column. Undefined if the column contains other values. */
export type ColumnFormatter = ((number: number) => string) | undefined;

/**
 * Creates the function that formats the numbers of a column. Returns undefined if the column contains values other than
 * numbers and nulls.
 *
 * All numbers get the same number of decimals, at most two, so that readers can compare them easily. A number below 1
 * that would lose digits gets three significant digits instead.
 */
export function createColumnFormatter(columnName: string, cells: readonly unknown[]): ColumnFormatter {
  const numbers = cells.filter((cell) => cell !== null);
  if (numbers.length === 0 || !numbers.every((cell) => typeof cell === 'number')) return undefined;
  const decimals = Math.max(...numbers.map(countNeededDecimals));
  const numberFormat = new Intl.NumberFormat('en', {
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
    useGrouping: !(yearColumnNamePattern.test(columnName) && numbers.every(isYear)),
  });
  return (number) => {
    if (!Number.isFinite(number)) return String(number);
    const wouldLoseDigits = Math.abs(number) < 1 && Number(number.toFixed(decimals)) !== Number(number.toPrecision(3));
    const text = wouldLoseDigits
      ? (Math.abs(number) < 1e-6 ? tinyNumberFormat : smallNumberFormat).format(number)
      : numberFormat.format(number);
    return text.replaceAll('-', '−');
  };
}

const smallNumberFormat = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });
const tinyNumberFormat = new Intl.NumberFormat('en', { notation: 'scientific', maximumSignificantDigits: 3 });

/**
 * Matches the names of columns that probably contain years, e.g. `launchYear` or `Jahr`. Years are formatted without a
 * thousands separator: `2026`, not `2,026`.
 */
const yearColumnNamePattern = /year|\byr?\b|jahr|año|ann[ée]e/i;
const isYear = (number: number) => Number.isInteger(number) && number >= 1900 && number <= 2100;

/** Returns the number of decimals that a number needs, at most two. */
const countNeededDecimals = (number: number) =>
  (Number.isFinite(number) ? [0, 1].find((decimals) => Number(number.toFixed(decimals)) === number) : 0) ?? 2;

/** The CSS for `Table`. */
export const tableStyles = `
.table { display: block; overflow-x: auto; border: 1px solid var(--line); border-radius: 12px }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; line-height: 1.45 }
th { text-align: start; font-weight: 600; color: var(--soft); background: var(--panel); white-space: nowrap }
th, td { padding: 7px 14px; vertical-align: top }
td { border-top: 1px solid var(--line); overflow-wrap: break-word; min-width: 5em; max-width: 30em }
td.date { white-space: nowrap }
.number { text-align: end; font-variant-numeric: tabular-nums; white-space: nowrap; min-width: 0 }
@media (max-width: 560px) { th, td { padding: 6px 10px } }
`;
