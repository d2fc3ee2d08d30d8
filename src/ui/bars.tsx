import { computeMedian } from '../views/numbers.ts';
import { sanitizeLine } from '../views/safe-text.ts';
import { englishFormatters, type Formatters, formatConstant } from './formats.ts';
import type { Content } from './jsx.d.ts';
import { Link } from './links.tsx';

interface ChartFrameProps {
  title: string;
  note?: string;
  children: Content;
}

/** A frame around a chart (`children`). Above the chart, it shows the title and a note, e.g. `peak 12`. */
export const ChartFrame = ({ title, note = '', children }: ChartFrameProps) => (
  <figure class="chart">
    <figcaption>
      {title}
      <span>{note}</span>
    </figcaption>
    {children}
  </figure>
);

interface ColumnChartProps {
  /**
   * The columns from left to right. `isUnfinished` marks the month in which the ads were read, because further ads may
   * start later in that month.
   */
  columns: readonly { name: string; value: number; isUnfinished?: boolean }[];
  /** The labels below the chart, from left to right. */
  axisLabels: readonly string[];
  /** What the columns count: launched ads by month, or ads by days running. Also the name of the CSS class. */
  measure: 'launches' | 'runs';
  formatters: Formatters;
}

/** A column chart. Its label for screen readers lists the names and numbers of all columns above zero. */
function ColumnChart({ columns, axisLabels, measure, formatters: { formatNumber } }: ColumnChartProps) {
  const maxValue = columns.reduce((max, { value }) => Math.max(max, value), 1);
  const columnWidth = 100 / columns.length;
  const gap = Math.min(1.2, columnWidth / 5);
  const namedColumns = columns
    .filter(({ value }) => value > 0)
    .map(({ name, value }) => `${name}: ${formatNumber(value)}`);
  return (
    <>
      <svg
        class={`columns ${measure}`}
        viewBox="0 0 100 40"
        preserveAspectRatio="none"
        role="img"
        aria-label={namedColumns.join(', ')}
      >
        {columns.map(({ name, value, isUnfinished }, index) => {
          const height = value === 0 ? 0.6 : Math.max(1.5, (40 * value) / maxValue);
          return (
            <rect
              class={value === 0 || isUnfinished ? 'rest' : undefined}
              x={index * columnWidth + gap / 2}
              y={40 - height}
              width={columnWidth - gap}
              height={height}
            >
              <title>{`${name}: ${formatNumber(value)}`}</title>
            </rect>
          );
        })}
      </svg>
      <p class="ends">
        {axisLabels.map((label) => (
          <span>{label}</span>
        ))}
      </p>
    </>
  );
}

/** A row of a bar chart: a name, such as a country, and the number that its bar shows, such as a number of ads. */
export interface ShareRow {
  name: string;
  value: number;
  /** The URL path of the page to which the name links. */
  path?: string | undefined;
  onClick?: (() => void) | undefined;
}

interface ShareBarsProps {
  shares: readonly ShareRow[];
  total: number;
  formatters?: Formatters;
}

/**
 * A bar chart with one row for each name. A row shows the name, its number, and a bar. The length of the bar is the
 * share of the number in the total.
 */
export const ShareBars = ({ shares, total, formatters: { formatNumber } = englishFormatters }: ShareBarsProps) => (
  <ul class="shares">
    {shares.map(({ name, value, path, onClick }) => {
      const row = (
        <>
          <span class="name" dir="auto">
            {path === undefined ? sanitizeLine(name) : <Link to={path}>{sanitizeLine(name)}</Link>}
          </span>
          <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
            <rect width={100} height={6} />
            <rect class="bar" width={(100 * value) / total} height={6} />
          </svg>
          <b>{formatNumber(value)}</b>
        </>
      );
      return (
        <li>
          {onClick === undefined ? (
            <div>{row}</div>
          ) : (
            <button type="button" onClick={onClick} title={`Show ${sanitizeLine(name)} alone`}>
              {row}
            </button>
          )}
        </li>
      );
    })}
  </ul>
);

interface LaunchesChartProps {
  ads: readonly { startedAt?: string | undefined }[];
  /**
   * The time at which the ads were read, in ISO format. The chart marks the month of this time as unfinished, and
   * counts ads of later months in the column of this month.
   */
  readAt: string | undefined;
  formatters?: Formatters;
}

/**
 * A chart of the number of ads that were launched in each month, for at most two years. The first column also includes
 * all ads that were launched earlier.
 */
