import type { Look } from './looks.ts';

export type Colours = Record<'paper' | 'tint' | 'body' | 'dark' | 'accent', string>;

export const coloursOf = ({ colours }: Look): Colours => {
  const [paper, tint, body, dark, accent] = colours.split(' ').map((hex) => `#${hex}`) as [string, ...string[]];
  return { paper, tint, body, dark, accent } as Colours;
};

const channels = (hex: string) => [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));

/** A colour on the way from one to another. */
export const mix = (from: string, to: string, way: number) =>
  `#${channels(from)
    .map((value, at) => Math.round(value * (1 - way) + (channels(to)[at] ?? 0) * way))
    .map((value) => value.toString(16).padStart(2, '0'))
    .join('')}`;

const [red, green, blue] = [0.3, 0.59, 0.11];
export const isLight = (hex: string) => {
  const [r = 0, g = 0, b = 0] = channels(hex);
  return r * red + g * green + b * blue > 165;
};

let gradients = 0;
/** A gradient from above to below, or from the middle outwards, and a reference to it. */
function gradient(kind: 'linear' | 'radial', ...stops: string[]) {
  const id = `g${++gradients}`;
  const direction = kind === 'linear' ? ' x1="0" y1="0" x2="0.25" y2="1"' : '';
  const each = stops.map((stop, at) => {
    const [colour, opacity = '1'] = stop.split('/');
    return `<stop offset="${at / (stops.length - 1)}" stop-color="${colour}" stop-opacity="${opacity}"/>`;
  });
  return { def: `<${kind}Gradient id="${id}"${direction}>${each.join('')}</${kind}Gradient>`, url: `url(#${id})` };
}

export type Stage = {
  width: number;
  height: number;
  colours: Colours;
  /** Where the product stands, and how large. */
  x: number;
  ground: number;
  scale: number;
  dark: boolean;
};

const filled = (paint: { def: string; url: string }, shape: string) =>
  `${paint.def}${shape.replace('/>', ` fill="${paint.url}"/>`)}`;
const rect = (x: number, y: number, width: number, height: number, more = '') =>
  `<rect x="${x}" y="${y}" width="${width}" height="${height}" ${more}/>`;

