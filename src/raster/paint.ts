/** Red, green and blue from 0 to 255, and opacity from 0 to 1. */
export type Colour = readonly [red: number, green: number, blue: number, opacity?: number];

/** From one colour to another: along the line between two points, or outwards from the first to the second. */
export interface Gradient {
  shape: 'linear' | 'radial';
  from: readonly [x: number, y: number];
  to: readonly [x: number, y: number];
  colours: readonly [Colour, Colour];
}

export type Paint = Colour | Gradient;

/** A colour on the way from one to another. */
export function between(start: Colour, end: Colour, way: number): Colour {
  const mix = (channel: 0 | 1 | 2 | 3, absent: number) =>
    (start[channel] ?? absent) * (1 - way) + (end[channel] ?? absent) * way;
  return [mix(0, 0), mix(1, 0), mix(2, 0), mix(3, 1)];
}

/** The pixels of a row from `left` on, weighed by their opacity, which is from 0 to 255. Only valid until the next row. */
export type PaintRow = (y: number) => Float32Array;

export function paintRows(paint: Paint, left: number, width: number): PaintRow {
  const row = new Float32Array(width * 4);
  if ('shape' in paint) return gradientRows(paint, left, row);
  for (let at = 0; at < row.length; at += 4) row.set(weighed(paint), at);
  return () => row;
}

/** Colours on the way from one end of a gradient to the other: more than anybody sees. */
const STEPS = 256;

function gradientRows({ shape, from, to, colours }: Gradient, left: number, row: Float32Array): PaintRow {
  const steps = new Float32Array(STEPS * 4);
  for (let at = 0; at < STEPS; at++) steps.set(weighed(between(...colours, at / (STEPS - 1))), at * 4);
  const [acrossX, acrossY] = [to[0] - from[0], to[1] - from[1]];
  const square = acrossX ** 2 + acrossY ** 2 || 1;
  const isLinear = shape === 'linear';
  return (y) => {
    const dy = y + 0.5 - from[1];
    for (let at = 0; at < row.length; at += 4) {
      const dx = left + at / 4 + 0.5 - from[0];
      const way = isLinear ? (dx * acrossX + dy * acrossY) / square : Math.sqrt((dx * dx + dy * dy) / square);
      const step = way <= 0 ? 0 : way >= 1 ? 4 * (STEPS - 1) : 4 * Math.trunc(way * STEPS);
      row[at] = steps[step] as number;
      row[at + 1] = steps[step + 1] as number;
      row[at + 2] = steps[step + 2] as number;
      row[at + 3] = steps[step + 3] as number;
    }
    return row;
  };
}

function weighed([red, green, blue, opacity = 1]: Colour): number[] {
  return [red * opacity, green * opacity, blue * opacity, 255 * opacity];
}
