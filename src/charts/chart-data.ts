import { capitalize, splitColumnName } from '../views/column-title.ts';
import { groupBy } from '../views/lists.ts';
import { formatCount } from '../views/numbers.ts';
import { joinNames, sanitizeLine } from '../views/safe-text.ts';
import { type CalendarStep, calendarOf } from './calendar.ts';
import type { ChartKind } from './chart-kinds.ts';
import { countedColumns } from './counted-columns.ts';

export interface ChartRows {
  columns: readonly string[];
  rows: readonly (readonly unknown[])[];
  /** The statement that gave the rows. It tells which columns hold counts. */
  sql?: string;
  /** Rows of the result are left out. */
  isCut?: boolean;
}

export type ChartData = Exclude<ReturnType<typeof readChartData>, { problem: string }>;
export type Series = ChartData['series'][number];
type AxisKind = 'dates' | 'numbers' | 'names';

const maxSeries = 8;
/** Places on the axis. Lines may have many points; bars need room for each. */
const maxPlaces: Record<ChartKind, Record<AxisKind, number>> = {
  bar: { names: 40, dates: 60, numbers: 60 },
  line: { names: Number.POSITIVE_INFINITY, dates: 4000, numbers: Number.POSITIVE_INFINITY },
};

/**
 * Reads the places and the series of a chart from rows. Returns a problem in words where the rows cannot be drawn.
 * @param readAt time of the last reading of the ads: the month, week or day that holds it had not ended
 */
export function readChartData(kind: ChartKind, table: ChartRows, readAt: number | undefined) {
  const counted = countedColumns({ ...table, rowCount: table.rows.length });
  const byName = seriesForNames(table, counted);
  if (byName && 'problem' in byName) return byName;
  const { columns, rows: allRows } = byName ?? table;
  const filledCells = allRows.map(([cell]) => cell).filter((cell) => cell !== null);
  const calendar = calendarOf(columns[0] ?? '', filledCells);
  const x: AxisKind = calendar
    ? 'dates'
    : filledCells.length > 0 && filledCells.every(Number.isFinite)
      ? 'numbers'
      : 'names';
  // A row without a date or number has no place on an axis of dates or numbers.
  const rows = x === 'names' ? allRows : allRows.filter(([cell]) => cell !== null);
  if (rows.length === 0) return { problem: 'the result has no rows' };
  const numbers = columns.flatMap((_, column) => (column > 0 && holdsNumbers(rows, column) ? [column] : []));
  if (numbers.length === 0)
    return { problem: `no column after the first (${columns[0]}) holds only numbers; select one, such as count(*)` };
  if (numbers.length > maxSeries)
    return { problem: `it has ${numbers.length} series, and a chart shows at most ${maxSeries}; select fewer` };
  const most = maxPlaces[kind][x];
  if (rows.length > most)
    return { problem: `${rows.length} rows are too many for bars; take at most ${most} with LIMIT, or a line` };
  const readPoints = rows.map(
    (row, index): ChartPoint => ({
      name: row[0] === null ? 'none' : sanitizeLine(String(row[0])) || 'none',
      row: index + 1,
      at: calendar ? calendar.timeOf(String(row[0])) : x === 'numbers' ? Number(row[0]) : index,
      values: numbers.map((column) => row[column] as number | null),
    }),
  );
  const points = x === 'names' ? readPoints : readPoints.toSorted((a, b) => a.at - b.at);
  const collision = points.findIndex((point, index) => point.at === points[index + 1]?.at);
  if (collision !== -1) return { problem: collisionText(points.slice(collision, collision + 2)) };
  const isSorted = points.every((point, index) => point === readPoints[index] || point === readPoints.at(-1 - index));
  const isCounted = numbers.map((column) => {
    const source = byName ? table.columns[2] : columns[column];
    return counted.has(source ?? '') && (isSorted || table.isCut !== true) && isWholeColumn(rows, column);
  });
  const filled = calendar?.step ? fillPlaces(points, calendar.step, isCounted, most) : points;
  if (filled === undefined) {
    const [from, to] = [points[0]?.name, points.at(-1)?.name];
    const remedy = kind === 'bar' ? 'group by longer times, or take a line' : 'group by longer times';
    return { problem: `there are more than ${most} places from ${from} to ${to}; ${remedy}` };
  }
  const values = filled.flatMap((point) => point.values).filter((value) => value !== null);
  const reach = (filled.at(-1)?.at ?? 0) - (filled[0]?.at ?? 0);
  const span = Math.max(0, ...values) - Math.min(0, ...values);
  if ([span, Math.abs(reach)].some((size) => size !== 0 && !(size > 1e-100 && size < 1e100)))
    return { problem: 'the numbers lie too far apart, or too near to each other, to be drawn' };
  const last = filled.at(-1);
  const end = last && calendar?.step?.nextTime(last.at);
  const isLastOpen = readAt !== undefined && last !== undefined && last.at <= readAt && readAt < (end ?? last.at);
  const without = allRows.length - rows.length;
  const notes = [
    without > 0 && `without ${formatCount(without, 'row')} that ${without === 1 ? 'has' : 'have'} none`,
    isLastOpen && `${calendar?.step?.nameOf(last.at)} so far`,
  ].filter(Boolean);
  const by = table.columns.slice(0, byName ? 2 : 1).map(splitColumnName);
  return {
    /** The title of the number column, where each series is one name. */
    of: byName && [splitColumnName(table.columns[2] ?? '')],
    title: `by ${joinNames(by)}${notes.length > 0 ? ` (${notes.join('; ')})` : ''}`,
    x,
    points: filled.map((point) => ({ ...point, isOpen: isLastOpen && point === last })),
    series: numbers.map((column, number) => ({
      title: (byName ? sanitizeLine : splitColumnName)(columns[column] ?? ''),
      /** What the column measures; undefined for a count. */
      unit: unitOf((byName ? table.columns[2] : columns[column]) ?? ''),
      /** The index of its colour. */
      number,
      values: filled.map((point) => point.values[number] ?? null),
    })),
  };
}

