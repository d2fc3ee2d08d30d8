import { columnWords, sentence } from '../views/column-title.ts';
import { count, groupBy } from '../views/lists.ts';
import { listNames, sanitizeLine } from '../views/safe-text.ts';

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
      /** In place of a text in letters that the font lacks. */
      instead?: string;
      x: number;
      /** The line on which the letters stand. */
      y: number;
      size: number;
      anchor: 'start' | 'middle' | 'end';
      colour: ChartColour;
      bold?: boolean;
    };

export type Point = readonly [x: number, y: number];
/** What a shape is for; a number is a series. */
export type ChartColour = 'ink' | 'soft' | 'grid' | number;
export type ChartKind = 'bar' | 'line';

export interface ChartRows {
  columns: readonly string[];
  rows: readonly (readonly unknown[])[];
}

export interface ChartOptions {
  isNarrow?: boolean;
  /** When the data were read, in milliseconds since the epoch: the month that holds this time had not ended. */
  now?: number;
  isDemo?: boolean;
}

/**
 * Draws the first column against the number columns after it, or against one number column with a series for each name
 * of the second. Where that is not possible, says why and what to do.
 */
export function chartOf(kind: ChartKind, table: ChartRows, options: ChartOptions = {}): Chart | { problem: string } {
  const data = readRows(kind, table, options);
  if (data.problem !== undefined) return data;
  const layout = options.isNarrow ? narrow : wide;
  const shapes: Shape[] = [];
  let height = 0;
  for (const panel of panelsOf(data)) {
    const drawn = kind === 'bar' && data.x === 'names' ? sideways(panel, layout) : upright(panel, kind, layout);
    shapes.push(...drawn.shapes.map((shape) => lower(shape, height)));
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

type ChartData = Exclude<ReturnType<typeof readRows>, { problem: string }>;
type Series = ChartData['series'][number];

const maxSeries = 8;
const maxBars = { names: 40, upright: 60 };

function readRows(kind: ChartKind, table: ChartRows, { now }: ChartOptions) {
  const byName = seriesForNames(table);
  const { columns, rows: all } = byName ?? table;
  const filledCells = all.filter(([cell]) => cell !== null);
  const x = kindOf(filledCells.map(([cell]) => cell));
  // A row without a date or number has no place on an axis of dates or numbers.
  const rows = x === 'names' ? all : filledCells;
  if (rows.length === 0) return { problem: 'the result has no rows' };
  const numbers = columns.flatMap((_, column) => (column > 0 && holdsNumbers(rows, column) ? [column] : []));
  if (numbers.length === 0)
    return { problem: `no column after the first (${columns[0]}) holds only numbers; select one, such as count(*)` };
  if (numbers.length > maxSeries)
    return { problem: `it has ${numbers.length} series, and a chart shows at most ${maxSeries}; select fewer` };
  const most = kind === 'line' ? Number.POSITIVE_INFINITY : x === 'names' ? maxBars.names : maxBars.upright;
  if (rows.length > most)
    return { problem: `${rows.length} rows are too many for bars; take at most ${most} with LIMIT, or a line` };
  const read = rows.map((row, index) => ({
    name: row[0] === null ? 'none' : sanitizeLine(String(row[0])) || 'none',
    row: index + 1,
    at: x === 'dates' ? Date.parse(String(row[0])) : x === 'numbers' ? Number(row[0]) : index,
    values: numbers.map((column) => row[column] as number | null),
  }));
  if (x !== 'names') read.sort((a, b) => a.at - b.at);
  const isMonthly = x === 'dates' && rows.every(([cell]) => month.test(String(cell)));
  const counts = numbers.map((column) => isCount(columns[column] ?? '', rows, column));
  const points = isMonthly ? withEmptyMonths(read, counts, most) : read;
  const values = points.flatMap((point) => point.values).filter((value) => value !== null);
  const reach = (points.at(-1)?.at ?? 0) - (points[0]?.at ?? 0);
  const span = Math.max(0, ...values) - Math.min(0, ...values);
  if ([span, Math.abs(reach)].some((size) => size !== 0 && !(size > 1e-100 && size < 1e100)))
    return { problem: 'the numbers lie too far apart, or too near to each other, to be drawn' };
  const last = points.at(-1);
  const isOpen =
    isMonthly && now !== undefined && (last?.name.slice(0, 7) ?? '') >= new Date(now).toISOString().slice(0, 7);
  const without = all.length - rows.length;
  const notes = [
    without > 0 && `without ${count(without, 'row')} that ${without === 1 ? 'has' : 'have'} none`,
    isOpen && `${last?.name.slice(0, 7)} so far`,
  ].filter(Boolean);
  const by = table.columns.slice(0, byName ? 2 : 1).map(columnWords);
  return {
    /** What all series are of, where each is of one name. */
    of: byName && [columnWords(table.columns[2] ?? '')],
    title: `by ${listNames(by)}${notes.length > 0 ? ` (${notes.join('; ')})` : ''}`,
    x,
    points: points.map((point) => ({ ...point, isOpen: isOpen && point === last })),
    series: numbers.map((column, number) => ({
      title: (byName ? sanitizeLine : columnWords)(columns[column] ?? ''),
      /** What it counts or measures; undefined for what is counted. */
      unit: unitOf((byName ? table.columns[2] : columns[column]) ?? ''),
      /** Its colour. */
      number,
      values: points.map((point) => point.values[number] ?? null),
    })),
  };
}

function holdsNumbers(rows: ChartRows['rows'], column: number): boolean {
  const cells = rows.map((row) => row[column]).filter((cell) => cell !== null);
  return cells.length > 0 && cells.every(Number.isFinite);
}

/** Rows of a date or name, the name of a series, and a number, as one row for each date with a column for each name. */
function seriesForNames({ columns, rows }: ChartRows): ChartRows | undefined {
  const [first, second] = [rows.map(([cell]) => cell), rows.map(([, cell]) => cell)];
  if (columns.length !== 3 || !holdsNumbers(rows, 2) || new Set(first).size === rows.length) return undefined;
  if (!second.every((cell) => typeof cell === 'string' || cell === null)) return undefined;
  const names: unknown[] = [...new Set(second)];
  const byFirst = new Map<unknown, unknown[]>();
  for (const [cell, name, value] of rows) {
    const row = byFirst.get(cell) ?? [cell, ...names.map(() => (isCount(columns[2] ?? '', rows, 2) ? 0 : null))];
    row[1 + names.indexOf(name)] = value;
    byFirst.set(cell, row);
  }
  return { columns: [columns[0] ?? '', ...names.map((name) => String(name ?? 'none'))], rows: [...byFirst.values()] };
}

const averages = /av(?:era)?g|mean|median|percentile|share|percent|rate|ratio|\bmin|\bmax|per_|days/i;

/** Whether nothing would be zero: ads are counted, days running are averaged. */
const isCount = (name: string, rows: ChartRows['rows'], column: number): boolean =>
  !averages.test(name) &&
  rows.every((row) => row[column] === null || (Number.isInteger(row[column]) && Number(row[column]) >= 0));

type ReadRow = Record<'row' | 'at', number> & { name: string; values: (number | null)[] };

/** Months between the first and the last have a place, too: zero in counts, nothing in averages. */
function withEmptyMonths(rows: readonly ReadRow[], counts: readonly boolean[], most: number): ReadRow[] {
  const byName = groupBy(rows, ({ at }) => new Date(at).toISOString().slice(0, 7));
  const [first, last] = [new Date(rows[0]?.at ?? 0), rows.at(-1)?.at ?? 0];
  const filled: ReadRow[] = [];
  for (let next = first.getTime(), months = 1; next <= last; months++) {
    const name = new Date(next).toISOString().slice(0, 7);
    const empty = { name, row: 0, at: next, values: counts.map((isCounted) => (isCounted ? 0 : null)) };
    filled.push(...(byName.get(name) ?? [empty]));
    // At most those of a hundred years.
    if (filled.length > Math.min(most, 1200)) return [...rows];
    next = Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + months);
  }
  return filled;
}

/** `2026`, `2026-06`, `2026-06-14` and times. */
const date = /^\d{4}-\d{2}(?:-\d{2}(?:T\d{2}:\d{2}:\d{2}(?:\.\d{1,3})?Z)?)?$/;
const isDate = (cell: unknown) => typeof cell === 'string' && date.test(cell) && !Number.isNaN(Date.parse(cell));
/** A month, or its first day. */
const month = /^\d{4}-\d{2}(?:-01(?:T00:00:00(?:\.000)?Z)?)?$/;

const kindOf = (cells: readonly unknown[]): 'dates' | 'numbers' | 'names' =>
  cells.length === 0 ? 'names' : cells.every(isDate) ? 'dates' : cells.every(Number.isFinite) ? 'numbers' : 'names';

/** What a number column counts or measures, by its name. */
const units: readonly [string, RegExp][] = [
  ['days', /days|duration|longest/i],
  ['share', /share|percent|pct|rate|ratio|%/i],
  ['money', /spend|cost|price|revenue|credit|usd|eur/i],
  ['reach', /reach|impression|likes|views|clicks|audience/i],
];
const unitOf = (name: string) => units.find(([, pattern]) => pattern.test(name))?.[0];

type Panel = ReturnType<typeof panelsOf>[number];

/** Series of one unit share an axis; each unit has a small chart of its own. */
function panelsOf(data: ChartData) {
  const byUnit = [...groupBy(data.series, ({ unit }) => unit).values()];
  return byUnit.map((series) => {
    const values = series.flatMap((one) => one.values).filter((value) => value !== null);
    const title = sentence(`${listNames(data.of ?? series.map((one) => one.title))} ${data.title}`);
    const [min, max] = [Math.min(0, ...values), Math.max(0, ...values)];
    return { ...data, title, series, min, max, isSmall: byUnit.length > 1 };
  });
}

const lower = (shape: Shape, by: number): Shape =>
  shape.is === 'line'
    ? { ...shape, points: shape.points.map(([x, y]): Point => [x, y + by]) }
    : { ...shape, y: shape.y + by };

/** The heights are those of a chart that stands on an axis, alone or among others. */
const wide = {
  width: 1000,
  margin: 28,
  headSize: 22,
  size: 17,
  lineHeight: 26,
  height: 520,
  smallHeight: 320,
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
  height: 250,
  smallHeight: 190,
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

/** Bars or lines that stand on an axis of dates, numbers or names. */
function upright({ title, x, series, points, min, max, isSmall }: Panel, kind: ChartKind, layout: Layout): Chart {
  const { width, margin, size, lineHeight } = layout;
  const height = isSmall ? layout.smallHeight : layout.height;
  const shapes: Shape[] = [];
  const top = head(shapes, title, series, layout) + 8;
  const bottom = height - margin - lineHeight;
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
  // Bars stand side by side in their order; lines keep the distances of dates and numbers.
  const slot = (right - left) / points.length;
  const [first, last] = [points[0]?.at ?? 0, points.at(-1)?.at ?? 0];
  const across = (at: number, index: number) =>
    kind === 'bar' || x === 'names' || first === last
      ? left + slot * (index + 0.5)
      : left + 10 + (right - left - 20) * ((at - first) / (last - first));
  const middles = points.map(({ at }, index) => across(at, index));
  const isLastOpen = points.at(-1)?.isOpen === true;
  series.forEach(({ values, number }, row) => {
    const at = (value: number | null, index: number) =>
      value === null ? undefined : ([middles[index] ?? 0, up(value)] as const);
    if (kind === 'line') {
      drawLine(shapes, values.map(at), number, isLastOpen);
      return;
    }
    const bar = Math.min(60, slot * 0.78) / series.length;
    values.forEach((value, index) => {
      if (value === null) return;
      const x1 = (middles[index] ?? 0) + (row - series.length / 2) * bar;
      const [y1, y2] = [up(Math.max(0, value)), up(Math.min(0, value))];
      const box = { x: x1, y: y1, width: Math.max(1, bar - 1), height: Math.max(1, y2 - y1) };
      const isPale = points[index]?.isOpen === true;
      shapes.push({ is: 'rect', ...box, colour: number, ...(isPale && { isPale }) });
    });
  });
  const names = points.map(({ name, row }, index) => ({
    // A date without the time of midnight.
    name: x === 'dates' ? name.replace(/T.*$/, '') : name,
    row,
    middle: middles[index] ?? 0,
  }));
  drawNames(shapes, names, { y: bottom + lineHeight - 4, left: margin, right, size });
  return { width, height, shapes };
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
    const text = cutInside(sentence(title), width / 2 - 3 * size, size);
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
