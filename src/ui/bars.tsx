import { medianOf } from '../views/numbers.ts';
import { sanitizeLine } from '../views/safe-text.ts';
import { Link } from './addresses.tsx';
import { constantText, english, type Formats } from './formats.ts';
import type { Content } from './jsx.d.ts';

interface FigureProps {
  title: string;
  note?: string;
  children: Content;
}

export const Figure = ({ title, note = '', children }: FigureProps) => (
  <figure class="chart">
    <figcaption>
      {title}
      <span>{note}</span>
    </figcaption>
    {children}
  </figure>
);

interface ColumnsProps {
  /** `isPart`: a time that has not ended. */
  columns: readonly { name: string; value: number; isPart?: boolean }[];
  /** What stands below the columns, from their beginning to their end. */
  ends: readonly string[];
  kind: 'launches' | 'runs';
  formats: Formats;
}

/** Columns side by side. A screen reader gets them as one sentence. */
function Columns({ columns, ends, kind, formats: { numberText } }: ColumnsProps) {
  const max = columns.reduce((top, { value }) => Math.max(top, value), 1);
  const width = 100 / columns.length;
  const gap = Math.min(1.2, width / 5);
  const named = columns.filter(({ value }) => value > 0).map(({ name, value }) => `${name}: ${numberText(value)}`);
  return (
    <>
      <svg
        class={`columns ${kind}`}
        viewBox="0 0 100 40"
        preserveAspectRatio="none"
        role="img"
        aria-label={named.join(', ')}
      >
        {columns.map(({ name, value, isPart }, index) => {
          const height = value === 0 ? 0.6 : Math.max(1.5, (40 * value) / max);
          return (
            <rect
              class={value === 0 || isPart ? 'rest' : undefined}
              x={index * width + gap / 2}
              y={40 - height}
              width={width - gap}
              height={height}
            >
              <title>{`${name}: ${numberText(value)}`}</title>
            </rect>
          );
        })}
      </svg>
      <p class="ends">
        {ends.map((end) => (
          <span>{end}</span>
        ))}
      </p>
    </>
  );
}

export interface Share {
  name: string;
  value: number;
  path?: string | undefined;
  onClick?: (() => void) | undefined;
}

interface SharesProps {
  shares: readonly Share[];
  of: number;
  formats?: Formats;
}

