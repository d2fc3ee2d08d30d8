import { capitalize } from '../views/column-title.ts';
import { type ChartData, type ChartRows, type Panel, panelsOf, readChartData, type Series } from './chart-data.ts';
import type { ChartKind } from './chart-kinds.ts';

/**
 * A chart as shapes, in pixels from the top left. The code that shows the chart, as a picture or as SVG, knows colours
 * and fonts. Widths of texts are estimated on the safe side.
 */
export interface Chart {
  width: number;
  height: number;
  shapes: Shape[];
}

export type Shape =
  | { is: 'rect'; x: number; y: number; width: number; height: number; colour: ChartColour; isPale?: boolean }
  | { is: 'line'; points: readonly Point[]; width: number; colour: ChartColour; isDashed?: boolean }
  | {
      is: 'text';
      text: string;
      /** Replaces a text in letters that the font lacks. */
      instead?: string;
      x: number;
      /** The baseline. */
      y: number;
      size: number;
      anchor: 'start' | 'middle' | 'end';
      colour: ChartColour;
      bold?: boolean;
    };

export type Point = readonly [x: number, y: number];
/** The purpose of a shape; a number is a series. */
export type ChartColour = 'ink' | 'soft' | 'grid' | number;

export interface ChartOptions {
  isNarrow?: boolean;
  /** Time of the last reading of the ads: the month, week or day that holds it had not ended. */
  readAt?: number | undefined;
  isDemo?: boolean;
}

/**
 * Draws the first column against the number columns after it, or against one number column with a series for each name
 * of the second. Returns a problem with its remedy where the rows cannot be drawn.
 */
export function chartOf(kind: ChartKind, table: ChartRows, options: ChartOptions = {}): Chart | { problem: string } {
  const data = readChartData(kind, table, options.readAt);
  if (data.problem !== undefined) return data;
  const layout = options.isNarrow ? narrow : wide;
  const shapes: Shape[] = [];
  let height = 0;
  for (const panel of panelsOf(data)) {
    const drawn = drawPanel[kind][data.x](panel, layout);
    shapes.push(...drawn.shapes.map((shape) => moveDown(shape, height)));
    height += drawn.height;
  }
  if (options.isDemo) {
    const size = layout.size - 3;
    height += size;
    const at = { x: layout.width - layout.margin, y: height - 6, size };
    shapes.push({ is: 'text', text: 'demo data', ...at, anchor: 'end', colour: 'soft' });
  }
  return { width: layout.width, height, shapes };
}

type DrawPanel = (panel: Panel, layout: Layout) => Chart;

const uprightBars: DrawPanel = (panel, layout) => upright(panel, layout, 'in order', drawBars);
/** Lines keep the distances of dates and numbers. */
const uprightLines: DrawPanel = (panel, layout) => upright(panel, layout, 'by distance', drawLines);

const drawPanel: Record<ChartKind, Record<ChartData['x'], DrawPanel>> = {
  bar: { names: sideways, dates: uprightBars, numbers: uprightBars },
  line: {
    names: (panel, layout) => upright(panel, layout, 'in order', drawLines),
    dates: uprightLines,
    numbers: uprightLines,
  },
};

const moveDown = (shape: Shape, by: number): Shape =>
  shape.is === 'line'
    ? { ...shape, points: shape.points.map(([x, y]): Point => [x, y + by]) }
    : { ...shape, y: shape.y + by };

/** In pixels. The heights are those of the plot above its axis, of one panel alone or of one among several. */
const wide = {
  width: 1000,
  margin: 28,
  headSize: 22,
  size: 17,
  lineHeight: 26,
  plotHeight: 400,
  smallPlotHeight: 200,
  maxName: 380,
  bar: 20,
};
type Layout = typeof wide;
const narrow: Layout = {
  width: 330,
  margin: 10,
  headSize: 14,
  size: 12,
  lineHeight: 18,
  plotHeight: 170,
  smallPlotHeight: 110,
  maxName: 130,
  bar: 15,
};

