import { capitalize } from '../views/column-title.ts';
import { buildChartData, buildPanels, type ChartData, type ChartRows, type Panel, type Series } from './chart-data.ts';
import type { ChartKind } from './chart-kinds.ts';

/**
 * A chart as a list of shapes. Coordinates are in pixels from the top left. The same shapes are rendered as JPEG and as
 * SVG, with different fonts. Text widths can therefore only be estimated, and the estimates tend to be too wide.
 */
export interface Chart {
  width: number;
  height: number;
  shapes: Shape[];
}

/** A rectangle, a line or a text in a chart. */
export type Shape =
  | { kind: 'rect'; x: number; y: number; width: number; height: number; color: ChartColor; isPale?: boolean }
  | { kind: 'line'; points: readonly Point[]; width: number; color: ChartColor; isDashed?: boolean }
  | {
      kind: 'text';
      text: string;
      /** The text that is drawn instead of `text` if the font has none of its letters, e.g. `row 3`. */
      fallbackText?: string;
      x: number;
      /** The y coordinate of the baseline (the line on which the letters stand), in pixels. */
      y: number;
      size: number;
      anchor: 'start' | 'middle' | 'end';
      color: ChartColor;
      bold?: boolean;
    };

/** A position in a chart, in pixels. */
export type Point = readonly [x: number, y: number];
/**
 * The color of a shape: a name such as `ink` (the color of text), or the index of the series that the shape belongs to.
 */
export type ChartColor = 'ink' | 'soft' | 'grid' | number;

/** The options for drawing a chart. */
export interface ChartOptions {
  /** True to draw the chart for a screen that is about 360 pixels wide. */
  isNarrow?: boolean;
  /**
   * The time at which the ads were last read, in milliseconds since the Unix epoch. The month, week or day that had not
   * ended at this time is drawn as unfinished.
   */
  readAtMs?: number | undefined;
  isDemo?: boolean;
  /** Notes below the chart, e.g. that some of the ads are missing. */
  notes?: readonly string[];
}

/**
 * Builds a chart from rows. The first column is the axis, and each number column after it is a series. With three
 * columns, the second column can instead name the series to which the number in the third column belongs. If the rows
 * cannot be drawn, returns only `problem`, a text that names the problem and a solution.
 */
export function buildChart(kind: ChartKind, table: ChartRows, options: ChartOptions = {}): Chart | { problem: string } {
  const chartData = buildChartData(kind, table, options.readAtMs);
  if (chartData.problem !== undefined) return chartData;
  const layout = options.isNarrow ? narrowLayout : wideLayout;
  const shapes: Shape[] = [];
  let height = 0;
  for (const panel of buildPanels(chartData)) {
    const panelChart = panelDrawers[kind][chartData.axisKind](panel, layout);
    shapes.push(...panelChart.shapes.map((shape) => moveDown(shape, height)));
    height += panelChart.height;
  }
  const noteLines = (options.notes ?? []).flatMap((note) => wrapText(note, layout)).slice(0, maxNoteLines);
  for (const text of noteLines) {
    const size = layout.fontSize - 3;
    height += size + noteGapPx;
    shapes.push({ kind: 'text', text, x: layout.margin, y: height - 6, size, anchor: 'start', color: 'soft' });
  }
  if (options.isDemo) {
    const size = layout.fontSize - 3;
    height += size;
    const labelPosition = { x: layout.width - layout.margin, y: height - 6, size };
    shapes.push({ kind: 'text', text: 'demo data', ...labelPosition, anchor: 'end', color: 'soft' });
  }
  return { width: layout.width, height, shapes };
}

/**
 * The maximum number of lines of notes below the chart. Further lines are omitted, because the text of the tool result
 * contains all notes.
 */
const maxNoteLines = 12;
const noteGapPx = 5;

/** Wraps a text at spaces, so that its lines fit the width of the chart. */
function wrapText(text: string, { width, margin, fontSize }: Layout): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const extendedLine = `${lines.at(-1) ?? ''} ${word}`.trim();
    if (lines.length > 0 && estimateTextWidth(extendedLine, fontSize - 3) <= width - 2 * margin)
      lines[lines.length - 1] = extendedLine;
    else lines.push(word);
  }
  return lines;
}

