import { parentPort } from 'node:worker_threads';
import type { Chart, ChartColor, Point } from '../charts/chart.ts';
import { buildStroke, Canvas, type Color, type Rect } from '../drawing/canvas.ts';
import { decodeJpeg, decodePng, decodeWebp, encodeJpeg, type Raster } from '../drawing/codecs.ts';
import { breakIntoLines, canDrawText, drawText, measureText } from '../drawing/text.ts';
import { getLightColor } from '../ui/palette.ts';
import { lowerThreadPriority } from '../workers/low-priority.ts';
import type { PictureFormat } from './fetch-picture.ts';
import type { DrawnPicture, FetchedTile, SheetLayout, WorkerReply, WorkerRequest } from './pictures.ts';

/*
 * This worker thread decodes pictures of advertisers, which may be hostile. The thread therefore has no environment, no
 * standard output and little memory. The server ends the thread if a request takes too long.
 */

const decoders: Record<PictureFormat, typeof decodeJpeg> = { jpeg: decodeJpeg, png: decodePng, webp: decodeWebp };

const thumbnailQuality = 85;

async function handleRequest(request: WorkerRequest): Promise<WorkerReply> {
  if (request.type === 'sheet') return { jpeg: await drawSheet(request) };
  if (request.type === 'chart') return drawChart(request.chart);
  const { format, bytes, maxSide } = request;
  const raster = await decoders[format](bytes);
  const canvas = shrinkToFit(raster, maxSide);
  return { jpeg: await encodeJpeg(canvas, thumbnailQuality), perceptualHash: computePerceptualHash(canvas) };
}

/**
 * The minimum difference in brightness between neighboring cells, on a scale from 0 to 255. Smaller differences are
 * ignored, because they may disappear when a picture is encoded again.
 */
const minBrightnessStep = 3;
/** The number of visible brightness differences, out of 64, below which a picture counts as nearly plain. */
const minVisibleStepCount = 14;

/**
 * Computes the difference hash of a picture, which is divided into 8 rows of 9 cells. Each of the 64 bits tells whether
 * a cell is brighter than the cell to its right. Returns 16 hexadecimal digits. Appends `-` for a nearly plain picture,
 * because the hashes of such pictures are all similar.
 */
function computePerceptualHash(raster: Raster): string {
  const { data } = resize(raster, 9, 8);
  const computeBrightness = (pixelIndex: number) =>
    [0.299, 0.587, 0.114].reduce(
      (sum, channelWeight, channel) => sum + channelWeight * (data[4 * pixelIndex + channel] ?? 0),
      0,
    );
  let [bits, visibleStepCount] = [0n, 0];
  for (let bit = 0; bit < 64; bit++) {
    const cellIndex = bit + Math.floor(bit / 8);
    const brightnessStep = computeBrightness(cellIndex) - computeBrightness(cellIndex + 1);
    bits = (bits << 1n) | BigInt(brightnessStep > minBrightnessStep);
    if (Math.abs(brightnessStep) > minBrightnessStep) visibleStepCount++;
  }
  return `${bits.toString(16).padStart(16, '0')}${visibleStepCount < minVisibleStepCount ? '-' : ''}`;
}

/** Shrinks a picture to fit into a square. Does not enlarge a smaller picture. */
function shrinkToFit(raster: Raster, maxSide: number): Raster {
  const scale = Math.min(1, maxSide / Math.max(raster.width, raster.height));
  return resize(raster, Math.max(1, Math.round(raster.width * scale)), Math.max(1, Math.round(raster.height * scale)));
}

function resize(raster: Raster, width: number, height: number): Raster {
  const canvas = new Canvas(width, height);
  canvas.drawRaster(raster, { x: 0, y: 0, width, height });
  return canvas;
}

lowerThreadPriority();
parentPort?.on('message', (request: WorkerRequest) => {
  const sendReply = async () => parentPort?.postMessage(await handleRequest(request).catch(() => undefined));
  void sendReply();
});
// Tell the pool that this worker is ready for its first request.
parentPort?.postMessage(undefined);

const sheetBackgroundColor = getLightColor('panel');
const tileBackgroundColor = getLightColor('paper');
const textColor = getLightColor('ink');
const captionColor = getLightColor('soft');
const missingPictureBackgroundColor = getLightColor('line');

