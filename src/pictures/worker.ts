import { parentPort } from 'node:worker_threads';
import type { Chart, ChartColour, Point } from '../charts/chart.ts';
import { Canvas, type Colour, type Rect, stroke } from '../drawing/canvas.ts';
import { decodeJpeg, decodePng, decodeWebp, encodeJpeg, type Raster } from '../drawing/codecs.ts';
import { canDraw, drawText, linesOf, textWidth } from '../drawing/text.ts';
import { getLightColour } from '../ui/palette.ts';
import { lowerThreadPriority } from '../workers/low-priority.ts';
import type { PictureFormat } from './fetch-picture.ts';
import type { Drawing, DrawnTile, DrawReply, DrawRequest, Grid } from './pictures.ts';

/**
 * The thread in which pictures from outside are decoded: the thread has no environment, no standard output and little
 * memory, and is ended if it takes too long.
 */
const decoders: Record<PictureFormat, typeof decodeJpeg> = { jpeg: decodeJpeg, png: decodePng, webp: decodeWebp };

const thumbnailQuality = 85;

async function answer(request: DrawRequest): Promise<DrawReply> {
  if (request.type === 'sheet') return { jpeg: await drawSheet(request) };
  if (request.type === 'chart') return drawChart(request.chart);
  const { format, bytes, side } = request;
  const raster = await decoders[format](bytes);
  const canvas = fit(raster, side);
  return { jpeg: await encodeJpeg(canvas, thumbnailQuality), print: picturePrint(canvas) };
}

/** Steps of brightness that a picture keeps when it is encoded again, and how many a picture has at least that is not plain. */
const minStep = 3;
const minSteps = 14;

/**
 * A difference hash: of each of 8 × 8 places, whether it is brighter than the place on its right. 16 hex digits, with
 * `-` behind them where few places differ from their neighbours: nearly plain pictures resemble each other.
 */
function picturePrint(raster: Raster): string {
  const { data } = resize(raster, 9, 8);
  const brightness = (pixel: number) =>
    [0.299, 0.587, 0.114].reduce((sum, share, channel) => sum + share * (data[4 * pixel + channel] ?? 0), 0);
  let [bits, steps] = [0n, 0];
  for (let bit = 0; bit < 64; bit++) {
    const at = bit + Math.floor(bit / 8);
    const step = brightness(at) - brightness(at + 1);
    bits = (bits << 1n) | BigInt(step > minStep);
    if (Math.abs(step) > minStep) steps++;
  }
  return `${bits.toString(16).padStart(16, '0')}${steps < minSteps ? '-' : ''}`;
}

/** The picture in a size that fits into the square and is never larger than the picture. */
function fit(raster: Raster, side: number): Raster {
  const scale = Math.min(1, side / Math.max(raster.width, raster.height));
  return resize(raster, Math.max(1, Math.round(raster.width * scale)), Math.max(1, Math.round(raster.height * scale)));
}

function resize(raster: Raster, width: number, height: number): Raster {
  const canvas = new Canvas(width, height);
  canvas.draw(raster, { x: 0, y: 0, width, height });
  return canvas;
}

lowerThreadPriority();
parentPort?.on('message', (request: DrawRequest) => {
  const reply = async () => parentPort?.postMessage(await answer(request).catch(() => undefined));
  void reply();
});
// Ready for the first request.
parentPort?.postMessage(undefined);

const paper = getLightColour('panel');
const card = getLightColour('paper');
const ink = getLightColour('ink');
const faint = getLightColour('soft');
const absent = getLightColour('line');

const maxBytes = 200_000;
/** Pixels of a tile without a picture, in a row without pictures. */
const absentHeight = 150;

type Tile = { drawn: DrawnTile; picture: Raster | undefined };

/** Numbered pictures in rows as high as their highest, under a line with the word. */
async function drawSheet({ word, grid, tiles }: Extract<DrawRequest, { type: 'sheet' }>): Promise<Uint8Array> {
  const { columns, side, width, gap, headHeight, labelHeight } = grid;
  const all: Tile[] = [];
  for (const drawn of tiles) all.push({ drawn, picture: 'jpeg' in drawn ? await decodeJpeg(drawn.jpeg) : undefined });
  const rows = Array.from({ length: Math.ceil(all.length / columns) }, (_, row) => {
    const inRow = all.slice(row * columns, (row + 1) * columns);
    const heights = inRow.map(({ picture }) =>
      picture ? Math.max(1, Math.round(picture.height * scaleFor(picture, side))) : Math.min(side, absentHeight),
    );
    return { tiles: inRow, height: labelHeight + Math.max(...heights) };
  });
  const height = headHeight + rows.reduce((sum, row) => sum + row.height + gap, 0);
  const canvas = new Canvas(width, height, paper);
  drawHead(canvas, word, { count: tiles.length, grid });
  let y = headHeight;
  for (const row of rows) {
    row.tiles.forEach((tile, column) => {
      drawTile(canvas, tile, { x: gap + column * (side + gap), y, width: side, height: row.height }, labelHeight);
    });
    y += row.height + gap;
  }
  return smallEnough(canvas);
}

