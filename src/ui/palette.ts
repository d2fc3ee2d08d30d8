/** The colours of all that people look at, on light and on dark ground. */
const colours = {
  paper: ['#ffffff', '#1a1917'],
  panel: ['#f7f5f1', '#24221f'],
  ink: ['#1d1b18', '#f4f1eb'],
  soft: ['#645e56', '#b3aca1'],
  line: ['#e5e0d8', '#3a3733'],
  edge: ['#8a8278', '#8f887e'],
  accent: ['#b3431c', '#f29468'],
  'on-accent': ['#ffffff', '#24140c'],
  'accent-soft': ['#fbeee7', '#3a251b'],
  run: ['#1f7a54', '#63c79b'],
  rest: ['#cfc8bd', '#57514a'],
  wrong: ['#b3261e', '#ff9c8f'],
} as const;

const series = [
  ['#c8532a', '#ee8a5c'],
  ['#2f7f7a', '#62bdb5'],
  ['#b58a1f', '#dfb84d'],
  ['#5b5ea6', '#9da0e6'],
  ['#4c8a3f', '#86c578'],
  ['#a8456f', '#e08bb0'],
  ['#7a6a58', '#bba995'],
  ['#3d7fb5', '#7bb8e8'],
] as const;

export type ColourName = keyof typeof colours;

/**
 * The palette as CSS variables: `--ink`, and `--c0` to `--c7` for series.
 * @param hostNames variables of a host whose colours go before ours
 */
export function paletteStyles(hostNames: Partial<Record<ColourName, string>> = {}): string {
  const named = Object.entries(colours).map(([name, [light, dark]]) => {
    const colour = `light-dark(${light}, ${dark})`;
    const hostName = hostNames[name as ColourName];
    return `--${name}: ${hostName === undefined ? colour : `var(${hostName}, ${colour})`}`;
  });
  const numbered = series.map(([light, dark], number) => `--c${number}: light-dark(${light}, ${dark})`);
  return `:root { color-scheme: light dark; ${[...named, ...numbered].join('; ')} }\n`;
}

/** A colour as pictures draw it, on light ground; a number is a series. */
export function lightColour(colour: ColourName | number): [red: number, green: number, blue: number] {
  const [light] = typeof colour === 'number' ? (series[colour % series.length] ?? series[0]) : colours[colour];
  return [1, 3, 5].map((at) => Number.parseInt(light.slice(at, at + 2), 16)) as [number, number, number];
}