type DrawPanel = (panel: Panel, layout: Layout) => Chart;

const drawVerticalBars: DrawPanel = (panel, layout) => drawAboveAxis(panel, layout, 'even', drawBars);
/** Draws lines over an axis of dates or numbers. Each point is placed at its date or number. */
const drawProportionalLines: DrawPanel = (panel, layout) => drawAboveAxis(panel, layout, 'proportional', drawLines);

const panelDrawers: Record<ChartKind, Record<ChartData['axisKind'], DrawPanel>> = {
  bar: { names: drawHorizontalBars, dates: drawVerticalBars, numbers: drawVerticalBars },
  line: {
    names: (panel, layout) => drawAboveAxis(panel, layout, 'even', drawLines),
    dates: drawProportionalLines,
    numbers: drawProportionalLines,
  },
};

const moveDown = (shape: Shape, offset: number): Shape =>
  shape.kind === 'line'
    ? { ...shape, points: shape.points.map(([x, y]): Point => [x, y + offset]) }
    : { ...shape, y: shape.y + offset };

/** Sizes for wide screens, in pixels. `smallPlotHeight` is the height of each plot if a chart has several panels. */
const wideLayout = {
  width: 1000,
  margin: 28,
  titleSize: 22,
  fontSize: 17,
  lineHeight: 26,
  plotHeight: 400,
  smallPlotHeight: 200,
  maxNameWidth: 380,
  barThickness: 20,
};
type Layout = typeof wideLayout;
const narrowLayout: Layout = {
  width: 330,
  margin: 10,
  titleSize: 14,
  fontSize: 12,
  lineHeight: 18,
  plotHeight: 170,
  smallPlotHeight: 110,
  maxNameWidth: 130,
  barThickness: 15,
};

/** Draws horizontal bars, with one row per name. */
function drawHorizontalBars({ title, series, points, min, max }: Panel, layout: Layout): Chart {
  const { width, margin, fontSize } = layout;
  const shapes: Shape[] = [];
  const top = drawHeading(shapes, title, series, layout);
  const nameWidth = Math.min(
    layout.maxNameWidth,
    Math.max(...points.map(({ name }) => estimateTextWidth(name, fontSize))),
  );
  const numbers = series.flatMap(({ values }) => values.map(formatShortNumber));
  const numberWidth = Math.max(...numbers.map((number) => estimateTextWidth(number, fontSize)));
  const gap = fontSize * 0.8;
  const left = margin + nameWidth + gap;
  // Reserve space on the left, because the label of a negative bar is drawn to the left of the bar.
  const negativeLabelWidth = min < 0 ? numberWidth + 8 : 0;
  const plotWidth = width - margin - numberWidth - 8 - left - negativeLabelWidth;
  const scaleX = (value: number) => left + negativeLabelWidth + plotWidth * ((value - min) / (max - min || 1));
  const barThickness = series.length === 1 ? layout.barThickness : layout.barThickness - 3;
  const rowHeight = barThickness * series.length + barThickness / 2;
  points.forEach(({ name, rowNumber }, index) => {
    const y = top + index * rowHeight;
    const middle = y + (barThickness * series.length) / 2 + fontSize * 0.36;
    const label = {
      text: shortenMiddle(name, nameWidth, fontSize),
      fallbackText: `row ${rowNumber}`,
      x: left - gap,
      y: middle,
    };
    shapes.push({ kind: 'text', ...label, size: fontSize, anchor: 'end', color: 'ink' });
    series.forEach(({ values, seriesIndex }, row) => {
      const value = values[index] ?? null;
      const y1 = y + row * barThickness;
      const [from, to] = [scaleX(Math.min(0, value ?? 0)), scaleX(Math.max(0, value ?? 0))];
      const barRect = { x: from, y: y1, width: Math.max(value ? 2 : 0, to - from), height: barThickness - 2 };
      shapes.push({ kind: 'rect', ...barRect, color: seriesIndex });
      const numberSize = Math.min(fontSize, barThickness - 2);
      const label = { y: y1 + barThickness / 2 + numberSize * 0.3, size: numberSize, color: 'soft' } as const;
      const numberPosition =
        (value ?? 0) < 0 ? ({ x: from - 8, anchor: 'end' } as const) : ({ x: to + 8, anchor: 'start' } as const);
      shapes.push({ kind: 'text', text: formatShortNumber(value), ...label, ...numberPosition });
    });
  });
  return { width, height: Math.round(top + points.length * rowHeight + margin - 8), shapes };
}