export function LaunchesChart({ ads, readAt, formatters = englishFormatters }: LaunchesChartProps) {
  const { formatNumber, formatMonth } = formatters;
  const launchMonthNumbers = ads
    .map(({ startedAt }) => countMonthsSinceYear0(startedAt))
    .filter((month) => !Number.isNaN(month));
  if (launchMonthNumbers.length === 0) return null;
  const earliestMonth = launchMonthNumbers.reduce((earliest, month) => Math.min(earliest, month));
  const latestMonth = launchMonthNumbers.reduce((latest, month) => Math.max(latest, month));
  const lastKnownMonth = countMonthsSinceYear0(readAt);
  const lastColumnMonth = Math.min(latestMonth, Number.isNaN(lastKnownMonth) ? latestMonth : lastKnownMonth);
  // Show at least twelve months. Otherwise, the columns of a few months would fill the chart and look like a long time.
  const columnCount = Math.min(24, Math.max(12, 4 * Math.ceil((lastColumnMonth - earliestMonth + 1) / 4)));
  const columnNames = Array.from({ length: columnCount }, (_, index) =>
    formatMonth(formatIsoMonth(lastColumnMonth - columnCount + 1 + index)),
  );
  const isUnfinishedColumn = (index: number) => lastColumnMonth - columnCount + 1 + index === lastKnownMonth;
  // Mark the first column if it includes earlier ads, and the last column if it includes later ads, e.g. `Aug 2025 or
  // earlier`.
  const getNameSuffix = (index: number) => {
    if (index === 0 && earliestMonth <= lastColumnMonth - columnCount) return ' or earlier';
    if (index === columnCount - 1 && latestMonth > lastColumnMonth) return ' or later';
    return isUnfinishedColumn(index) ? ', so far' : '';
  };
  const columns = columnNames.map((name, index) => ({
    name: name + getNameSuffix(index),
    value: 0,
    isUnfinished: isUnfinishedColumn(index),
  }));
  for (const month of launchMonthNumbers) {
    const column = columns[Math.min(columnCount - 1, Math.max(0, month - lastColumnMonth + columnCount - 1))];
    if (column) column.value++;
  }
  const highestLaunchCount = columns.reduce((max, { value }) => Math.max(max, value), 0);
  const lastColumnName = columnNames[columnCount - 1] ?? '';
  const axisLabels = [
    getNameSuffix(0) === '' ? (columnNames[0] ?? '') : 'earlier',
    latestMonth > lastColumnMonth ? `${lastColumnName} or later` : lastColumnName,
  ];
  return (
    <ChartFrame
      title="Launches by month"
      note={
        formatUnknownAdCount(ads.length - launchMonthNumbers.length, formatters) ||
        `peak ${formatNumber(highestLaunchCount)}`
      }
    >
      <ColumnChart columns={columns} axisLabels={axisLabels} measure="launches" formatters={formatters} />
    </ChartFrame>
  );
}

/**
 * Converts an ISO date, such as `2026-08-10`, to the number of months since the year 0. Returns NaN if the text is not
 * a date.
 */
const countMonthsSinceYear0 = (isoDate: string | undefined): number =>
  isoDate === undefined || !/^\d{4}-\d{2}/.test(isoDate)
    ? Number.NaN
    : Number(isoDate.slice(0, 4)) * 12 + Number(isoDate.slice(5, 7)) - 1;

/** Formats a number of months since the year 0 as a month in ISO format, e.g. `2026-08`. */
const formatIsoMonth = (monthNumber: number): string =>
  `${String(Math.floor(monthNumber / 12)).padStart(4, '0')}-${String((monthNumber % 12) + 1).padStart(2, '0')}`;

const formatUnknownAdCount = (adCount: number, { formatNumber }: Formatters): string =>
  adCount > 0 ? `${formatNumber(adCount)} unknown` : '';

interface DaysRunningChartProps {
  ads: readonly { daysRunning?: number | undefined }[];
  formatters?: Formatters;
}

/**
 * A histogram of the number of days for which the ads have run. All columns cover the same number of days, and there
 * are at most twelve columns.
 */
export function DaysRunningChart({ ads, formatters = englishFormatters }: DaysRunningChartProps) {
  const { formatCount, formatNumber } = formatters;
  const daysRunningValues = ads.flatMap(({ daysRunning }) => daysRunning ?? []);
  if (daysRunningValues.length === 0) return null;
  const longestRunDays = daysRunningValues.reduce((longest, days) => Math.max(longest, days));
  const daysPerColumn = Math.max(1, Math.ceil((longestRunDays + 1) / 12));
  const columns = Array.from({ length: Math.ceil((longestRunDays + 1) / daysPerColumn) }, (_, index) => ({
    name:
      daysPerColumn === 1
        ? formatCount(index, 'day')
        : `${index * daysPerColumn} to ${(index + 1) * daysPerColumn - 1} days`,
    value: 0,
  }));
  for (const runDays of daysRunningValues) {
    const column = columns[Math.floor(runDays / daysPerColumn)];
    if (column) column.value++;
  }
  const axisLabels = [
    formatNumber(0),
    formatUnknownAdCount(ads.length - daysRunningValues.length, formatters),
    formatNumber(longestRunDays),
  ];
  return (
    <ChartFrame title="Days running" note={`median ${formatNumber(computeMedian(daysRunningValues))}`}>
      <ColumnChart columns={columns} axisLabels={axisLabels.filter(Boolean)} measure="runs" formatters={formatters} />
    </ChartFrame>
  );
}

