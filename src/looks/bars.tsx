import { sanitizeLine } from '../present/safe-text.ts';
import { Link } from './addresses.tsx';
import { numberText } from './formats.ts';
import type { Content } from './jsx.d.ts';

interface FigureProps {
  title: string;
  /** Beside the title, such as `peak 12`. */
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

export interface Column {
  name: string;
  value: number;
  /** A time that has not ended. */
  isPart?: boolean | undefined;
}

interface ColumnsProps {
  columns: readonly Column[];
  /** What stands below the columns, from their beginning to their end. */
  ends: readonly string[];
  kind: 'launches' | 'runs';
}

/** Columns side by side. A screen reader gets them as one sentence. */
export function Columns({ columns, ends, kind }: ColumnsProps) {
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
  /** The path of the page that shows it. */
  path?: string | undefined;
  onClick?: (() => void) | undefined;
}

/** A row for each value: its name, its part of all as a bar, and its number. */
export const Shares = ({ shares, of }: { shares: readonly Share[]; of: number }) => (
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

/** Facts in rows: a name, and its value; what has none is left out. */
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
.chart { background: var(--panel); border-radius: 12px; padding: 11px 14px 10px; min-width: 0; display: flex; flex-direction: column; gap: 8px; margin: 0 }
figcaption { display: flex; justify-content: space-between; gap: 8px; font-size: 12.5px; font-weight: 600 }
figcaption span, .ends { font-weight: 400; font-size: 12px; color: var(--soft) }
.columns { width: 100%; flex: 1 0 62px; height: 62px }
.columns rect { fill: color-mix(in srgb, var(--accent) 82%, var(--panel)) }
.columns.runs rect { fill: color-mix(in srgb, var(--run) 82%, var(--panel)) }
.columns rect.rest { fill: var(--rest) }
.ends { display: flex; justify-content: space-between; white-space: nowrap; margin: 0 }
.shares { display: grid; grid-template-columns: fit-content(65%) minmax(24px, 1fr) auto; gap: 0 8px; font-size: 12.5px; list-style: none; margin: 0; padding: 0 }
.shares :is(li, button, div) { display: grid; grid-column: 1 / -1; grid-template-columns: subgrid; align-items: center }
.shares :is(button, div) { border: 0; padding: 2px 0; background: none; text-align: start }
.shares .name { overflow: hidden; line-height: 1.25; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow-wrap: anywhere }
.shares svg { width: 100%; height: 6px; border-radius: 3px }
.shares rect { fill: color-mix(in srgb, var(--rest) 45%, transparent) }
.shares .bar { fill: color-mix(in srgb, var(--ink) 52%, var(--panel)) }
.shares b { text-align: end; font-weight: 600; font-variant-numeric: tabular-nums }
.fact-list { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: 5px 18px; margin: 0 }
.fact-list dt { color: var(--soft) }
.fact-list dd { margin: 0; text-align: end; overflow-wrap: anywhere }
`;
