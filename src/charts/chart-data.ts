import { capitalize, splitColumnName } from '../views/column-title.ts';
import { groupBy } from '../views/group-by.ts';
import { formatCount } from '../views/numbers.ts';
import { joinNames, sanitizeLine } from '../views/safe-text.ts';
import { type CalendarUnit, createCalendar } from './calendar.ts';
import type { ChartKind } from './chart-kinds.ts';
import { canExcludeDates, findCountColumns } from './count-columns.ts';

/** The rows of a query result from which a chart is drawn. The cells of each row are in the order of `columns`. */
export interface ChartRows {
  columns: readonly string[];
  rows: readonly (readonly unknown[])[];
  /** The SQL statement that returned the rows. It shows which columns contain counts, e.g. `count(*) AS ads`. */
  sql?: string;
  /** True if the result has more rows than `rows` contains. */
  isTruncated?: boolean;
}

/** The content of a chart: its title, its points on the axis, and its series. */
export type ChartData = Exclude<ReturnType<typeof buildChartData>, { problem: string }>;
/**
 * One series of a chart, drawn in one color. A series shows the numbers of a number column, or only the numbers of rows
 * that have the same name in the second column.
 */
export type Series = ChartData['series'][number];
type AxisKind = 'dates' | 'numbers' | 'names';

const maxSeries = 8;
/**
 * The maximum number of points for each chart type and axis. Bars have lower limits than lines, because every bar needs
 * a minimum width.
 */
const maxPoints: Record<ChartKind, Record<AxisKind, number>> = {
  bar: { names: 40, dates: 60, numbers: 60 },
  line: { names: Number.POSITIVE_INFINITY, dates: 4000, numbers: Number.POSITIVE_INFINITY },
};

/**
 * Converts rows to the points and series of a chart. If the rows cannot be drawn, returns only `problem`, a text that
 * says why.
 * @param readAtMs time at which the ads were last read, in milliseconds since the Unix epoch; each month, week or day
 * that ends after this time is marked as unfinished
 */
