import type { Raster } from './codecs.ts';

/** A rectangle in pixels. `x` and `y` are its top left corner. */
export interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** A color with red, green and blue values from 0 to 255. */
export type Color = readonly [red: number, green: number, blue: number];

/** An opaque bitmap to draw on. The parts of a shape that lie outside the bitmap are not drawn. */
export class Canvas implements Raster {
  readonly width: number;
  readonly height: number;
  readonly data: Uint8ClampedArray;

  constructor(width: number, height: number, background: Color = [255, 255, 255]) {
    this.width = width;
    this.height = height;
    this.data = new Uint8ClampedArray(width * height * 4).fill(255);
    this.fillRect({ x: 0, y: 0, width, height }, background);
  }

  fillRect({ x, y, width, height }: Rect, color: Color): void {
    const left = Math.max(0, Math.round(x));
    const visibleWidth = Math.min(this.width, Math.round(x + width)) - left;
    const bottom = Math.min(this.height, Math.round(y + height));
    if (visibleWidth <= 0) return;
    const pixels = createRowOfColor(color, visibleWidth);
    for (let row = Math.max(0, Math.round(y)); row < bottom; row++) this.#blendRow(left, row, pixels);
  }

  fillPath(path: Path, color: Color): void {
    const pathCoverage = computeCoverage(path, this.width, this.height);
    if (pathCoverage === undefined) return;
    const { x, y, width, height, coverage } = pathCoverage;
    const pixels = createRowOfColor(color, width);
    for (let row = 0; row < height; row++)
      this.#blendRow(x, y + row, pixels, coverage.subarray(row * width, (row + 1) * width));
  }

  /** Draws a picture on the bitmap, stretched to fill the rectangle `target`. */
  drawRaster(raster: Raster, target: Rect): void {
    const targetSize = { width: Math.max(1, Math.round(target.width)), height: Math.max(1, Math.round(target.height)) };
    const leftColumn = Math.round(target.x);
    const hiddenColumnCount = Math.max(0, -leftColumn);
    let row = Math.round(target.y);
    for (const pixels of resampleRows(raster, targetSize)) {
      const visiblePixels = pixels.subarray(
        hiddenColumnCount * 4,
        Math.max(hiddenColumnCount, this.width - leftColumn) * 4,
      );
      if (row >= 0 && row < this.height) this.#blendRow(leftColumn + hiddenColumnCount, row, visiblePixels);
      row++;
    }
  }

  /**
   * Blends a row of pixels into the bitmap, starting at `leftColumn`. `coverage` is the share of each pixel that the
   * shape covers, from 0 to 1. If `coverage` is omitted, the shape covers all pixels completely.
   */
  #blendRow(leftColumn: number, row: number, pixels: Float32Array, coverage?: Float32Array): void {
    const { data, width } = this;
    let targetIndex = (row * width + leftColumn) * 4;
    for (let sourceIndex = 0; sourceIndex < pixels.length; sourceIndex += 4, targetIndex += 4) {
      const coverageShare = coverage === undefined ? 1 : (coverage[sourceIndex / 4] as number);
      if (coverageShare === 0) continue;
      const backgroundShare = 1 - ((pixels[sourceIndex + 3] as number) / 255) * coverageShare;
      data[targetIndex] =
        (data[targetIndex] as number) * backgroundShare + (pixels[sourceIndex] as number) * coverageShare;
      data[targetIndex + 1] =
        (data[targetIndex + 1] as number) * backgroundShare + (pixels[sourceIndex + 1] as number) * coverageShare;
      data[targetIndex + 2] =
        (data[targetIndex + 2] as number) * backgroundShare + (pixels[sourceIndex + 2] as number) * coverageShare;
    }
  }
}

/** Creates a row of opaque pixels in the same color, with four numbers per pixel. */
const createRowOfColor = ([red, green, blue]: Color, width: number): Float32Array =>
  Float32Array.from({ length: width * 4 }, (_, index) => [red, green, blue, 255][index % 4] as number);

/** A list of closed outlines. An inner outline that runs in the opposite direction cuts a hole into the outer one. */
export type Path = readonly (readonly Point[])[];
/** A point in pixels from the top left. The y axis points down. */
export type Point = readonly [x: number, y: number];

/** A drawing command of a glyph outline: move, line, quadratic curve or close. */
export type GlyphCommand =
  | { type: 'M'; x: number; y: number }
  | { type: 'L'; x: number; y: number }
  | { type: 'Q'; x1: number; y1: number; x: number; y: number }
  | { type: 'Z' };

/**
 * The number of line segments that replace each curve of a letter. Ten segments look smooth at the font sizes that the
 * server uses.
 */
const curveSegmentCount = 10;

