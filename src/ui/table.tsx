import { sanitizeLine } from '../views/safe-text.ts';
import type { Content } from './jsx.d.ts';

interface TableProps {
  /** What a screen reader calls it. */
  label: string;
  columns: readonly string[];
  /** For each column, how it writes its numbers; undefined for one that holds other values, too. */
  formats: readonly ColumnFormat[];
  children?: Content;
}

export const Table = ({ label, columns, formats, children }: TableProps) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is reached by keyboard
  <section class={columns.length > maxOnPaper ? 'table many' : 'table'} aria-label={sanitizeLine(label)} tabIndex={0}>
    <table>
      <thead>
        <tr>
          {columns.map((name, index) => (
            <th scope="col" class={formats[index] && 'number'}>
              {sanitizeLine(name)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  </section>
);

/** Columns that paper holds in letters of the usual size. */
const maxOnPaper = 8;

interface RowsProps {
  rows: readonly (readonly unknown[])[];
  formats: readonly ColumnFormat[];
}

export const TableRows = ({ rows, formats }: RowsProps) => (
  <>
    {rows.map((cells) => (
      <tr>
        {formats.map((format, index) => (
          <Cell cell={cells[index] ?? null} format={format} />
        ))}
      </tr>
    ))}
  </>
);

function Cell({ cell, format }: { cell: unknown; format: ColumnFormat }) {
  if (cell === null)
    return (
      <td class={format && 'number'}>
        <span class="soft">–</span>
      </td>
    );
  if (format !== undefined && typeof cell === 'number') return <td class="number">{format(cell)}</td>;
  const words = cellText(cell);
  if (startsWithDate.test(words)) return <td class="date">{words}</td>;
  return (
    <td>
      <bdi>{words}</bdi>
    </td>
  );
}

/** A value as people write it: times as the dataset writes them are days, or to the minute. */
export const cellText = (cell: unknown): string =>
  sanitizeLine(String(cell).replace(isoMidnight, '').replace(isoSeconds, ' $1'));

const startsWithDate = /^\d{4}-\d{2}-\d{2}(?: \d{2}:\d{2})?$/;
const isoMidnight = /(?<=^\d{4}-\d{2}-\d{2})T00:00:00\.000Z$/;
const isoSeconds = /(?<=^\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}):\d{2}\.\d{3}Z$/;

export type ColumnFormat = ((number: number) => string) | undefined;

/**
 * How a column writes its numbers, so that they can be compared: with as many decimals, two at most, and with three
 * significant digits where that says too little of a number below one.
 */
export function columnFormat(name: string, cells: readonly unknown[]): ColumnFormat {
  const numbers = cells.filter((cell) => cell !== null);
  if (numbers.length === 0 || !numbers.every((cell) => typeof cell === 'number')) return undefined;
  const digits = Math.max(...numbers.map(decimals));
  const format = new Intl.NumberFormat('en', {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
    useGrouping: !(yearName.test(name) && numbers.every(isYear)),
  });
  return (number) => {
    if (!Number.isFinite(number)) return String(number);
    const isSmall = Math.abs(number) < 1 && Number(number.toFixed(digits)) !== Number(number.toPrecision(3));
    const text = isSmall ? (Math.abs(number) < 1e-6 ? tiny : small).format(number) : format.format(number);
    return text.replaceAll('-', '−');
  };
}

const small = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });
const tiny = new Intl.NumberFormat('en', { notation: 'scientific', maximumSignificantDigits: 3 });

/** Years have no comma. */
const yearName = /year|\byr?\b|jahr|año|ann[ée]e/i;
const isYear = (number: number) => Number.isInteger(number) && number >= 1900 && number <= 2100;

const decimals = (number: number) =>
  (Number.isFinite(number) ? [0, 1].find((digits) => Number(number.toFixed(digits)) === number) : 0) ?? 2;

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
