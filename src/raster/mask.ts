import type { Path, Point } from './path.ts';
import type { Rect } from './raster.ts';

/** How much of each pixel of a rectangle a path covers, from 0 to 1, row by row. */
export interface Mask extends Rect {
  coverage: Float32Array;
}

/** Nothing for a path that lies outside, or that is not made of numbers. */
export function maskOf(path: Path, width: number, height: number): Mask | undefined {
  const box = boundsOf(path, width, height);
  if (box === undefined) return;
  // Each edge says at which pixel the inside begins or ends; going along the row then adds up to what is covered.
  const changes = new Float32Array(box.width * box.height);
  for (const outline of path)
    outline.forEach((point, at) => {
      addEdge(changes, box, inside(point, box), inside(outline[(at + 1) % outline.length] ?? point, box));
    });
  for (let row = 0; row < box.height; row++) {
    let sum = 0;
    for (let at = row * box.width; at < (row + 1) * box.width; at++) {
      sum += changes[at] ?? 0;
      changes[at] = Math.min(1, Math.abs(sum));
    }
  }
  return { ...box, coverage: changes };
}

const inside = ([x, y]: Point, box: Rect): Point => [x - box.x, y - box.y];

function boundsOf(path: Path, width: number, height: number): Rect | undefined {
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const outline of path)
    for (const [x, y] of outline) {
      if (!Number.isFinite(x) || !Number.isFinite(y)) return;
      [left, right] = [Math.min(left, x), Math.max(right, x)];
      [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
    }
  const box = { x: Math.max(0, Math.floor(left)), y: Math.max(0, Math.floor(top)) };
  const size = {
    width: Math.min(width, Math.ceil(right)) - box.x,
    height: Math.min(height, Math.ceil(bottom)) - box.y,
  };
  return size.width > 0 && size.height > 0 ? { ...box, ...size } : undefined;
}

/** Row by row, an edge adds what lies to the right of it; downwards and upwards cancel each other out. */
function addEdge(changes: Float32Array, { width, height }: Rect, start: Point, end: Point): void {
  const direction = start[1] < end[1] ? 1 : -1;
  const [[topX, topY], [bottomX, bottomY]] = direction === 1 ? [start, end] : [end, start];
  if (topY === bottomY) return;
  const slope = (bottomX - topX) / (bottomY - topY);
  const last = Math.min(height, Math.ceil(bottomY));
  for (let row = Math.max(0, Math.floor(topY)); row < last; row++) {
    const from = Math.max(row, topY);
    const to = Math.min(row + 1, bottomY);
    const here = topX + (from - topY) * slope;
    const there = topX + (to - topY) * slope;
    const amount = direction * (to - from);
    addSpan(changes, { row: row * width, width, left: Math.min(here, there), right: Math.max(here, there), amount });
  }
}

interface Span {
  row: number;
  width: number;
  left: number;
  right: number;
  amount: number;
}

/** The part of an edge in one row, from `left` to `right`: the pixels it crosses are covered in part. */
function addSpan(changes: Float32Array, { row, width, left, right, amount }: Span): void {
  const first = Math.max(0, Math.floor(left));
  const last = Math.min(width - 1, Math.max(0, Math.floor(right) + 1));
  let [before, upTo] = [0, coveredUpTo(first, left, right)];
  for (let column = first; column <= last; column++) {
    const next = coveredUpTo(column + 1, left, right);
    changes[row + column] = (changes[row + column] ?? 0) + amount * (next - upTo - before);
    before = next - upTo;
    upTo = next;
  }
}

/** How much an edge from `left` to `right` covers of what is left of `x`. */
function coveredUpTo(x: number, left: number, right: number): number {
  if (x <= left) return 0;
  return x >= right ? x - (left + right) / 2 : (x - left) ** 2 / (2 * (right - left));
}