export function buildChartData(kind: ChartKind, table: ChartRows, readAtMs: number | undefined) {
  const countColumnNames = findCountColumns({ ...table, rowCount: table.rows.length });
  const pivotedRows = pivotSeries(table, countColumnNames);
  if (pivotedRows && 'problem' in pivotedRows) return pivotedRows;
  const { columns, rows: allRows } = pivotedRows ?? table;
  const filledCells = allRows.map(([cell]) => cell).filter((cell) => cell !== null);
  const calendar = createCalendar(columns[0] ?? '', filledCells, table.sql);
  const axisKind: AxisKind = calendar
    ? 'dates'
    : filledCells.length > 0 && filledCells.every(Number.isFinite)
      ? 'numbers'
      : 'names';
  // Omit rows without a date or number, because they have no position on the axis.
  const isOnAxis = ([cell]: readonly unknown[]) => axisKind === 'names' || cell !== null;
  const rowsOnAxis = allRows.flatMap((row, index) =>
    isOnAxis(row) ? [{ row, rowNumber: pivotedRows?.rowNumbers[index] ?? index + 1 }] : [],
  );
  const rows = rowsOnAxis.map(({ row }) => row);
  if (rows.length === 0) return { problem: 'the result has no rows' };
  const numberColumns = columns.flatMap((_, columnIndex) =>
    columnIndex > 0 && hasOnlyNumbers(rows, columnIndex) ? [columnIndex] : [],
  );
  if (numberColumns.length === 0)
    return {
      problem: `no column after the first (${columns[0]}) holds only numbers; select one, such as count(*)${hasLargeIntegerColumn({ columns, rows }) ? ', or CAST(x AS REAL) if x is an integer above 2^53, which is returned as text' : ''}`,
    };
  if (numberColumns.length > maxSeries)
    return { problem: `it has ${numberColumns.length} series, and a chart shows at most ${maxSeries}; select fewer` };
  const maxPointCount = maxPoints[kind][axisKind];
  if (rows.length > maxPointCount)
    return {
      problem: `${rows.length} rows are too many for bars; take at most ${maxPointCount} with LIMIT, or a line`,
    };
  const unsortedPoints = rowsOnAxis.map(
    ({ row, rowNumber }, index): ChartPoint => ({
      name: row[0] === null ? 'none' : sanitizeLine(String(row[0])) || 'none',
      rowNumber,
      position: calendar ? calendar.parseStartMs(String(row[0])) : axisKind === 'numbers' ? Number(row[0]) : index,
      values: numberColumns.map((column) => row[column] as number | null),
    }),
  );
  const points = axisKind === 'names' ? unsortedPoints : unsortedPoints.toSorted((a, b) => a.position - b.position);
  const duplicateIndex = points.findIndex((point, index) => point.position === points[index + 1]?.position);
  if (duplicateIndex !== -1)
    return { problem: explainDuplicatePosition(points.slice(duplicateIndex, duplicateIndex + 2)) };
  const isSorted = points.every(
    (point, index) => point === unsortedPoints[index] || point === unsortedPoints.at(-1 - index),
  );
  const isCountBySeries = numberColumns.map((column) => {
    const sourceColumn = pivotedRows ? table.columns[2] : columns[column];
    return (
      countColumnNames.has(sourceColumn ?? '') &&
      (isSorted || table.isTruncated !== true) &&
      hasOnlyWholeNumbers(rows, column)
    );
  });
  const hasAllDates = !canExcludeDates(table.sql ?? '', table.columns[0] ?? '');
  const isZeroFilledBySeries = isCountBySeries.map((isCount) => isCount && hasAllDates);
  const filledPoints = calendar?.unit ? fillGaps(points, calendar.unit, isZeroFilledBySeries, maxPointCount) : points;
  if (filledPoints === undefined) {
    const [from, to] = [points[0]?.name, points.at(-1)?.name];
    const advice = kind === 'bar' ? 'group by longer times, or take a line' : 'group by longer times';
    return { problem: `there are more than ${maxPointCount} places from ${from} to ${to}; ${advice}` };
  }
  const values = filledPoints.flatMap((point) => point.values).filter((value) => value !== null);
  const axisSpan = (filledPoints.at(-1)?.position ?? 0) - (filledPoints[0]?.position ?? 0);
  const valueSpan = Math.max(0, ...values) - Math.min(0, ...values);
  if ([valueSpan, Math.abs(axisSpan)].some((size) => size !== 0 && !(size > 1e-100 && size < 1e100)))
    return { problem: 'the numbers lie too far apart, or too near to each other, to be drawn' };
  const unit = calendar?.unit;
  const isUnfinished = ({ position }: ChartPoint): boolean =>
    unit !== undefined && readAtMs !== undefined && readAtMs < unit.getNextStartMs(position);
  const unfinishedPoints = filledPoints.filter(isUnfinished);
  const unfinishedNames = [unfinishedPoints.at(0), unfinishedPoints.at(-1)].flatMap((point) =>
    point && unit ? [unit.formatName(point.position)] : [],
  );
  const omittedRowCount = table.rows.filter((row) => !isOnAxis(row)).length;
  const notes = [
    omittedRowCount > 0 &&
      `without ${formatCount(omittedRowCount, 'row')} that ${omittedRowCount === 1 ? 'has' : 'have'} none`,
    unfinishedNames.length > 0 && `${[...new Set(unfinishedNames)].join(' to ')} so far`,
  ].filter(Boolean);
  const groupTitles = table.columns.slice(0, pivotedRows ? 2 : 1).map(splitColumnName);
  return {
    /**
     * The title of the number column, e.g. `spend`, as a list with one element. Undefined unless the series are named
     * after values of the second column, e.g. `Germany`, because such names do not say what the numbers measure.
     */
    measureTitles: pivotedRows && [splitColumnName(table.columns[2] ?? '')],
    title: `by ${joinNames(groupTitles)}${notes.length > 0 ? ` (${notes.join('; ')})` : ''}`,
    axisKind,
    points: filledPoints.map((point) => ({ ...point, isUnfinished: isUnfinished(point) })),
    series: numberColumns.map((column, seriesIndex) => ({
      title: (pivotedRows ? sanitizeLine : splitColumnName)(columns[column] ?? ''),
      /** The unit of the number column, e.g. `days`. Undefined for counts. */
      unit: getUnit((pivotedRows ? table.columns[2] : columns[column]) ?? ''),
      /**
       * The index of the series, which determines its color. The color stays the same if the series are divided into
       * panels.
       */
      seriesIndex,
      /** The text that replaces the title if the font has none of its letters, e.g. `column 2`. */
      fallbackTitle: pivotedRows ? `row ${pivotedRows.seriesRowNumbers[column - 1]}` : `column ${seriesIndex + 2}`,
      values: filledPoints.map((point) => point.values[seriesIndex] ?? null),
    })),
  };
}

