import type { Chart, ChartColour, Shape } from '../charts/chart.ts';
import { sanitizeLine } from '../present/safe-text.ts';

/** A chart as inline SVG, whose colours follow the page: one drawing for wide screens and paper, one for narrow screens. */
export function ChartSvg({ label, wide, narrow }: { label: string; wide: Chart; narrow: Chart }) {
  const named = sanitizeLine(`Chart: ${label}`);
  return (
    <div class="chart">
      <Drawing kind="wide" label={named} chart={wide} />
      <Drawing kind="narrow" label={named} chart={narrow} />
    </div>
  );
}

const Drawing = ({ kind, label, chart: { width, height, shapes } }: { kind: string; label: string; chart: Chart }) => (
  <svg class={kind} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
    {shapes.map(shapeSvg)}
  </svg>
);

function shapeSvg(shape: Shape) {
  const colour = colourClass(shape.colour);
  if (shape.is === 'line') {
    const points = shape.points.map(([x, y]) => `${tenth(x)},${tenth(y)}`).join(' ');
    const dashes = shape.isDashed ? '7 6' : undefined;
    return <polyline class={`line ${colour}`} stroke-width={shape.width} stroke-dasharray={dashes} points={points} />;
  }
  if (shape.is === 'rect') {
    const [width, height] = [tenth(shape.width), tenth(shape.height)];
    const round = width > 4 && height > 4 ? 2 : undefined;
    const kind = shape.isPale ? `${colour} pale` : colour;
    return <rect class={kind} x={tenth(shape.x)} y={tenth(shape.y)} width={width} height={height} rx={round} />;
  }
  const { x, y, size, anchor, bold, text } = shape;
  return (
    <text
      class={colour}
      x={tenth(x)}
      y={tenth(y)}
      font-size={size}
      text-anchor={anchor}
      font-weight={bold ? 650 : undefined}
    >
      {sanitizeLine(text)}
    </text>
  );
}

const colourClass = (colour: ChartColour) => (typeof colour === 'number' ? `series${colour % 8}` : colour);
const tenth = (length: number) => Math.round(length * 10) / 10;

const series = Array.from({ length: 8 }, (_, at) => `.series${at} { fill: var(--c${at}); stroke: var(--c${at}) }`);

export const chartStyles = `
.chart { background: var(--panel); border-radius: 12px; padding: 6px }
.chart svg { display: block; width: 100%; height: auto; font-family: inherit }
.chart .narrow { display: none }
.chart .ink { fill: var(--ink) } .chart .soft { fill: var(--soft) } .chart .grid { fill: var(--line) }
${series.join('\n')}
.chart rect, .chart text { stroke: none }
.pale { fill-opacity: 0.45 }
.line { fill: none; stroke-linejoin: round; stroke-linecap: round }
@media screen and (max-width: 620px) { .chart .wide { display: none } .chart .narrow { display: block } }
`;