interface ChartPoint {
  name: string;
  /** The number of its row, from 1; 0 for a place without a row. */
  row: number;
  /** Where it stands on the axis. */
  at: number;
  values: (number | null)[];
}

const collisionText = ([first, second]: readonly ChartPoint[]): string => {
  const rows = [first?.row ?? 0, second?.row ?? 0].sort((a, b) => a - b);
  return `rows ${rows[0]} and ${rows[1]} are both for ${first?.name}; select one row for each, or exactly three columns, of which the second is the name of a series`;
};

function holdsNumbers(rows: ChartRows['rows'], column: number): boolean {
  const cells = rows.map((row) => row[column]).filter((cell) => cell !== null);
  return cells.length > 0 && cells.every(Number.isFinite);
}

const isWholeColumn = (rows: ChartRows['rows'], column: number): boolean =>
  rows.every((row) => row[column] === null || (Number.isInteger(row[column]) && Number(row[column]) >= 0));

/**
 * Turns rows of a place, the name of a series and a number into one row for each place, with a column for each name.
 * Returns undefined for other rows, and a problem where two rows have the same place and name.
 */
function seriesForNames(
  { columns, rows, isCut }: ChartRows,
  counted: ReadonlySet<string>,
): ChartRows | { problem: string } | undefined {
  const [places, names] = [rows.map(([cell]) => cell), rows.map(([, cell]) => cell)];
  if (columns.length !== 3 || !holdsNumbers(rows, 2) || new Set(places).size === rows.length) return undefined;
  if (!names.every((cell) => typeof cell === 'string' || cell === null)) return undefined;
  const series: unknown[] = [...new Set(names)];
  // Where rows are left out, a missing one may have had any number.
  const missing = counted.has(columns[2] ?? '') && isCut !== true ? 0 : null;
  const byPlace = new Map<unknown, { row: unknown[]; rowNumbers: Map<unknown, number> }>();
  for (const [index, [place, name, value]] of rows.entries()) {
    const { row, rowNumbers } = byPlace.get(place) ?? {
      row: [place, ...series.map(() => missing)],
      rowNumbers: new Map<unknown, number>(),
    };
    const before = rowNumbers.get(name);
    if (before !== undefined) {
      const about = joinNames([place, name].map((cell) => sanitizeLine(String(cell ?? 'none')) || 'none'));
      return {
        problem: `rows ${before} and ${index + 1} are both for ${about}; group by both columns, or select a name that tells them apart`,
      };
    }
    rowNumbers.set(name, index + 1);
    row[1 + series.indexOf(name)] = value;
    byPlace.set(place, { row, rowNumbers });
  }
  const titles = series.map((name) => String(name ?? 'none'));
  return { columns: [columns[0] ?? '', ...titles], rows: [...byPlace.values()].map(({ row }) => row) };
}

/**
 * Adds the months, weeks or days that lie between the points and have no row: zero in counts, a gap in other numbers.
 * Returns undefined where there would be more than `most` places.
 */
function fillPlaces(
  points: readonly ChartPoint[],
  { nextTime, nameOf, isCertain, hasGaps }: CalendarStep,
  isCounted: readonly boolean[],
  most: number,
): readonly ChartPoint[] | undefined {
  const hasZeros = isCertain && isCounted.includes(true);
  if (!hasZeros && !hasGaps) return points;
  const [first, last] = [points[0]?.at ?? 0, points.at(-1)?.at ?? 0];
  const byTime = new Map(points.map((point) => [point.at, point]));
  const filled: ChartPoint[] = [];
  for (let at = first; at <= last; at = nextTime(at)) {
    if (filled.length >= most) return hasZeros ? undefined : points;
    const values = isCounted.map((isCount) => (isCount && isCertain ? 0 : null));
    filled.push(byTime.get(at) ?? { name: nameOf(at), row: 0, at, values });
  }
  return filled;
}

/** What a number column measures, by its name. */
const units: readonly [string, RegExp][] = [
  ['days', /days|duration|longest/i],
  ['share', /share|percent|pct|rate|ratio|%/i],
  ['money', /spend|cost|price|revenue|credit|usd|eur/i],
  ['reach', /reach|impression|likes|views|clicks|audience/i],
];
const unitOf = (name: string) => units.find(([, pattern]) => pattern.test(name))?.[0];

/** Returns a panel for each unit: series of one unit share an axis. */
export function panelsOf(data: ChartData) {
  const byUnit = [...groupBy(data.series, ({ unit }) => unit).values()];
  return byUnit.map((series) => {
    const values = series.flatMap((one) => one.values).filter((value) => value !== null);
    const title = capitalize(`${joinNames(data.of ?? series.map((one) => one.title))} ${data.title}`);
    const [min, max] = [Math.min(0, ...values), Math.max(0, ...values)];
    return { ...data, title, series, min, max, isSmall: byUnit.length > 1 };
  });
}

export type Panel = ReturnType<typeof panelsOf>[number];