/** Converts the outline of a glyph (the shape of a letter) to a path. Replaces curves with short line segments. */
export function buildGlyphPath(commands: Iterable<GlyphCommand>): Path {
  const path: Point[][] = [];
  let lastPoint: Point = [0, 0];
  for (const command of commands) {
    if (command.type === 'Z') continue;
    const end: Point = [command.x, command.y];
    if (command.type === 'M') path.push([end]);
    else if (command.type === 'L') path.at(-1)?.push(end);
    else path.at(-1)?.push(...flattenCurve(lastPoint, [command.x1, command.y1], end));
    lastPoint = end;
  }
  return path;
}

const interpolate = ([x, y]: Point, [toX, toY]: Point, ratio: number): Point => [
  x + (toX - x) * ratio,
  y + (toY - y) * ratio,
];

const flattenCurve = (start: Point, control: Point, end: Point): Point[] =>
  Array.from({ length: curveSegmentCount }, (_, index) => {
    const ratio = (index + 1) / curveSegmentCount;
    return interpolate(interpolate(start, control, ratio), interpolate(control, end, ratio), ratio);
  });

function buildCircle(x: number, y: number, radius: number): Point[] {
  const sideCount = 4 * Math.ceil(3 + 1.5 * Math.sqrt(radius));
  return Array.from({ length: sideCount }, (_, index) => {
    const angle = (index / sideCount) * 2 * Math.PI;
    return [x + Math.cos(angle) * radius, y + Math.sin(angle) * radius];
  });
}

/** Builds the outline of a line with the given width, round ends and round corners. */
export function buildStroke(linePoints: readonly Point[], width: number): Path {
  const radius = width / 2;
  return linePoints.flatMap(([x, y], index) => {
    const roundEnd = buildCircle(x, y, radius);
    const [toX, toY] = linePoints[index + 1] ?? [x, y];
    const length = Math.hypot(toX - x, toY - y);
    if (length === 0) return [roundEnd];
    const [offsetX, offsetY] = [(-(toY - y) / length) * radius, ((toX - x) / length) * radius];
    const offsetPoint = (px: number, py: number, side: 1 | -1): Point => [px + side * offsetX, py + side * offsetY];
    return [
      roundEnd,
      [offsetPoint(x, y, -1), offsetPoint(toX, toY, -1), offsetPoint(toX, toY, 1), offsetPoint(x, y, 1)],
    ];
  });
}

/**
 * Computes the share of each pixel that a path covers, from 0 to 1, so that edges look smooth. Returns the shares for
 * the bounding box of the path. Returns undefined if the path is outside the bitmap or has a coordinate that is not
 * finite.
 */
function computeCoverage(path: Path, width: number, height: number) {
  const bounds = computeBounds(path, width, height);
  if (bounds === undefined) return;
  // For each pixel, `coverageChanges` stores the difference from the coverage of the pixel to its left. The coverage of
  // a pixel is therefore the sum of all changes from the start of its row.
  const coverageChanges = new Float32Array(bounds.width * bounds.height);
  for (const outline of path)
    outline.forEach((point, index) => {
      addEdge(
        coverageChanges,
        bounds,
        toBoundsCoordinates(point, bounds),
        toBoundsCoordinates(outline[(index + 1) % outline.length] ?? point, bounds),
      );
    });
  for (let row = 0; row < bounds.height; row++) {
    let sum = 0;
    for (let index = row * bounds.width; index < (row + 1) * bounds.width; index++) {
      sum += coverageChanges[index] ?? 0;
      coverageChanges[index] = Math.min(1, Math.abs(sum));
    }
  }
  return { ...bounds, coverage: coverageChanges };
}

const toBoundsCoordinates = ([x, y]: Point, bounds: Rect): Point => [x - bounds.x, y - bounds.y];

function computeBounds(path: Path, width: number, height: number): Rect | undefined {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const outline of path)
    for (const [x, y] of outline) {
      if (!Number.isFinite(x) || !Number.isFinite(y)) return;
      [left, right] = [Math.min(left, x), Math.max(right, x)];
      [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
    }
  const topLeft = { x: Math.max(0, Math.floor(left)), y: Math.max(0, Math.floor(top)) };
  const size = {
    width: Math.min(width, Math.ceil(right)) - topLeft.x,
    height: Math.min(height, Math.ceil(bottom)) - topLeft.y,
  };
  return size.width > 0 && size.height > 0 ? { ...topLeft, ...size } : undefined;
}

/**
 * Adds an edge of a path to `coverageChanges`, which stores how the coverage changes from each pixel to the next. A
 * downward edge starts the covered area to its right, and an upward edge ends that area.
 */