/** Draws all series of a panel as bars or as lines, by appending shapes to `shapes`. */
type DrawSeries = (shapes: Shape[], panel: Panel, scale: Scale) => void;

/** Converts the values in a panel to pixel positions. */
interface Scale {
  /** The x coordinate of the center of each point, in pixels. */
  pointCentersX: readonly number[];
  /** The width that is available for each point, in pixels. */
  slotWidth: number;
  scaleY(value: number): number;
}

/**
 * Draws vertical bars or lines above an axis.
 * @param spacing `even` spaces the points evenly; `proportional` places them by their date or number
 */
function drawAboveAxis(panel: Panel, layout: Layout, spacing: 'even' | 'proportional', drawSeries: DrawSeries): Chart {
  const { title, axisKind, series, points, min, max, isSmall } = panel;
  const { width, margin, fontSize, lineHeight } = layout;
  const shapes: Shape[] = [];
  const top = drawHeading(shapes, title, series, layout) + 8;
  const bottom = top + (isSmall ? layout.smallPlotHeight : layout.plotHeight);
  const ticks = chooseGridValues(min, max);
  const [low, high] = [Math.min(min, ticks[0] ?? 0), Math.max(max, ticks.at(-1) ?? 0)];
  const gap = fontSize * 0.7;
  const left = margin + Math.max(...ticks.map((tick) => estimateTextWidth(formatShortNumber(tick), fontSize))) + gap;
  const right = width - margin;
  const scaleY = (value: number) => bottom - (bottom - top) * ((value - low) / (high - low || 1));
  for (const tick of ticks) {
    const gridLine = { x: left, y: scaleY(tick), width: right - left, height: 1 };
    shapes.push({ kind: 'rect', ...gridLine, color: tick === 0 ? 'soft' : 'grid' });
    const labelPosition = { x: left - gap, y: scaleY(tick) + fontSize * 0.36 };
    shapes.push({
      kind: 'text',
      text: formatShortNumber(tick),
      ...labelPosition,
      size: fontSize,
      anchor: 'end',
      color: 'soft',
    });
  }
  const slotWidth = (right - left) / points.length;
  const [first, last] = [points[0]?.position ?? 0, points.at(-1)?.position ?? 0];
  const pointCentersX = points.map(({ position }, index) =>
    spacing === 'even' || first === last
      ? left + slotWidth * (index + 0.5)
      : left + 10 + (right - left - 20) * ((position - first) / (last - first)),
  );
  drawSeries(shapes, panel, { pointCentersX, slotWidth, scaleY });
  const axisLabels = points.map(({ name, rowNumber }, index) => ({
    // If a date includes a time of day, remove the time, because labels have little space.
    name: axisKind === 'dates' ? name.replace(/T.*$/, '') : name,
    rowNumber,
    centerX: pointCentersX[index] ?? 0,
  }));
  drawAxisLabels(shapes, axisLabels, { y: bottom + lineHeight - 4, left: margin, right, size: fontSize });
  return { width, height: Math.round(bottom + lineHeight + margin), shapes };
}

/** Draws the vertical bars of all series. A bar for an unfinished month, week or day is pale. */
function drawBars(shapes: Shape[], { series, points }: Panel, { pointCentersX, slotWidth, scaleY }: Scale): void {
  const barWidth = Math.min(60, slotWidth * 0.78) / series.length;
  series.forEach(({ values, seriesIndex }, index) => {
    values.forEach((value, pointIndex) => {
      if (value === null) return;
      const x = (pointCentersX[pointIndex] ?? 0) + (index - series.length / 2) * barWidth;
      const [y1, y2] = [scaleY(Math.max(0, value)), scaleY(Math.min(0, value))];
      const barRect = { x, y: y1, width: Math.max(1, barWidth - 1), height: Math.max(1, y2 - y1) };
      const isPale = points[pointIndex]?.isUnfinished === true;
      shapes.push({ kind: 'rect', ...barRect, color: seriesIndex, ...(isPale && { isPale }) });
    });
  });
}