/** Bars from left to right, one row of them for each name. */
function sideways({ title, series, points, min, max }: Panel, layout: Layout): Chart {
  const { width, margin, size } = layout;
  const shapes: Shape[] = [];
  const top = head(shapes, title, series, layout);
  const nameWidth = Math.min(layout.maxName, Math.max(...points.map(({ name }) => textWidth(name, size))));
  const numbers = series.flatMap(({ values }) => values.map(shortNumber));
  const numberWidth = Math.max(...numbers.map((number) => textWidth(number, size)));
  const gap = size * 0.8;
  const left = margin + nameWidth + gap;
  // A bar below zero has its number on its left.
  const before = min < 0 ? numberWidth + 8 : 0;
  const room = width - margin - numberWidth - 8 - left - before;
  const across = (value: number) => left + before + room * ((value - min) / (max - min || 1));
  const bar = series.length === 1 ? layout.bar : layout.bar - 3;
  const step = bar * series.length + bar / 2;
  points.forEach(({ name, row: ofTable }, index) => {
    const y = top + index * step;
    const middle = y + (bar * series.length) / 2 + size * 0.36;
    const label = { text: cutInside(name, nameWidth, size), instead: `row ${ofTable}`, x: left - gap, y: middle };
    shapes.push({ is: 'text', ...label, size, anchor: 'end', colour: 'ink' });
    series.forEach(({ values, number }, row) => {
      const value = values[index] ?? null;
      const y1 = y + row * bar;
      const [from, to] = [across(Math.min(0, value ?? 0)), across(Math.max(0, value ?? 0))];
      const box = { x: from, y: y1, width: Math.max(value ? 2 : 0, to - from), height: bar - 2 };
      shapes.push({ is: 'rect', ...box, colour: number });
      const small = Math.min(size, bar - 2);
      const label = { y: y1 + bar / 2 + small * 0.3, size: small, colour: 'soft' } as const;
      const beside =
        (value ?? 0) < 0 ? ({ x: from - 8, anchor: 'end' } as const) : ({ x: to + 8, anchor: 'start' } as const);
      shapes.push({ is: 'text', text: shortNumber(value), ...label, ...beside });
    });
  });
  return { width, height: Math.round(top + points.length * step + margin - 8), shapes };
}

type DrawSeries = (shapes: Shape[], panel: Panel, scale: Scale) => void;

/** Where the values of a panel stand, in pixels. */
interface Scale {
  /** The middle of each place on the axis. */
  middles: readonly number[];
  /** The width that each place has. */
  slot: number;
  up(value: number): number;
}

/** Draws bars or lines that stand on an axis of dates, numbers or names. The legend comes above the plot. */
function upright(panel: Panel, layout: Layout, places: 'in order' | 'by distance', drawSeries: DrawSeries): Chart {
  const { title, x, series, points, min, max, isSmall } = panel;
  const { width, margin, size, lineHeight } = layout;
  const shapes: Shape[] = [];
  const top = head(shapes, title, series, layout) + 8;
  const bottom = top + (isSmall ? layout.smallPlotHeight : layout.plotHeight);
  const ticks = ticksOf(min, max);
  const [low, high] = [Math.min(min, ticks[0] ?? 0), Math.max(max, ticks.at(-1) ?? 0)];
  const gap = size * 0.7;
  const left = margin + Math.max(...ticks.map((tick) => textWidth(shortNumber(tick), size))) + gap;
  const right = width - margin;
  const up = (value: number) => bottom - (bottom - top) * ((value - low) / (high - low || 1));
  for (const tick of ticks) {
    const line = { x: left, y: up(tick), width: right - left, height: 1 };
    shapes.push({ is: 'rect', ...line, colour: tick === 0 ? 'soft' : 'grid' });
    const at = { x: left - gap, y: up(tick) + size * 0.36 };
    shapes.push({ is: 'text', text: shortNumber(tick), ...at, size, anchor: 'end', colour: 'soft' });
  }
  const slot = (right - left) / points.length;
  const [first, last] = [points[0]?.at ?? 0, points.at(-1)?.at ?? 0];
  const middles = points.map(({ at }, index) =>
    places === 'in order' || first === last
      ? left + slot * (index + 0.5)
      : left + 10 + (right - left - 20) * ((at - first) / (last - first)),
  );
  drawSeries(shapes, panel, { middles, slot, up });
  const names = points.map(({ name, row }, index) => ({
    // A date without the time of midnight.
    name: x === 'dates' ? name.replace(/T.*$/, '') : name,
    row,
    middle: middles[index] ?? 0,
  }));
  drawNames(shapes, names, { y: bottom + lineHeight - 4, left: margin, right, size });
  return { width, height: Math.round(bottom + lineHeight + margin), shapes };
}