/** One position on the axis, e.g. a month, with the values of all series. */
interface ChartPoint {
  name: string;
  /**
   * The number of the table row, from 1. If several rows belong to the point, it is the number of the first. It is 0
   * for a point that was added for a missing date.
   */
  rowNumber: number;
  /** The position on the axis: a time in milliseconds, a number, or the index of the row. */
  position: number;
  values: (number | null)[];
}

const explainDuplicatePosition = ([first, second]: readonly ChartPoint[]): string => {
  const rows = [first?.rowNumber ?? 0, second?.rowNumber ?? 0].sort((a, b) => a - b);
  return `rows ${rows[0]} and ${rows[1]} are both for ${first?.name}; select one row for each, or exactly three columns, of which the second is the name of a series`;
};

function hasOnlyNumbers(rows: ChartRows['rows'], column: number): boolean {
  const cells = rows.map((row) => row[column]).filter((cell) => cell !== null);
  return cells.length > 0 && cells.every(Number.isFinite);
}

/**
 * Returns true if a column after the first has integers that SQL results contain as text, because a number cannot
 * represent them exactly. Ignores columns of ids, because their digits are a text that no chart can show.
 */
const hasLargeIntegerColumn = ({ columns, rows }: Pick<ChartRows, 'columns' | 'rows'>): boolean =>
  columns.some((name, column) => {
    if (column === 0 || /id$/i.test(name)) return false;
    const cells = rows.map((row) => row[column]).filter((cell) => cell !== null);
    return cells.some(isLargeInteger) && cells.every((cell) => Number.isFinite(cell) || isLargeInteger(cell));
  });

const isLargeInteger = (cell: unknown): boolean =>
  typeof cell === 'string' && /^-?\d{16,19}$/.test(cell) && !Number.isSafeInteger(Number(cell));

const hasOnlyWholeNumbers = (rows: ChartRows['rows'], column: number): boolean =>
  rows.every((row) => row[column] === null || (Number.isInteger(row[column]) && Number(row[column]) >= 0));

/**
 * Converts rows with the columns position, series name and number to rows with one column per series name.
 * `rowNumbers` lists, for each position, the number of the first original row with this position. `seriesRowNumbers`
 * lists, for each series, the number of the first original row of this series.
 * @returns undefined if the rows do not have this form; a problem if two rows have the same position and series name
 */