function drawLines(shapes: Shape[], { series, points }: Panel, { pointCentersX, scaleY }: Scale): void {
  for (const { values, seriesIndex } of series) {
    const linePoints = values.map((value, index) =>
      value === null
        ? undefined
        : {
            point: [pointCentersX[index] ?? 0, scaleY(value)] as const,
            isUnfinished: points[index]?.isUnfinished === true,
          },
    );
    drawLine(shapes, linePoints, seriesIndex);
  }
}

/** A point of a line. Unfinished points follow after all finished points. */
interface LinePoint {
  point: Point;
  isUnfinished: boolean;
}

/**
 * Draws one line, with gaps where values are missing. Marks each point if there are at most 40 points, and always marks
 * a point without neighbors. The line to each unfinished month, week or day is dashed.
 */
function drawLine(shapes: Shape[], linePoints: readonly (LinePoint | undefined)[], color: number): void {
  const pointRuns: LinePoint[][] = [[]];
  for (const linePoint of linePoints)
    if (linePoint) pointRuns.at(-1)?.push(linePoint);
    else pointRuns.push([]);
  for (const run of pointRuns) {
    const points = run.map(({ point }) => point);
    const finishedCount = run.filter(({ isUnfinished }) => !isUnfinished).length;
    const solidPoints = points.slice(0, finishedCount);
    const dashedPoints = finishedCount < run.length ? points.slice(Math.max(0, finishedCount - 1)) : [];
    if (solidPoints.length > 1) shapes.push({ kind: 'line', points: solidPoints, width: 3, color });
    if (dashedPoints.length > 1) shapes.push({ kind: 'line', points: dashedPoints, width: 3, color, isDashed: true });
  }
  for (const run of pointRuns)
    if (run.length === 1 || linePoints.length <= 40)
      for (const [x, y] of run.map(({ point }) => point))
        shapes.push({ kind: 'rect', x: x - 4, y: y - 4, width: 8, height: 8, color });
}

/**
 * Draws the title. If there are several series, also draws a legend. Returns the y coordinate where the plot begins.
 */
function drawHeading(shapes: Shape[], title: string, series: readonly Series[], layout: Layout): number {
  const { width, margin, titleSize, fontSize, lineHeight } = layout;
  const textStyle = { anchor: 'start', color: 'ink' } as const;
  let y = margin + titleSize - 4;
  for (const text of breakIntoTwoLines(title, width - 2 * margin, titleSize)) {
    shapes.push({ kind: 'text', text, fallbackText: '', size: titleSize, bold: true, x: margin, y, ...textStyle });
    y += lineHeight;
  }
  y -= 4;
  if (series.length === 1) return y;
  const boxSize = fontSize - 3;
  let x = margin;
  for (const { title, seriesIndex, fallbackTitle } of series) {
    const text = shortenMiddle(capitalize(title), width / 2 - 3 * fontSize, fontSize);
    const entryWidth = boxSize + 8 + estimateTextWidth(text, fontSize) + fontSize;
    if (x + entryWidth > width - margin && x > margin) {
      x = margin;
      y += lineHeight;
    }
    shapes.push({ kind: 'rect', x, y: y - 2, width: boxSize, height: boxSize, color: seriesIndex });
    const labelPosition = { x: x + boxSize + 8, y: y + fontSize * 0.65, size: fontSize };
    shapes.push({ kind: 'text', text, fallbackText: fallbackTitle, ...labelPosition, ...textStyle });
    x += entryWidth;
  }
  return y + lineHeight + 8;
}

/**
 * Draws the labels of the axis. If they do not all fit next to each other, draws only every second label, every third
 * label, and so on.
 */