/** What is behind a product, as SVG. */
export const backdrops: Record<Look['backdrop'], (stage: Stage) => string> = {
  studio: (stage) => {
    const { width, height, x, ground, scale } = stage;
    const { wall, floor, glow } = tones(stage);
    const top = ground - 26 * scale;
    return (
      filled(gradient('linear', ...wall), rect(0, 0, width, height)) +
      filled(
        gradient('radial', `${glow}/.75`, `${glow}/0`),
        `<circle cx="${x}" cy="${ground - 190 * scale}" r="${330 * scale}"/>`,
      ) +
      filled(gradient('linear', ...floor), rect(0, top, width, height - top))
    );
  },
  podium: (stage) => {
    const { width, height, x, ground, scale, colours, dark } = stage;
    const { wall, floor, glow } = tones(stage);
    const wide = 250 * scale;
    const arch = 215 * scale;
    const tops = [mix(glow, '#ffffff', dark ? 0.1 : 0.4), mix(colours.tint, dark ? colours.dark : colours.body, 0.25)];
    return (
      filled(gradient('linear', ...wall), rect(0, 0, width, height)) +
      filled(
        gradient('linear', `${glow}/.9`, `${glow}/.25`),
        `<path d="M${x - arch} ${ground} V${ground - 300 * scale} A${arch} ${arch} 0 0 1 ${x + arch} ${ground - 300 * scale} V${ground} Z"/>`,
      ) +
      filled(gradient('linear', ...floor), rect(0, ground + 22 * scale, width, height)) +
      leaf(x - arch * 1.12, ground + 18 * scale, 1.25 * scale, -14, mix(colours.body, colours.dark, 0.35)) +
      leaf(x + arch * 1.1, ground + 14 * scale, 1.05 * scale, 18, mix(colours.body, colours.dark, 0.2)) +
      filled(
        gradient('linear', tops[1] ?? '', mix(tops[1] ?? '', colours.dark, 0.3)),
        `<path d="M${x - wide} ${ground + 2} V${ground + 74 * scale} A${wide} ${34 * scale} 0 0 0 ${x + wide} ${ground + 74 * scale} V${ground + 2} Z"/>`,
      ) +
      `<ellipse cx="${x}" cy="${ground + 2}" rx="${wide}" ry="${34 * scale}" fill="${tops[0]}"/>`
    );
  },
  table: (stage) => {
    const { width, height, x, ground, scale, colours, dark } = stage;
    const { wall, glow } = tones(stage);
    const wood = [mix(colours.body, '#c08a52', 0.6), mix(colours.dark, '#6b4423', 0.45)];
    const top = ground - 34 * scale;
    const pane = (left: number) =>
      `<path d="M${left} ${-20} h${width * 0.15} l${-width * 0.17} ${top + 20} h${-width * 0.15} Z" fill="${glow}" opacity=".5"/>`;
    return (
      filled(gradient('linear', ...wall), rect(0, 0, width, height)) +
      (dark
        ? filled(
            gradient('radial', `${glow}/.8`, `${glow}/0`),
            `<circle cx="${x}" cy="${ground - 170 * scale}" r="${360 * scale}"/>`,
          )
        : pane(width * 0.56) + pane(width * 0.76)) +
      filled(gradient('linear', ...wood), rect(0, top, width, height - top)) +
      rect(0, top, width, 5, `fill="${mix(wood[0] ?? '', '#ffffff', 0.35)}" opacity=".7"`) +
      `<path d="M0 ${top + 46} H${width} M0 ${top + 112} H${width}" stroke="${wood[1]}" stroke-width="2" opacity=".35"/>`
    );
  },
  rays: (stage) => {
    const { width, height, x, ground, scale } = stage;
    const { wall, glow } = tones(stage);
    const y = ground - 200 * scale;
    const far = width + height;
    const wedges = Array.from({ length: 12 }, (_, at) => {
      const [from, to] = [at * 30, at * 30 + 15].map((angle) => (angle * Math.PI) / 180) as [number, number];
      return `M${x} ${y} L${x + far * Math.cos(from)} ${y + far * Math.sin(from)} L${x + far * Math.cos(to)} ${y + far * Math.sin(to)} Z`;
    });
    return (
      filled(gradient('linear', ...wall), rect(0, 0, width, height)) +
      `<path d="${wedges.join(' ')}" fill="${glow}" opacity=".22"/>` +
      filled(gradient('radial', `${glow}/.9`, `${glow}/0`), `<circle cx="${x}" cy="${y}" r="${360 * scale}"/>`)
    );
  },
  blobs: (stage) => {
    const { width, height, x, ground, scale, colours } = stage;
    const { wall, glow } = tones(stage);
    const size = 330 * scale;
    const blob = (cx: number, cy: number, r: number) =>
      `<path d="M${cx - r} ${cy} C${cx - r} ${cy - r * 0.9} ${cx - r * 0.2} ${cy - r * 1.1} ${cx + r * 0.3} ${cy - r * 0.8} C${cx + r} ${cy - r * 0.5} ${cx + r * 1.2} ${cy + r * 0.3} ${cx + r * 0.6} ${cy + r * 0.75} C${cx} ${cy + r * 1.15} ${cx - r} ${cy + r * 0.8} ${cx - r} ${cy} Z"/>`;
    return (
      filled(gradient('linear', ...wall), rect(0, 0, width, height)) +
      filled(gradient('linear', `${glow}`, mix(glow, colours.body, 0.35)), blob(x, ground - 170 * scale, size)) +
      filled(
        gradient('linear', colours.accent, mix(colours.accent, colours.body, 0.4)),
        `<circle cx="${x - size * 0.94}" cy="${ground - 400 * scale}" r="${34 * scale}"/>`,
      ) +
      `<circle cx="${x + size * 0.98}" cy="${ground - 40 * scale}" r="${22 * scale}" fill="${colours.body}"/>` +
      `<circle cx="${x + size * 0.86}" cy="${ground - 420 * scale}" r="${46 * scale}" fill="none" stroke="${colours.body}" stroke-width="${10 * scale}" opacity=".6"/>`
    );
  },
  hills: (stage) => {
    const { width, height, x, ground, scale, colours, dark } = stage;
    const { wall, glow } = tones(stage);
    const far = mix(colours.tint, colours.dark, dark ? 0.55 : 0.12);
    const near = mix(colours.body, colours.dark, dark ? 0.55 : 0.1);
    const w = width;
    return (
      filled(gradient('linear', ...wall), rect(0, 0, width, height)) +
      `<circle cx="${x + 120 * scale}" cy="${ground - 300 * scale}" r="${96 * scale}" fill="${glow}"/>` +
      filled(
        gradient('linear', far, mix(far, colours.body, 0.3)),
        `<path d="M0 ${ground - 110} Q${w * 0.18} ${ground - 250} ${w * 0.36} ${ground - 130} Q${w * 0.6} ${ground - 290} ${w * 0.78} ${ground - 140} Q${w * 0.9} ${ground - 210} ${w} ${ground - 160} V${height} H0 Z"/>`,
      ) +
      filled(
        gradient('linear', near, mix(near, colours.dark, 0.45)),
        `<path d="M0 ${ground - 40} Q${w * 0.3} ${ground - 104} ${w * 0.6} ${ground - 36} Q${w * 0.8} ${ground} ${w} ${ground - 46} V${height} H0 Z"/>`,
      )
    );
  },
  night: (stage) => {
    const { width, height, x, ground, scale, colours } = stage;
    const sky = [mix(colours.dark, '#000018', 0.35), mix(colours.dark, colours.body, 0.75)];
    const stars = Array.from({ length: 18 }, (_, at) => {
      const [across, down] = [((at * 197) % 101) / 101, ((at * 61) % 53) / 53];
      return `<circle cx="${(across * width).toFixed(0)}" cy="${(down * (ground - 120)).toFixed(0)}" r="${1.5 + (at % 3)}"/>`;
    });
    return (
      filled(gradient('linear', ...sky), rect(0, 0, width, height)) +
      `<g fill="#fff" opacity=".65">${stars.join('')}</g>` +
      filled(
        gradient('radial', `${mix(colours.body, '#ffffff', 0.45)}/.55`, `${colours.body}/0`),
        `<circle cx="${x}" cy="${ground - 180 * scale}" r="${330 * scale}"/>`,
      ) +
      filled(
        gradient('linear', mix(colours.body, colours.dark, 0.25), mix(colours.dark, '#000018', 0.2)),
        `<path d="M0 ${ground - 30} Q${width * 0.3} ${ground - 90} ${width * 0.55} ${ground - 30} Q${width * 0.8} ${ground + 10} ${width} ${ground - 50} V${height} H0 Z"/>`,
      )
    );
  },
  screens: (stage) => {
    const { width, height, x, ground, scale, colours } = stage;
    const { wall, glow } = tones(stage);
    const tile = (dx: number, dy: number, wide: number, high: number, inner: string) =>
      `<g transform="translate(${x + dx * scale} ${ground + dy * scale}) scale(${scale})">${rect(0, 0, wide, high, `rx="22" fill="#fff" opacity=".92"`)}${inner}</g>`;
    return (
      filled(gradient('linear', ...wall), rect(0, 0, width, height)) +
      filled(
        gradient('radial', `${glow}/.9`, `${glow}/0`),
        `<circle cx="${x}" cy="${ground - 180 * scale}" r="${380 * scale}"/>`,
      ) +
      // Beside a text there is no room to the left.
      tile(
        x === width / 2 ? -330 : -20,
        x === width / 2 ? -400 : -490,
        210,
        116,
        `<circle cx="52" cy="58" r="28" fill="${colours.tint}"/><path d="M40 58 l9 10 18 -20" fill="none" stroke="${colours.body}" stroke-width="7" stroke-linecap="round"/>${rect(94, 38, 92, 13, `rx="6" fill="${colours.dark}"`)}${rect(94, 64, 62, 10, `rx="5" fill="${colours.tint}"`)}`,
      ) +
      tile(
        130,
        -250,
        200,
        140,
        `<path d="M24 112 V84 M58 112 V62 M92 112 V76 M126 112 V46 M160 112 V28" stroke="${colours.body}" stroke-width="18" stroke-linecap="round"/>`,
      )
    );
  },
};

