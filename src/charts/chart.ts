import { count } from '../present/lists.ts';
import { listed, sanitizeLine } from '../present/safe-text.ts';

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
  | { is: 'rect'; x: number; y: number; width: number; height: number; colour: ChartColour }
  | { is: 'line'; points: readonly Point[]; width: number; colour: ChartColour }
  | ChartText;

export interface ChartText {
  is: 'text';
  text: string;
  /** In place of a text in letters that the font lacks. */
  instead?: string;
  x: number;
  /** The line on which the letters stand. */
  y: number;
  size: number;
  anchor: 'start' | 'middle' | 'end';
  colour: ChartColour;
  bold?: boolean;
}

export type Point = readonly [x: number, y: number];
/** What a shape is for; a number is a series. */
export type ChartColour = 'ink' | 'soft' | 'grid' | number;
export type ChartKind = 'bar' | 'line';

/** The rows of a statement. */
export interface ChartRows {
  columns: readonly string[];
  rows: readonly (readonly unknown[])[];
}

/** Draws the first column against the number columns after it. Where that is not possible, says why and what to do. */
export function chartOf(kind: ChartKind, table: ChartRows): Chart | { problem: string } {
  const data = readRows(kind, table);
  if ('problem' in data) return data;
  if (kind === 'line') return upright(data, 'line');
  return data.x === 'names' ? sideways(data) : upright(data, 'bar');
}

interface ChartData {
  title: string;
  /** Whether the first column holds dates, numbers, or names. */
  x: 'dates' | 'numbers' | 'names';
  series: string[];
  points: { name: string; row: number; at: number; values: (number | null)[] }[];
  min: number;
  max: number;
}

const maxSeries = 8;
const maxBars = { names: 40, upright: 60 };

function readRows(kind: ChartKind, { columns, rows: all }: ChartRows): ChartData | { problem: string } {
  const known = all.filter(([cell]) => cell !== null);
  const x = kindOf(known.map(([cell]) => cell));
  // A row without a date or number has no place on an axis of dates or numbers.
  const rows = x === 'names' ? all : known;
  const without = all.length - rows.length;
  if (rows.length === 0) return { problem: 'the result has no rows' };
  const numbers = columns.flatMap((_, column) => (column > 0 && holdsNumbers(rows, column) ? [column] : []));
  if (numbers.length === 0)
    return { problem: `no column after the first (${columns[0]}) holds only numbers; select one, such as count(*)` };
  if (numbers.length > maxSeries)
    return { problem: `${numbers.length} columns hold numbers, and a chart shows at most ${maxSeries}; select fewer` };
  const most = kind === 'line' ? Number.POSITIVE_INFINITY : x === 'names' ? maxBars.names : maxBars.upright;
  if (rows.length > most)
    return { problem: `${rows.length} rows are too many for bars; take at most ${most} with LIMIT, or a line` };
  const points = rows.map((row, index) => ({
    name: row[0] === null ? 'none' : sanitizeLine(String(row[0])) || 'none',
    row: index + 1,
    at: x === 'dates' ? Date.parse(String(row[0])) : x === 'numbers' ? Number(row[0]) : index,
    values: numbers.map((column) => row[column] as number | null),
  }));
  if (x !== 'names') points.sort((a, b) => a.at - b.at);
  const values = points.flatMap((point) => point.values).filter((value) => value !== null);
  const [min, max] = [Math.min(0, ...values), Math.max(0, ...values)];
  const reach = (points.at(-1)?.at ?? 0) - (points[0]?.at ?? 0);
  if ([max - min, Math.abs(reach)].some((span) => span !== 0 && !(span > 1e-100 && span < 1e100)))
    return { problem: 'the numbers lie too far apart, or too near to each other, to be drawn' };
  const series = numbers.map((column) => sanitizeLine(columns[column] ?? ''));
  const name = sanitizeLine(columns[0] ?? '');
  const left = without === 0 ? '' : ` (without ${count(without, 'row')} that ${without === 1 ? 'has' : 'have'} none)`;
  return { title: `${listed(series)} by ${name}${left}`, x, series, points, min, max };
}

function holdsNumbers(rows: ChartRows['rows'], column: number): boolean {
  const cells = rows.map((row) => row[column]).filter((cell) => cell !== null);
  return cells.length > 0 && cells.every(Number.isFinite);
}

/** `2026`, `2026-06`, `2026-06-14` and times. */
const date = /^\d{4}-\d{2}(?:-\d{2}(?:T\d{2}:\d{2}:\d{2}(?:\.\d{1,3})?Z)?)?$/;
const isDate = (cell: unknown) => typeof cell === 'string' && date.test(cell) && !Number.isNaN(Date.parse(cell));

const kindOf = (cells: readonly unknown[]): ChartData['x'] =>
  cells.length === 0 ? 'names' : cells.every(isDate) ? 'dates' : cells.every(Number.isFinite) ? 'numbers' : 'names';

const width = 1000;
const margin = 28;
const headSize = 22;
const size = 17;
const lineHeight = 26;

