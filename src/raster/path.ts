import type { Rect } from './raster.ts';

/** Closed outlines. Where they turn the same way they add up; one that turns the other way cuts a hole. */
export type Path = readonly (readonly Point[])[];
export type Point = readonly [x: number, y: number];

/** What an outline is made of, in fonts as in SVG: lines, and curves with one control point or two. */
export type Command =
  | { type: 'M'; x: number; y: number }
  | { type: 'L'; x: number; y: number }
  | { type: 'Q'; x1: number; y1: number; x: number; y: number }
  | { type: 'C'; x1: number; y1: number; x2: number; y2: number; x: number; y: number }
  | { type: 'Z' };

/** Straight pieces of a curve. */
const PIECES = 10;
/** Straight pieces of a circle: enough to look round. */
const sidesOf = (radius: number) => 4 * Math.ceil(3 + 1.5 * Math.sqrt(radius));

export function pathOf(commands: Iterable<Command>): Path {
  const path: Point[][] = [];
  let last: Point = [0, 0];
  for (const command of commands) {
    if (command.type === 'Z') continue;
    const end: Point = [command.x, command.y];
    if (command.type === 'M') path.push([end]);
    else if (command.type === 'L') path.at(-1)?.push(end);
    else path.at(-1)?.push(...curve(last, controlsOf(last, command), end));
    last = end;
  }
  return path;
}

/** A curve with one control point looks like one with two that lie on the way to it. */
function controlsOf(start: Point, curve: Extract<Command, { x1: number }>): readonly [Point, Point] {
  const first: Point = [curve.x1, curve.y1];
  if (curve.type === 'C') return [first, [curve.x2, curve.y2]];
  return [along(start, first, 2 / 3), along([curve.x, curve.y], first, 2 / 3)];
}

const along = ([x, y]: Point, [toX, toY]: Point, way: number): Point => [x + (toX - x) * way, y + (toY - y) * way];

const curve = (start: Point, [first, second]: readonly [Point, Point], end: Point): Point[] =>
  Array.from({ length: PIECES }, (_, at) => {
    const way = (at + 1) / PIECES;
    const middle = along(first, second, way);
    return along(along(along(start, first, way), middle, way), along(middle, along(second, end, way), way), way);
  });

export function ellipse(x: number, y: number, [wide, high]: readonly [number, number]): Path {
  const sides = sidesOf(Math.max(wide, high));
  const point = (angle: number): Point => [x + Math.cos(angle) * wide, y + Math.sin(angle) * high];
  return [Array.from({ length: sides }, (_, at) => point((at / sides) * 2 * Math.PI))];
}

/** A rectangle with round corners. */
export function roundedRect({ x, y, width, height }: Rect, radius: number): Path {
  const round = Math.min(radius, width / 2, height / 2);
  const corners = [
    [x + width - round, y + height - round],
    [x + round, y + height - round],
    [x + round, y + round],
    [x + width - round, y + round],
  ] as const;
  const quarter = sidesOf(round) / 4;
  return [
    corners.flatMap(([centreX, centreY], corner) =>
      Array.from({ length: quarter + 1 }, (_, at): Point => {
        const angle = ((corner + at / quarter) * Math.PI) / 2;
        return [centreX + Math.cos(angle) * round, centreY + Math.sin(angle) * round];
      }),
    ),
  ];
}

/** Lines of some width with round ends along outlines, which stay open. */
export function stroke(lines: Path, width: number): Path {
  const half = width / 2;
  return lines.flatMap((line) =>
    line.flatMap(([x, y], at) => {
      const end = ellipse(x, y, [half, half]);
      const [toX, toY] = line[at + 1] ?? [x, y];
      const length = Math.hypot(toX - x, toY - y);
      if (length === 0) return end;
      const [acrossX, acrossY] = [(-(toY - y) / length) * half, ((toX - x) / length) * half];
      const side: Point[] = [
        [x - acrossX, y - acrossY],
        [toX - acrossX, toY - acrossY],
        [toX + acrossX, toY + acrossY],
        [x + acrossX, y + acrossY],
      ];
      return [...end, side];
    }),
  );
}

/** Made larger or smaller from the origin, then moved. */
export const moved = (path: Path, { x, y, scaleX, scaleY }: Record<'x' | 'y' | 'scaleX' | 'scaleY', number>): Path =>
  path.map((outline) => outline.map(([px, py]): Point => [px * scaleX + x, py * scaleY + y]));
