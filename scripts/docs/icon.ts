/** The icon, as SVG for pages and as PNG for hosts: cards on a board, one of them found. */
import { pngOf } from '../png.ts';

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
  radius: number;
  colour: string;
}

export const size = 512;
const [ground, paper, picture, line, found] = ['#25406b', '#f4f6fa', '#9db4d6', '#c9d4e6', '#f2b134'];

const card = (x: number, y: number, colour: string = picture): Box[] => [
  { x, y, width: 168, height: 176, radius: 20, colour: paper },
  { x: x + 18, y: y + 18, width: 132, height: 80, radius: 10, colour },
  { x: x + 18, y: y + 114, width: 132, height: 14, radius: 7, colour: line },
  { x: x + 18, y: y + 140, width: 84, height: 14, radius: 7, colour: line },
];

const boxes: Box[] = [
  { x: 0, y: 0, width: size, height: size, radius: 104, colour: ground },
  ...card(74, 68),
  ...card(270, 68, found),
  ...card(74, 268),
  ...card(270, 268),
];

export function iconSvg(): string {
  const shapes = boxes.map(
    ({ x, y, width, height, radius, colour }) =>
      `  <rect x="${x}" y="${y}" width="${width}" height="${height}" rx="${radius}" fill="${colour}"/>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size} ${size}">\n  <title>Ad Library</title>\n${shapes.join('\n')}\n</svg>\n`;
}

/** The pixels as PNG stores them: rows of RGBA, each after a byte that names its filter. */
export function iconRows(): Buffer {
  const rows = Buffer.alloc(size * (1 + 4 * size));
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) {
      const at = y * (1 + 4 * size) + 1 + 4 * x;
      for (const box of boxes) paint(rows, at, { box, share: covered(box, x + 0.5, y + 0.5) });
    }
  }
  return rows;
}

/** How much of the pixel around a point a box covers, from its distance to the edge. */
function covered({ x, y, width, height, radius }: Box, px: number, py: number): number {
  const dx = Math.abs(px - x - width / 2) - width / 2 + radius;
  const dy = Math.abs(py - y - height / 2) - height / 2 + radius;
  const outside = Math.hypot(Math.max(dx, 0), Math.max(dy, 0)) + Math.min(Math.max(dx, dy), 0) - radius;
  return Math.min(1, Math.max(0, 0.5 - outside));
}

function paint(rows: Buffer, at: number, { box, share }: { box: Box; share: number }): void {
  if (share === 0) return;
  const below = (rows[at + 3] ?? 0) / 255;
  const alpha = share + below * (1 - share);
  for (const channel of [0, 1, 2]) {
    const colour = Number.parseInt(box.colour.slice(1 + 2 * channel, 3 + 2 * channel), 16);
    const mixed = (colour * share + (rows[at + channel] ?? 0) * below * (1 - share)) / alpha;
    rows[at + channel] = Math.round(mixed);
  }
  rows[at + 3] = Math.round(255 * alpha);
}

export const iconPng = (): Buffer => pngOf({ width: size, height: size, pixel: 'rgba' }, iconRows());