function drawBars(shapes: Shape[], { series, points }: Panel, { middles, slot, up }: Scale): void {
  const bar = Math.min(60, slot * 0.78) / series.length;
  series.forEach(({ values, number }, index) => {
    values.forEach((value, place) => {
      if (value === null) return;
      const x = (middles[place] ?? 0) + (index - series.length / 2) * bar;
      const [y1, y2] = [up(Math.max(0, value)), up(Math.min(0, value))];
      const box = { x, y: y1, width: Math.max(1, bar - 1), height: Math.max(1, y2 - y1) };
      const isPale = points[place]?.isOpen === true;
      shapes.push({ is: 'rect', ...box, colour: number, ...(isPale && { isPale }) });
    });
  });
}

function drawLines(shapes: Shape[], { series, points }: Panel, { middles, up }: Scale): void {
  const isLastOpen = points.at(-1)?.isOpen === true;
  for (const { values, number } of series) {
    const places = values.map((value, index) =>
      value === null ? undefined : ([middles[index] ?? 0, up(value)] as const),
    );
    drawLine(shapes, places, number, isLastOpen);
  }
}

/** A line from value to value, with gaps where there is none, and dots where there are few. What has not ended is dashed. */
function drawLine(shapes: Shape[], values: readonly (Point | undefined)[], colour: number, isLastOpen: boolean): void {
  const runs: Point[][] = [[]];
  for (const value of values)
    if (value) runs.at(-1)?.push(value);
    else runs.push([]);
  for (const points of runs) {
    const isOpen = isLastOpen && points === runs.at(-1);
    const solid = isOpen ? points.slice(0, -1) : points;
    if (solid.length > 1) shapes.push({ is: 'line', points: solid, width: 3, colour });
    if (isOpen && points.length > 1)
      shapes.push({ is: 'line', points: points.slice(-2), width: 3, colour, isDashed: true });
  }
  for (const points of runs)
    for (const [x, y] of points)
      if (points.length === 1 || values.length <= 40)
        shapes.push({ is: 'rect', x: x - 4, y: y - 4, width: 8, height: 8, colour });
}

/** Draws the title and, for several series, a legend. @returns where the chart begins */
function head(shapes: Shape[], title: string, series: readonly Series[], layout: Layout): number {
  const { width, margin, headSize, size, lineHeight } = layout;
  const lettering = { anchor: 'start', colour: 'ink' } as const;
  let y = margin + headSize - 4;
  for (const text of twoLines(title, width - 2 * margin, headSize)) {
    shapes.push({ is: 'text', text, instead: '', size: headSize, bold: true, x: margin, y, ...lettering });
    y += lineHeight;
  }
  y -= 4;
  if (series.length === 1) return y;
  const box = size - 3;
  let x = margin;
  for (const { title, number } of series) {
    const text = cutInside(capitalize(title), width / 2 - 3 * size, size);
    const needed = box + 8 + textWidth(text, size) + size;
    if (x + needed > width - margin && x > margin) {
      x = margin;
      y += lineHeight;
    }
    shapes.push({ is: 'rect', x, y: y - 2, width: box, height: box, colour: number });
    const at = { x: x + box + 8, y: y + size * 0.65, size };
    shapes.push({ is: 'text', text, instead: `column ${number + 2}`, ...at, ...lettering });
    x += needed;
  }
  return y + lineHeight + 8;
}