const maxDrawingBytes = 200_000;
/** The height of the area that explains why a picture is missing, in pixels. */
const missingPictureHeight = 150;

type DecodedTile = { tile: FetchedTile; picture: Raster | undefined };

/**
 * Draws a picture sheet: a header with the proof word (see `generateProofWord`), followed by rows of numbered pictures.
 * Each row is as high as its tallest picture.
 */
async function drawSheet({ proofWord, layout, tiles }: Extract<WorkerRequest, { type: 'sheet' }>): Promise<Uint8Array> {
  const { columns, maxPictureSide, width, gap, headerHeight, labelHeight } = layout;
  const decodedTiles: DecodedTile[] = [];
  for (const tile of tiles)
    decodedTiles.push({ tile, picture: 'jpeg' in tile ? await decodeJpeg(tile.jpeg) : undefined });
  const rows = Array.from({ length: Math.ceil(decodedTiles.length / columns) }, (_, row) => {
    const rowTiles = decodedTiles.slice(row * columns, (row + 1) * columns);
    const heights = rowTiles.map(({ picture }) =>
      picture
        ? Math.max(1, Math.round(picture.height * computeScale(picture, maxPictureSide)))
        : Math.min(maxPictureSide, missingPictureHeight),
    );
    return { tiles: rowTiles, height: labelHeight + Math.max(...heights) };
  });
  const height = headerHeight + rows.reduce((sum, row) => sum + row.height + gap, 0);
  const canvas = new Canvas(width, height, sheetBackgroundColor);
  drawHeader(canvas, proofWord, { count: tiles.length, layout });
  let y = headerHeight;
  for (const row of rows) {
    row.tiles.forEach((tile, column) => {
      drawTile(
        canvas,
        tile,
        { x: gap + column * (maxPictureSide + gap), y, width: maxPictureSide, height: row.height },
        labelHeight,
      );
    });
    y += row.height + gap;
  }
  return encodeWithinLimit(canvas);
}

/**
 * Computes the factor by which a picture is scaled to fit its tile. Small pictures are enlarged to at most twice their
 * size.
 */
const computeScale = ({ width, height }: Raster, maxPictureSide: number) =>
  Math.min(maxPictureSide / Math.max(width, height), 2);

function drawHeader(
  canvas: Canvas,
  proofWord: string,
  { count, layout }: { count: number; layout: SheetLayout },
): void {
  const { width, gap, headerHeight } = layout;
  const y = headerHeight - 20;
  drawText(canvas, 'word:', { x: gap, y, size: 26, color: captionColor });
  drawText(canvas, proofWord, {
    x: gap + measureText('word: ', { size: 26 }),
    y,
    size: 30,
    bold: true,
    color: textColor,
  });
  const adCountText = count === 1 ? '1 ad' : `${count} ads`;
  drawText(canvas, adCountText, { x: width - gap, y, size: 22, color: captionColor, anchor: 'end' });
}

function drawTile(canvas: Canvas, { tile, picture }: DecodedTile, area: Rect, labelHeight: number): void {
  canvas.fillRect(area, picture ? tileBackgroundColor : missingPictureBackgroundColor);
  drawLabel(canvas, tile, { ...area, height: labelHeight });
  const pictureArea = { ...area, y: area.y + labelHeight, height: area.height - labelHeight };
  if (picture) canvas.drawRaster(picture, centerInArea(picture, pictureArea));
  else if ('reason' in tile)
    drawCenteredTexts(
      canvas,
      [...(tile.headline ? [`“${tile.headline}”`] : []), `not shown: ${tile.reason}`],
      pictureArea,
    );
}

function centerInArea(picture: Raster, { x, y, width, height }: Rect): Rect {
  const scale = Math.min(computeScale(picture, width), height / picture.height);
  const size = { width: Math.max(1, picture.width * scale), height: Math.max(1, picture.height * scale) };
  return { x: x + (width - size.width) / 2, y: y + (height - size.height) / 2, ...size };
}