/** A row for each value: its name, its part of all as a bar, and its number. */
export const Shares = ({ shares, of, formats: { numberText } = english }: SharesProps) => (
  <ul class="shares">
    {shares.map(({ name, value, path, onClick }) => {
      const row = (
        <>
          <span class="name" dir="auto">
            {path === undefined ? sanitizeLine(name) : <Link to={path}>{sanitizeLine(name)}</Link>}
          </span>
          <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
            <rect width={100} height={6} />
            <rect class="bar" width={(100 * value) / of} height={6} />
          </svg>
          <b>{numberText(value)}</b>
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

interface LaunchesProps {
  ads: readonly { startedAt?: string | undefined }[];
  /** When the ads were read, in ISO text: later months are unknown, and the month of the reading had not ended. */
  readAt: string | undefined;
  formats?: Formats;
}

/** Ads by the month they started, in at most two years. The first column holds those of earlier months. */
export function Launches({ ads, readAt, formats = english }: LaunchesProps) {
  const { numberText, monthText } = formats;
  const months = ads.map(({ startedAt }) => monthNumber(startedAt)).filter((month) => !Number.isNaN(month));
  if (months.length === 0) return null;
  const earliest = months.reduce((least, month) => Math.min(least, month));
  const latest = months.reduce((most, month) => Math.max(most, month));
  const lastKnown = monthNumber(readAt);
  const to = Math.min(latest, Number.isNaN(lastKnown) ? latest : lastKnown);
  // At least a year, so that a few months do not look like many.
  const length = Math.min(24, Math.max(12, 4 * Math.ceil((to - earliest + 1) / 4)));
  const names = Array.from({ length }, (_, index) => monthText(isoMonth(to - length + 1 + index)));
  const isPart = (index: number) => to - length + 1 + index === lastKnown;
  // A column at an end may hold the months beyond it.
  const suffix = (index: number) => {
    if (index === 0 && earliest <= to - length) return ' or earlier';
    if (index === length - 1 && latest > to) return ' or later';
    return isPart(index) ? ', so far' : '';
  };
  const columns = names.map((name, index) => ({ name: name + suffix(index), value: 0, isPart: isPart(index) }));
  for (const month of months) {
    const column = columns[Math.min(length - 1, Math.max(0, month - to + length - 1))];
    if (column) column.value++;
  }
  const peak = columns.reduce((top, { value }) => Math.max(top, value), 0);
  const ends = [suffix(0) === '' ? (names[0] ?? '') : 'earlier', names[length - 1] ?? ''];
  return (
    <Figure
      title="Launches by month"
      note={unknownText(ads.length - months.length, formats) || `peak ${numberText(peak)}`}
    >
      <Columns columns={columns} ends={ends} kind="launches" formats={formats} />
    </Figure>
  );
}

/** Returns the months since the year 0; NaN where there is no date. */
const monthNumber = (iso: string | undefined): number =>
  iso === undefined || !/^\d{4}-\d{2}/.test(iso)
    ? Number.NaN
    : Number(iso.slice(0, 4)) * 12 + Number(iso.slice(5, 7)) - 1;

const isoMonth = (months: number): string =>
  `${String(Math.floor(months / 12)).padStart(4, '0')}-${String((months % 12) + 1).padStart(2, '0')}`;

const unknownText = (ads: number, { numberText }: Formats): string => (ads > 0 ? `${numberText(ads)} unknown` : '');

interface RunsProps {
  ads: readonly { daysRunning?: number | undefined }[];
  formats?: Formats;
}

export function Runs({ ads, formats = english }: RunsProps) {
  const { countText, numberText } = formats;
  const days = ads.flatMap(({ daysRunning }) => daysRunning ?? []);
  if (days.length === 0) return null;
  const max = days.reduce((most, day) => Math.max(most, day));
  const width = Math.max(1, Math.ceil((max + 1) / 12));
  const columns = Array.from({ length: Math.ceil((max + 1) / width) }, (_, index) => ({
    name: width === 1 ? countText(index, 'day') : `${index * width} to ${(index + 1) * width - 1} days`,
    value: 0,
  }));
  for (const day of days) {
    const column = columns[Math.floor(day / width)];
    if (column) column.value++;
  }
  const ends = [numberText(0), unknownText(ads.length - days.length, formats), numberText(max)];
  return (
    <Figure title="Days running" note={`median ${numberText(medianOf(days))}`}>
      <Columns columns={columns} ends={ends.filter(Boolean)} kind="runs" formats={formats} />
    </Figure>
  );
}

const maxShares = 4;

interface CountedProps {
  title: string;
  values: readonly (string | undefined)[];
  onChoose?: (value: string) => void;
  formats?: Formats;
}

/** The commonest values by name, the rest together. */
export function Counted({ title, values, onChoose, formats = english }: CountedProps) {
  const counts = [...countsOf(values)].sort(([, a], [, b]) => b - a);
  if (counts.length === 0) return null;
  const named = counts.length <= maxShares ? maxShares : maxShares - 1;
  const sum = (some: readonly [string, number][]) => some.reduce((all, [, ads]) => all + ads, 0);
  const shares = counts.slice(0, named).map(
    ([value, ads]): Share => ({
      name: constantText(value),
      value: ads,
      onClick: onChoose && (() => onChoose(value)),
    }),
  );
  const rest = [
    { name: 'Others', value: sum(counts.slice(named)) },
    { name: 'Not stated', value: values.length - sum(counts) },
  ].filter(({ value }) => value > 0);
  return (
    <Figure title={title}>
      <Shares shares={[...shares, ...rest]} of={values.length} formats={formats} />
    </Figure>
  );
}

export function countsOf(values: readonly (string | undefined)[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const value of values) if (value !== undefined) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}

export const Facts = ({ facts }: { facts: readonly (readonly [name: string, value: string | undefined])[] }) => (
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