/**
 * The maximum number of rows in a `CommonValuesChart`. This includes the row *Others*, but not the row *Not stated*.
 */
const maxShareRows = 4;

interface CommonValuesChartProps {
  title: string;
  values: readonly (string | undefined)[];
  onChoose?: (value: string) => void;
  formatters?: Formatters;
}

/**
 * A bar chart of the most common values. Less common values are combined in the row *Others*, and missing values in the
 * row *Not stated*.
 */
export function CommonValuesChart({ title, values, onChoose, formatters = englishFormatters }: CommonValuesChartProps) {
  const sortedCounts = [...countValues(values)].sort(([, a], [, b]) => b - a);
  if (sortedCounts.length === 0) return null;
  const namedRowCount = sortedCounts.length <= maxShareRows ? maxShareRows : maxShareRows - 1;
  const sumAds = (entries: readonly [string, number][]) => entries.reduce((sum, [, adCount]) => sum + adCount, 0);
  const shares = sortedCounts.slice(0, namedRowCount).map(
    ([value, adCount]): ShareRow => ({
      name: formatConstant(value),
      value: adCount,
      onClick: onChoose && (() => onChoose(value)),
    }),
  );
  const otherShares = [
    { name: 'Others', value: sumAds(sortedCounts.slice(namedRowCount)) },
    { name: 'Not stated', value: values.length - sumAds(sortedCounts) },
  ].filter(({ value }) => value > 0);
  return (
    <ChartFrame title={title}>
      <ShareBars shares={[...shares, ...otherShares]} total={values.length} formatters={formatters} />
    </ChartFrame>
  );
}

/** Counts the occurrences of each value. Ignores undefined values. */
export function countValues(values: readonly (string | undefined)[]): Map<string, number> {
  const countsByValue = new Map<string, number>();
  for (const value of values) if (value !== undefined) countsByValue.set(value, (countsByValue.get(value) ?? 0) + 1);
  return countsByValue;
}

/** A list of facts, each with a name and a value. Facts without a value are omitted. */
export const FactList = ({ facts }: { facts: readonly (readonly [name: string, value: string | undefined])[] }) => (
  <dl class="fact-list">
    {facts.map(
      ([name, value]) =>
        value && (
          <>
            <dt>{name}</dt>
            <dd dir="auto">{value}</dd>
          </>
        ),
    )}
  </dl>
);

/** The CSS for the charts and lists in this file. */
export const barStyles = `
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(230px, 100%), 1fr)); gap: 10px }
.chart { background: var(--panel); border-radius: 12px; padding: 11px 14px 10px; min-width: 0; display: flex; flex-direction: column; gap: 8px }
figcaption { display: flex; justify-content: space-between; gap: 8px; font-size: 12.5px; font-weight: 600 }
figcaption span, .ends { font-weight: 400; font-size: 12px; color: var(--soft) }
.columns { width: 100%; flex: 1 0 62px; height: 62px }
.columns rect { fill: color-mix(in srgb, var(--accent) 82%, var(--panel)) }
.columns.runs rect { fill: color-mix(in srgb, var(--run) 82%, var(--panel)) }
.columns rect.rest { fill: var(--rest) }
.ends { display: flex; justify-content: space-between; white-space: nowrap }
.shares { display: grid; grid-template-columns: fit-content(65%) minmax(24px, 1fr) auto; gap: 0 8px; font-size: 12.5px }
.shares :is(li, button, div) { display: grid; grid-column: 1 / -1; grid-template-columns: subgrid; align-items: center }
.shares :is(button, div) { border: 0; padding: 2px 0; background: none; text-align: start }
.shares .name { overflow: hidden; line-height: 1.25; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow-wrap: anywhere }
.shares svg { width: 100%; height: 6px; border-radius: 3px }
.shares rect { fill: color-mix(in srgb, var(--rest) 45%, transparent) }
.shares .bar { fill: color-mix(in srgb, var(--ink) 52%, var(--panel)) }
.shares b { text-align: end; font-weight: 600; font-variant-numeric: tabular-nums }
.fact-list { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: 5px 18px }
.fact-list dt { color: var(--soft) }
.fact-list dd { text-align: end; overflow-wrap: anywhere }
`;