/** Draws the number of a tile in a box above the picture, and its label next to the box. */
function drawLabel(canvas: Canvas, { number, label }: FetchedTile, { x, y, width, height }: Rect): void {
  const fontSize = 22;
  const numberText = String(number);
  const boxWidth = Math.max(height + 6, measureText(numberText, { size: fontSize, bold: true }) + 20);
  canvas.fillRect({ x, y, width: boxWidth, height }, textColor);
  drawText(canvas, numberText, {
    x: x + boxWidth / 2,
    y: y + 25,
    size: fontSize,
    bold: true,
    color: tileBackgroundColor,
    anchor: 'middle',
  });
  if (label === undefined) return;
  drawText(canvas, label, {
    x: x + boxWidth + 10,
    y: y + 23,
    size: 17,
    color: captionColor,
    maxWidth: width - boxWidth - 20,
  });
}

function drawCenteredTexts(canvas: Canvas, texts: readonly string[], { x, y, width, height }: Rect): void {
  const size = 18;
  const lineHeight = 25;
  const maxLines = Math.max(1, Math.floor((height - 10) / lineHeight / texts.length));
  const lines = texts.flatMap((text) => breakIntoLines(text, { size, maxWidth: width - 32, maxLines }));
  const top = y + (height - lines.length * lineHeight) / 2 + size;
  for (const [index, line] of lines.entries())
    drawText(canvas, line, { x: x + width / 2, y: top + index * lineHeight, size, color: textColor, anchor: 'middle' });
}

const getChartColor = (color: ChartColor): Color => getLightColor(color === 'grid' ? 'line' : color);

async function drawChart({ width, height, shapes }: Chart): Promise<DrawnPicture> {
  const hasNumberedLabels = shapes.some(
    (shape) => 'fallbackText' in shape && shape.fallbackText && !canDrawText(shape.text),
  );
  const canvas = new Canvas(width, height);
  for (const shape of shapes) {
    const color = getChartColor(shape.color);
    if (shape.kind === 'rect') canvas.fillRect(shape, shape.isPale ? lightenColor(color) : color);
    else if (shape.kind === 'line')
      for (const points of shape.isDashed ? splitIntoDashes(shape.points) : [shape.points])
        canvas.fillPath(buildStroke(points, shape.width), color);
    else {
      const { text, fallbackText = '', ...position } = shape;
      drawText(canvas, canDrawText(text) ? text : fallbackText, { ...position, color });
    }
  }
  return { jpeg: await encodeWithinLimit(canvas), hasNumberedLabels };
}

/** Returns a lighter version of a color. Used for the bars of months, weeks or days that have not ended. */
const lightenColor = ([red, green, blue]: Color): Color => [(red + 255) / 2, (green + 255) / 2, (blue + 255) / 2];

/** The length, in pixels, of a dash and of the gap after it. */
const dashLength = 7;

/** Splits a line of any number of points into dashes. A dash or gap can continue after a corner of the line. */
function splitIntoDashes(points: readonly Point[]): Point[][] {
  const dashes: Point[][] = [];
  // The dashes and gaps are numbered from the start of the line. Gaps have odd numbers.
  let [pieceIndex, lengthOfEarlierSegments] = [0, 0];
  for (const [index, [toX, toY]] of points.slice(1).entries()) {
    const [fromX, fromY] = points[index] ?? [toX, toY];
    const segmentLength = Math.hypot(toX - fromX, toY - fromY);
    const interpolatePoint = (distance: number): Point => {
      const fraction = distance / segmentLength;
      return [fromX + fraction * (toX - fromX), fromY + fraction * (toY - fromY)];
    };
    let start = 0;
    while (start < segmentLength) {
      const pieceEnd = (pieceIndex + 1) * dashLength - lengthOfEarlierSegments;
      const end = Math.min(segmentLength, pieceEnd);
      if (pieceIndex % 2 === 0 && end > start) dashes.push([interpolatePoint(start), interpolatePoint(end)]);
      if (pieceEnd <= segmentLength) pieceIndex++;
      start = Math.max(start, end);
    }
    lengthOfEarlierSegments += segmentLength;
  }
  return dashes;
}

/**
 * Encodes a picture as a JPEG, with the highest quality at which the file has at most `maxDrawingBytes` bytes. If no
 * quality is low enough, returns the smallest file.
 */
async function encodeWithinLimit(canvas: Canvas): Promise<Uint8Array> {
  let jpeg: Uint8Array = new Uint8Array();
  for (const quality of [82, 68, 52, 36, 20, 8]) {
    jpeg = await encodeJpeg(canvas, quality);
    if (jpeg.length <= maxDrawingBytes) break;
  }
  return jpeg;
}