/** The colours of a place by day, or on a dark ground. */
function tones({ colours, dark }: Stage) {
  const { paper, tint, body } = colours;
  return dark
    ? {
        wall: [mix(body, colours.dark, 0.7), colours.dark],
        floor: [mix(colours.dark, body, 0.3), mix(colours.dark, '#000000', 0.35)],
        glow: mix(mix(body, colours.tint, 0.35), '#ffffff', 0.1),
      }
    : { wall: [paper, tint], floor: [mix(tint, body, 0.22), mix(tint, body, 0.5)], glow: mix(paper, '#ffffff', 0.6) };
}

/** Leaves beside a podium. */
function leaf(x: number, y: number, scale: number, turn: number, colour: string) {
  const leaves = [-34, -2, 28].map(
    (angle, at) => `<path transform="rotate(${angle})" d="M0 0 Q-56 -110 0 ${-300 + at * 40} Q56 -110 0 0 Z"/>`,
  );
  return `<g transform="translate(${x} ${y}) rotate(${turn}) scale(${scale})" fill="${colour}" opacity=".8">${leaves.join('')}</g>`;
}

/** A product with its shadow. */
export function productOn(product: string, { x, ground, scale, colours, dark }: Stage): string {
  const tone = (name: string, colour: string) =>
    `<linearGradient id="t-${name}" gradientUnits="userSpaceOnUse" x1="300" y1="220" x2="780" y2="620"><stop offset="0" stop-color="${mix(colour, '#ffffff', 0.2)}"/><stop offset="1" stop-color="${mix(colour, '#000000', 0.14)}"/></linearGradient>`;
  const tonesOf = { ...colours, light: '#fffcf6' };
  const shadow = gradient('radial', '#000000/.42', '#000000/.16', '#000000/0');
  return `${Object.entries(tonesOf)
    .map(([name, colour]) => tone(name, colour))
    .join('')}
    ${filled(shadow, `<ellipse cx="${x + 8 * scale}" cy="${ground}" rx="${300 * scale}" ry="${34 * scale}" opacity="${dark ? 1 : 0.8}"/>`)}
    <g class="product" transform="translate(${x - 540 * scale} ${ground - 620 * scale}) scale(${scale})">${product}</g>`;
}