/** As many names as fit side by side, the first and every second, third … after it. */
function drawNames(
  shapes: Shape[],
  names: readonly { name: string; row: number; middle: number }[],
  { y, left, right, size }: Record<'y' | 'left' | 'right' | 'size', number>,
): void {
  const widest = Math.min(150, Math.max(...names.map(({ name }) => textWidth(name, size))));
  let free = left;
  const dense = Math.ceil(((widest + 18) * names.length) / (right - left));
  names.forEach(({ name, row, middle }, index) => {
    if (index % dense !== 0) return;
    const text = cutInside(name, widest, size);
    const half = textWidth(text, size) / 2;
    const x = Math.min(Math.max(middle, left + half), right - half);
    if (x - half < free) return;
    shapes.push({ is: 'text', text, instead: `row ${row}`, x, y, size, anchor: 'middle', colour: 'soft' });
    free = x + half + 14;
  });
}

/** Round numbers that `min` and `max` lie between, about five. */
function ticksOf(min: number, max: number): number[] {
  const rough = (max - min || 1) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10) * power;
  const first = Math.floor(min / step + 1e-9);
  const count = Math.ceil(max / step - 1e-9) - first + 1;
  const ticks = Array.from({ length: Math.max(1, Math.min(12, count)) }, (_, index) => (first + index) * step);
  return ticks.map((tick) => Number(tick.toPrecision(12)));
}

const plain = new Intl.NumberFormat('en', { maximumFractionDigits: 2 });
const small = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 4 });
const tiny = new Intl.NumberFormat('en', { notation: 'scientific', maximumSignificantDigits: 3 });

/** `12,345`, `1.234M`; what is missing is a dash. */
function shortNumber(value: number | null): string {
  if (value === null) return '–';
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e15)) return tiny.format(value).replaceAll('-', '−');
  return (size !== 0 && size < 1 ? small : size < 1e6 ? plain : compact).format(value).replaceAll('-', '−');
}

function twoLines(text: string, room: number, size: number): string[] {
  if (textWidth(text, size) <= room) return [text];
  const words = text.split(' ');
  let first = words.shift() ?? '';
  while (words[0] !== undefined && textWidth(`${first} ${words[0]}`, size) <= room) first += ` ${words.shift()}`;
  return [first, words.join(' ')].filter(Boolean).map((line) => cutInside(line, room, size));
}

/** Long names differ at their ends as often as at their beginnings, so the middle goes. */
function cutInside(text: string, room: number, size: number): string {
  if (textWidth(text, size) <= room) return text;
  const letters = [...text];
  let [start, end, used] = ['', '', textWidth('…', size)];
  for (let index = 0; index < letters.length; index++) {
    const isStart = index % 2 === 0;
    const letter = letters[isStart ? index / 2 : letters.length - (index + 1) / 2] ?? '';
    used += textWidth(letter, size);
    if (used > room) break;
    if (isStart) start += letter;
    else end = letter + end;
  }
  return `${start.trimEnd()}…${end.trimStart()}`;
}

/** The width of a text, a little wider than common fonts draw it. */
function textWidth(text: string, size: number): number {
  let ems = 0;
  for (const letter of text) {
    if (letter >= '\u1100') ems += 1.05;
    else if (/[\d\p{Ll}]/u.test(letter)) ems += 0.6;
    else ems += /[\p{L}%@]/u.test(letter) ? 0.76 : 0.4;
  }
  return ems * size;
}