/** The scale of a picture in its row. Small pictures are enlarged a little at most. */
const scaleFor = ({ width, height }: Raster, side: number) => Math.min(side / Math.max(width, height), 2);

function drawHead(canvas: Canvas, word: string, { count, grid }: { count: number; grid: Grid }): void {
  const { width, gap, headHeight } = grid;
  const y = headHeight - 20;
  drawText(canvas, 'word:', { x: gap, y, size: 26, colour: faint });
  drawText(canvas, word, { x: gap + textWidth('word: ', { size: 26 }), y, size: 30, bold: true, colour: ink });
  const note = count === 1 ? '1 ad' : `${count} ads`;
  drawText(canvas, note, { x: width - gap, y, size: 22, colour: faint, anchor: 'end' });
}

function drawTile(canvas: Canvas, { drawn, picture }: Tile, area: Rect, labelHeight: number): void {
  canvas.fillRect(area, picture ? card : absent);
  drawLabel(canvas, drawn, { ...area, height: labelHeight });
  const inside = { ...area, y: area.y + labelHeight, height: area.height - labelHeight };
  if (picture) canvas.draw(picture, centre(picture, inside));
  else if ('reason' in drawn)
    drawCentred(canvas, [...(drawn.headline ? [`“${drawn.headline}”`] : []), `not shown: ${drawn.reason}`], inside);
}

function centre(picture: Raster, { x, y, width, height }: Rect): Rect {
  const scale = Math.min(scaleFor(picture, width), height / picture.height);
  const size = { width: Math.max(1, picture.width * scale), height: Math.max(1, picture.height * scale) };
  return { x: x + (width - size.width) / 2, y: y + (height - size.height) / 2, ...size };
}

/** The number in a box of its own, outside of the picture. */
function drawLabel(canvas: Canvas, { number, label }: DrawnTile, { x, y, width, height }: Rect): void {
  const size = 22;
  const text = String(number);
  const box = Math.max(height + 6, textWidth(text, { size, bold: true }) + 20);
  canvas.fillRect({ x, y, width: box, height }, ink);
  drawText(canvas, text, { x: x + box / 2, y: y + 25, size, bold: true, colour: card, anchor: 'middle' });
  if (label === undefined) return;
  drawText(canvas, label, { x: x + box + 10, y: y + 23, size: 17, colour: faint, maxWidth: width - box - 20 });
}

function drawCentred(canvas: Canvas, texts: readonly string[], { x, y, width, height }: Rect): void {
  const size = 18;
  const lineHeight = 25;
  const maxLines = Math.max(1, Math.floor((height - 10) / lineHeight / texts.length));
  const lines = texts.flatMap((text) => linesOf(text, { size, maxWidth: width - 32, maxLines }));
  const top = y + (height - lines.length * lineHeight) / 2 + size;
  for (const [at, line] of lines.entries())
    drawText(canvas, line, { x: x + width / 2, y: top + at * lineHeight, size, colour: ink, anchor: 'middle' });
}

const chartColour = (colour: ChartColour): Colour => getLightColour(colour === 'grid' ? 'line' : colour);

async function drawChart({ width, height, shapes }: Chart): Promise<Drawing> {
  const isNumbered = shapes.some((shape) => 'fallbackText' in shape && shape.fallbackText && !canDraw(shape.text));
  const canvas = new Canvas(width, height);
  for (const shape of shapes) {
    const colour = chartColour(shape.colour);
    if (shape.kind === 'rect') canvas.fillRect(shape, shape.isPale ? lighten(colour) : colour);
    else if (shape.kind === 'line')
      for (const points of shape.isDashed ? dashesOf(shape.points) : [shape.points])
        canvas.fillPath(stroke(points, shape.width), colour);
    else {
      const { text, fallbackText = '', ...position } = shape;
      drawText(canvas, canDraw(text) ? text : fallbackText, { ...position, colour });
    }
  }
  return { jpeg: await smallEnough(canvas), isNumbered };
}

/** What has not ended, half as strong. */
const lighten = ([red, green, blue]: Colour): Colour => [(red + 255) / 2, (green + 255) / 2, (blue + 255) / 2];

/** Pixels of a dash, with a gap as long. */
const dash = 7;

function dashesOf([[x1, y1] = [0, 0], [x2, y2] = [0, 0]]: readonly Point[]): Point[][] {
  const length = Math.hypot(x2 - x1, y2 - y1) || 1;
  const at = (distance: number): Point => {
    const part = Math.min(1, distance / length);
    return [x1 + part * (x2 - x1), y1 + part * (y2 - y1)];
  };
  return Array.from({ length: Math.ceil(length / (2 * dash)) }, (_, index) => [
    at(2 * dash * index),
    at(2 * dash * index + dash),
  ]);
}

/** Photographs fit at a good quality, noise at a poor one. */
async function smallEnough(canvas: Canvas): Promise<Uint8Array> {
  let jpeg: Uint8Array = new Uint8Array();
  for (const quality of [82, 68, 52, 36, 20, 8]) {
    jpeg = await encodeJpeg(canvas, quality);
    if (jpeg.length <= maxBytes) break;
  }
  return jpeg;
}