function addEdge(coverageChanges: Float32Array, { width, height }: Rect, start: Point, end: Point): void {
  const direction = start[1] < end[1] ? 1 : -1;
  const [[topX, topY], [bottomX, bottomY]] = direction === 1 ? [start, end] : [end, start];
  if (topY === bottomY) return;
  const slope = (bottomX - topX) / (bottomY - topY);
  const endRow = Math.min(height, Math.ceil(bottomY));
  for (let row = Math.max(0, Math.floor(topY)); row < endRow; row++) {
    const rowTop = Math.max(row, topY);
    const rowBottom = Math.min(row + 1, bottomY);
    const crossingAtTop = topX + (rowTop - topY) * slope;
    const crossingAtBottom = topX + (rowBottom - topY) * slope;
    const [leftX, rightX] =
      crossingAtTop < crossingAtBottom ? [crossingAtTop, crossingAtBottom] : [crossingAtBottom, crossingAtTop];
    // In this row, the coverage changes only at the pixels that the edge crosses and at the next pixel to their right.
    const firstColumn = Math.max(0, Math.floor(leftX));
    const lastColumn = Math.min(width - 1, Math.max(0, Math.floor(rightX) + 1));
    let [previousColumnArea, areaSoFar] = [0, computeAreaRightOfEdge(firstColumn, leftX, rightX)];
    for (let column = firstColumn; column <= lastColumn; column++) {
      const areaWithColumn = computeAreaRightOfEdge(column + 1, leftX, rightX);
      const index = row * width + column;
      coverageChanges[index] =
        (coverageChanges[index] ?? 0) +
        direction * (rowBottom - rowTop) * (areaWithColumn - areaSoFar - previousColumnArea);
      previousColumnArea = areaWithColumn - areaSoFar;
      areaSoFar = areaWithColumn;
    }
  }
}

/**
 * Computes the area between a slanted edge and the vertical line at `x` to its right, within a row of height 1. The
 * edge runs from `leftX` at one side of the row to `rightX` at the other side.
 */
function computeAreaRightOfEdge(x: number, leftX: number, rightX: number): number {
  if (x <= leftX) return 0;
  return x >= rightX ? x - (leftX + rightX) / 2 : (x - leftX) ** 2 / (2 * (rightX - leftX));
}

/**
 * Scales a picture to a new size and yields its rows. Shrinking averages the original pixels, and enlarging
 * interpolates between them. Transparent pixels are weighted by their opacity. Only one row is in memory at a time,
 * even for large pictures.
 */
function* resampleRows(
  { width, height, data }: Raster,
  targetSize: Pick<Rect, 'width' | 'height'>,
): Generator<Float32Array> {
  const columnWeights = computeResampleWeights(width, targetSize.width);
  const rowWeights = computeResampleWeights(height, targetSize.height);
  const channelSums = new Float32Array(width * 4);
  const pixels = new Float32Array(targetSize.width * 4);
  for (const { firstSourceIndex, weights } of rowWeights) {
    channelSums.fill(0);
    for (const [row, weight] of weights.entries()) {
      const rowStart = (firstSourceIndex + row) * width * 4;
      for (let index = 0; index < channelSums.length; index += 4) {
        const opacity = data[rowStart + index + 3] ?? 0;
        const opacityWeight = (weight * opacity) / 255;
        channelSums[index] = (channelSums[index] ?? 0) + (data[rowStart + index] ?? 0) * opacityWeight;
        channelSums[index + 1] = (channelSums[index + 1] ?? 0) + (data[rowStart + index + 1] ?? 0) * opacityWeight;
        channelSums[index + 2] = (channelSums[index + 2] ?? 0) + (data[rowStart + index + 2] ?? 0) * opacityWeight;
        channelSums[index + 3] = (channelSums[index + 3] ?? 0) + opacity * weight;
      }
    }
    for (const [column, { firstSourceIndex, weights }] of columnWeights.entries())
      for (let channel = 0; channel < 4; channel++) {
        let sum = 0;
        for (let index = 0; index < weights.length; index++)
          sum += (channelSums[(firstSourceIndex + index) * 4 + channel] ?? 0) * (weights[index] ?? 0);
        pixels[column * 4 + channel] = sum;
      }
    yield pixels;
  }
}

/**
 * Computes how to resample a row or column of pixels to another number of pixels. For each new pixel, returns the index
 * of the first original pixel (`firstSourceIndex`) and the weights of the original pixels, which are highest near the
 * center.
 */
function computeResampleWeights(sourcePixelCount: number, targetPixelCount: number) {
  const scale = sourcePixelCount / targetPixelCount;
  const weightRadius = Math.max(1, scale);
  return Array.from({ length: targetPixelCount }, (_, index) => {
    const sourceCenter = (index + 0.5) * scale - 0.5;
    const firstSourceIndex = Math.min(sourcePixelCount - 1, Math.max(0, Math.ceil(sourceCenter - weightRadius)));
    const lastSourceIndex = Math.max(
      firstSourceIndex,
      Math.min(sourcePixelCount - 1, Math.floor(sourceCenter + weightRadius)),
    );
    const weights = Float32Array.from({ length: lastSourceIndex - firstSourceIndex + 1 }, (_, offset) =>
      Math.max(1e-6, 1 - Math.abs(firstSourceIndex + offset - sourceCenter) / weightRadius),
    );
    const sum = weights.reduce((total, weight) => total + weight, 0);
    return { firstSourceIndex, weights: weights.map((weight) => weight / sum) };
  });
}