function pivotSeries(
  { columns, rows, isTruncated }: ChartRows,
  countColumnNames: ReadonlySet<string>,
): (ChartRows & { rowNumbers: number[]; seriesRowNumbers: number[] }) | { problem: string } | undefined {
  const [positionCells, nameCells] = [rows.map(([cell]) => cell), rows.map(([, cell]) => cell)];
  if (columns.length !== 3 || !hasOnlyNumbers(rows, 2) || new Set(positionCells).size === rows.length) return undefined;
  if (!nameCells.every((cell) => typeof cell === 'string' || cell === null)) return undefined;
  const seriesNames: unknown[] = [...new Set(nameCells)];
  // In a column of counts, a missing row means zero. If the query result was truncated, the row may only have been cut
  // off, so the value is unknown (null).
  const missingValue = countColumnNames.has(columns[2] ?? '') && isTruncated !== true ? 0 : null;
  const rowsByPosition = new Map<unknown, { row: unknown[]; rowNumbers: Map<unknown, number> }>();
  for (const [index, [positionCell, name, value]] of rows.entries()) {
    const { row, rowNumbers } = rowsByPosition.get(positionCell) ?? {
      row: [positionCell, ...seriesNames.map(() => missingValue)],
      rowNumbers: new Map<unknown, number>(),
    };
    const previousRowNumber = rowNumbers.get(name);
    if (previousRowNumber !== undefined) {
      const duplicateName = joinNames(
        [positionCell, name].map((cell) => sanitizeLine(String(cell ?? 'none')) || 'none'),
      );
      return {
        problem: `rows ${previousRowNumber} and ${index + 1} are both for ${duplicateName}; group by both columns, or select a name that tells them apart`,
      };
    }
    rowNumbers.set(name, index + 1);
    row[1 + seriesNames.indexOf(name)] = value;
    rowsByPosition.set(positionCell, { row, rowNumbers });
  }
  const titles = seriesNames.map((name) => String(name ?? 'none'));
  const pivotedRows = [...rowsByPosition.values()];
  return {
    columns: [columns[0] ?? '', ...titles],
    rows: pivotedRows.map(({ row }) => row),
    rowNumbers: pivotedRows.map(({ rowNumbers }) => Math.min(...rowNumbers.values())),
    seriesRowNumbers: seriesNames.map((name) => (nameCells as readonly unknown[]).indexOf(name) + 1),
  };
}

/**
 * Adds points for months, weeks or days without a row. Their value is 0 in series of counts, and null (a gap) in other
 * series. If there would be more than `maxPointCount` points, adds none: returns `points` unchanged if only gaps are
 * omitted, and undefined if zeros would be omitted, because a chart of counts would be wrong without its zeros.
 */
function fillGaps(
  points: readonly ChartPoint[],
  { getNextStartMs, formatName, isUnitCertain, showsGaps }: CalendarUnit,
  isCountBySeries: readonly boolean[],
  maxPointCount: number,
): readonly ChartPoint[] | undefined {
  const fillsZeros = isUnitCertain && isCountBySeries.includes(true);
  if (!fillsZeros && !showsGaps) return points;
  const [firstPosition, lastPosition] = [points[0]?.position ?? 0, points.at(-1)?.position ?? 0];
  const pointsByTime = new Map(points.map((point) => [point.position, point]));
  const filledPoints: ChartPoint[] = [];
  for (let time = firstPosition; time <= lastPosition; time = getNextStartMs(time)) {
    if (filledPoints.length >= maxPointCount) return fillsZeros ? undefined : points;
    const values = isCountBySeries.map((isCount) => (isCount && isUnitCertain ? 0 : null));
    filledPoints.push(pointsByTime.get(time) ?? { name: formatName(time), rowNumber: 0, position: time, values });
  }
  return filledPoints;
}

/**
 * Units of number columns, each with a pattern for the column name. For example, `daysRunning` matches the pattern of
 * `days`. The first match determines the unit.
 */
const unitPatterns: readonly [string, RegExp][] = [
  ['days', /days|duration|longest/i],
  ['share', /share|percent|pct|rate|ratio|%/i],
  ['money', /spend|cost|price|revenue|credit|usd|eur/i],
  ['reach', /reach|impression|likes|views|clicks|audience/i],
];
const getUnit = (columnName: string) => unitPatterns.find(([, pattern]) => pattern.test(columnName))?.[0];

/** Divides the series into panels by unit, because only series with the same unit can share an axis. */
export function buildPanels(chartData: ChartData) {
  const seriesGroups = [...groupBy(chartData.series, ({ unit }) => unit).values()];
  return seriesGroups.map((series) => {
    const panelValues = series.flatMap((panelSeries) => panelSeries.values).filter((value) => value !== null);
    const title = capitalize(
      `${joinNames(chartData.measureTitles ?? series.map((panelSeries) => panelSeries.title))} ${chartData.title}`,
    );
    const [min, max] = [Math.min(0, ...panelValues), Math.max(0, ...panelValues)];
    return { ...chartData, title, series, min, max, isSmall: seriesGroups.length > 1 };
  });
}

/** A part of a chart that has a separate value axis. A chart has one panel for each unit, such as days or money. */
export type Panel = ReturnType<typeof buildPanels>[number];