function drawAxisLabels(
  shapes: Shape[],
  labels: readonly { name: string; rowNumber: number; centerX: number }[],
  { y, left, right, size }: Record<'y' | 'left' | 'right' | 'size', number>,
): void {
  const maxLabelWidth = Math.min(150, Math.max(...labels.map(({ name }) => estimateTextWidth(name, size))));
  let nextFreeX = left;
  const interval = Math.ceil(((maxLabelWidth + 18) * labels.length) / (right - left));
  labels.forEach(({ name, rowNumber, centerX }, index) => {
    if (index % interval !== 0) return;
    const text = shortenMiddle(name, maxLabelWidth, size);
    const halfWidth = estimateTextWidth(text, size) / 2;
    const x = Math.min(Math.max(centerX, left + halfWidth), right - halfWidth);
    if (x - halfWidth < nextFreeX) return;
    shapes.push({ kind: 'text', text, fallbackText: `row ${rowNumber}`, x, y, size, anchor: 'middle', color: 'soft' });
    nextFreeX = x + halfWidth + 14;
  });
}

/** Returns about five round numbers from `min` to `max`. The chart draws a grid line at each of them. */
function chooseGridValues(min: number, max: number): number[] {
  const roughStep = (max - min || 1) / 5;
  const powerOfTen = 10 ** Math.floor(Math.log10(roughStep));
  const step = ([1, 2, 5].find((factor) => factor * powerOfTen >= roughStep) ?? 10) * powerOfTen;
  const firstMultiple = Math.floor(min / step + 1e-9);
  const count = Math.ceil(max / step - 1e-9) - firstMultiple + 1;
  const ticks = Array.from({ length: Math.max(1, Math.min(12, count)) }, (_, index) => (firstMultiple + index) * step);
  return ticks.map((tick) => Number(tick.toPrecision(12)));
}

const plainFormat = new Intl.NumberFormat('en', { maximumFractionDigits: 2 });
const smallFormat = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });
const compactFormat = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 4 });
const tinyFormat = new Intl.NumberFormat('en', { notation: 'scientific', maximumSignificantDigits: 3 });

/** Formats a number in a few characters, e.g. `12,345` or `1.234M`. Formats null as a dash. */
function formatShortNumber(value: number | null): string {
  if (value === null) return '–';
  const magnitude = Math.abs(value);
  if (magnitude !== 0 && (magnitude < 1e-4 || magnitude >= 1e15)) return tinyFormat.format(value).replaceAll('-', '−');
  return (magnitude !== 0 && magnitude < 1 ? smallFormat : magnitude < 1e6 ? plainFormat : compactFormat)
    .format(value)
    .replaceAll('-', '−');
}

/** Returns the text as one line, or breaks it into two lines if it is too wide. */
function breakIntoTwoLines(text: string, maxWidth: number, fontSize: number): string[] {
  if (estimateTextWidth(text, fontSize) <= maxWidth) return [text];
  const words = text.split(' ');
  let firstLine = words.shift() ?? '';
  while (words[0] !== undefined && estimateTextWidth(`${firstLine} ${words[0]}`, fontSize) <= maxWidth)
    firstLine += ` ${words.shift()}`;
  return [firstLine, words.join(' ')].filter(Boolean).map((line) => shortenMiddle(line, maxWidth, fontSize));
}

/**
 * Replaces the middle of a text with `…` if the text is too wide. Keeps both ends, because long names often differ only
 * at the beginning or only at the end.
 */
function shortenMiddle(text: string, maxWidth: number, fontSize: number): string {
  if (estimateTextWidth(text, fontSize) <= maxWidth) return text;
  const letters = [...text];
  let [startText, endText, usedWidth] = ['', '', estimateTextWidth('…', fontSize)];
  for (let index = 0; index < letters.length; index++) {
    const isStart = index % 2 === 0;
    const letter = letters[isStart ? index / 2 : letters.length - (index + 1) / 2] ?? '';
    usedWidth += estimateTextWidth(letter, fontSize);
    if (usedWidth > maxWidth) break;
    if (isStart) startText += letter;
    else endText = letter + endText;
  }
  return `${startText.trimEnd()}…${endText.trimStart()}`;
}

/** Estimates the width of a text in pixels. In common fonts, the text is slightly narrower than the estimate. */
function estimateTextWidth(text: string, fontSize: number): number {
  let widthInEms = 0;
  for (const letter of text) {
    if (letter >= '\u1100') widthInEms += 1.05;
    else if (/[\d\p{Ll}]/u.test(letter)) widthInEms += 0.6;
    else widthInEms += /[\p{L}%@]/u.test(letter) ? 0.76 : 0.4;
  }
  return widthInEms * fontSize;
}