/** Bars from left to right, one row of them for each name. */
function sideways({ title, series, points, min, max }: ChartData): Chart {
  const shapes: Shape[] = [];
  const top = head(shapes, title, series);
  const nameWidth = Math.min(380, Math.max(...points.map(({ name }) => textWidth(name, size))));
  const numbers = points.flatMap(({ values }) => values.map(shortNumber));
  const numberWidth = Math.max(...numbers.map((number) => textWidth(number, size)));
  const left = margin + nameWidth + 14;
  // A bar below zero has its number on its left.
  const before = min < 0 ? numberWidth + 8 : 0;
  const room = width - margin - numberWidth - 8 - left - before;
  const across = (value: number) => left + before + room * ((value - min) / (max - min || 1));
  const bar = series.length === 1 ? 20 : 17;
  const step = bar * series.length + (series.length === 1 ? 10 : 14);
  points.forEach(({ name, row, values }, index) => {
    const y = top + index * step;
    const middle = y + (bar * series.length) / 2 + size * 0.36;
    const label = { text: cutInside(name, nameWidth, size), instead: `row ${row}`, x: left - 14, y: middle };
    shapes.push({ is: 'text', ...label, size, anchor: 'end', colour: 'ink' });
    values.forEach((value, number) => {
      const y1 = y + number * bar;
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

/** Bars or lines that stand on an axis of dates, numbers or names. */
function upright({ title, x, series, points, min, max }: ChartData, kind: ChartKind): Chart {
  const height = 520;
  const shapes: Shape[] = [];
  const top = head(shapes, title, series) + 8;
  const bottom = height - margin - lineHeight;
  const ticks = ticksOf(min, max);
  const [low, high] = [Math.min(min, ticks[0] ?? 0), Math.max(max, ticks.at(-1) ?? 0)];
  const left = margin + Math.max(...ticks.map((tick) => textWidth(shortNumber(tick), size))) + 12;
  const right = width - margin;
  const up = (value: number) => bottom - (bottom - top) * ((value - low) / (high - low || 1));
  for (const tick of ticks) {
    const line = { x: left, y: up(tick), width: right - left, height: 1 };
    shapes.push({ is: 'rect', ...line, colour: tick === 0 ? 'soft' : 'grid' });
    const at = { x: left - 12, y: up(tick) + size * 0.36 };
    shapes.push({ is: 'text', text: shortNumber(tick), ...at, size, anchor: 'end', colour: 'soft' });
  }
  // Bars stand side by side in their order; lines keep the distances of dates and numbers.
  const slot = (right - left) / points.length;
  const [first, last] = [points[0]?.at ?? 0, points.at(-1)?.at ?? 0];
  const across = (at: number, index: number) =>
    kind === 'bar' || x === 'names' || first === last
      ? left + slot * (index + 0.5)
      : left + 10 + (right - left - 20) * ((at - first) / (last - first));
  const middles = points.map(({ at }, index) => across(at, index));
  series.forEach((_, number) => {
    const values = points.map((point) => point.values[number] ?? null);
    const at = (value: number | null, index: number) =>
      value === null ? undefined : ([middles[index] ?? 0, up(value)] as const);
    if (kind === 'line') {
      drawLine(shapes, values.map(at), number);
      return;
    }
    const bar = Math.min(60, slot * 0.78) / series.length;
    values.forEach((value, index) => {
      if (value === null) return;
      const x1 = (middles[index] ?? 0) + (number - series.length / 2) * bar;
      const [y1, y2] = [up(Math.max(0, value)), up(Math.min(0, value))];
      const box = { x: x1, y: y1, width: Math.max(1, bar - 1), height: Math.max(1, y2 - y1) };
      shapes.push({ is: 'rect', ...box, colour: number });
    });
  });
  // A date without the time of midnight.
  const nameOf = (name: string) => (x === 'dates' ? name.replace(/T.*$/, '') : name);
  const names = points.map(({ name, row }, index) => ({ name: nameOf(name), row, middle: middles[index] ?? 0 }));
  drawNames(shapes, names, { y: bottom + lineHeight - 4, left: margin, right });
  return { width, height, shapes };
}

/** A line from value to value, with gaps where there is none, and dots where there are few. */
function drawLine(shapes: Shape[], values: readonly (Point | undefined)[], colour: number): void {
  const runs: Point[][] = [[]];
  for (const value of values)
    if (value) runs.at(-1)?.push(value);
    else runs.push([]);
  for (const points of runs) if (points.length > 1) shapes.push({ is: 'line', points, width: 3, colour });
  for (const points of runs)
    for (const [x, y] of points)
      if (points.length === 1 || values.length <= 40)
        shapes.push({ is: 'rect', x: x - 4, y: y - 4, width: 8, height: 8, colour });
}

/** Draws the title and, for several series, a legend. Returns where the chart begins. */
function head(shapes: Shape[], title: string, series: readonly string[]): number {
  const room = width - 2 * margin;
  const lettering = { anchor: 'start', colour: 'ink' } as const;
  let y = margin + headSize - 4;
  const heading = { text: cutInside(title, room, headSize), instead: '', size: headSize, bold: true };
  shapes.push({ is: 'text', ...heading, x: margin, y, ...lettering });
  y += lineHeight - 4;
  if (series.length === 1) return y;
  let x = margin;
  series.forEach((name, number) => {
    const text = cutInside(name, 260, size);
    const needed = 22 + textWidth(text, size) + 24;
    if (x + needed > width - margin && x > margin) {
      x = margin;
      y += lineHeight;
    }
    shapes.push({ is: 'rect', x, y: y - 2, width: 14, height: 14, colour: number });
    shapes.push({ is: 'text', text, instead: `column ${number + 2}`, x: x + 22, y: y + 11, size, ...lettering });
    x += needed;
  });
  return y + lineHeight + 8;
}

interface Name {
  name: string;
  row: number;
  /** The position on the axis. */
  middle: number;
}

/** As many names as fit side by side, the first and every second, third … after it. */
function drawNames(
  shapes: Shape[],
  names: readonly Name[],
  { y, left, right }: Record<'y' | 'left' | 'right', number>,
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
