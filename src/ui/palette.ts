/**
 * The colors of pages, reports, charts and the ad board. Each pair contains the color for light mode and the color for
 * dark mode.
 */
const paletteColors = {
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

/** The colors of chart series. Each pair contains the color for light mode and the color for dark mode. */
const seriesColors = [
  ['#c8532a', '#ee8a5c'],
  ['#2f7f7a', '#62bdb5'],
  ['#b58a1f', '#dfb84d'],
  ['#5b5ea6', '#9da0e6'],
  ['#4c8a3f', '#86c578'],
  ['#a8456f', '#e08bb0'],
  ['#7a6a58', '#bba995'],
  ['#3d7fb5', '#7bb8e8'],
] as const;

/** The name of a color in the palette, e.g. `ink`. */
export type ColorName = keyof typeof paletteColors;

/**
 * Returns CSS that defines the palette as variables: one variable for each color name, e.g. `--ink`, and `--c0` to
 * `--c7` for the series of a chart.
 * @param hostVariables names of CSS variables that an MCP host may define; the color of a defined variable replaces our
 * color
 */
export function createPaletteStyles(hostVariables: Partial<Record<ColorName, string>> = {}): string {
  const namedVariables = Object.entries(paletteColors).map(([name, [light, dark]]) => {
    const color = `light-dark(${light}, ${dark})`;
    const hostVariable = hostVariables[name as ColorName];
    return `--${name}: ${hostVariable === undefined ? color : `var(${hostVariable}, ${color})`}`;
  });
  const seriesVariables = seriesColors.map(
    ([light, dark], seriesIndex) => `--c${seriesIndex}: light-dark(${light}, ${dark})`,
  );
  return `:root { color-scheme: light dark; ${[...namedVariables, ...seriesVariables].join('; ')} }\n`;
}

/**
 * Returns the light-mode variant of a color as red, green and blue values from 0 to 255. Pictures always use the light
 * mode.
 * @param color the name of a color, or the index of a chart series
 */
export function getLightColor(color: ColorName | number): [red: number, green: number, blue: number] {
  const [light] =
    typeof color === 'number' ? (seriesColors[color % seriesColors.length] ?? seriesColors[0]) : paletteColors[color];
  return [1, 3, 5].map((offset) => Number.parseInt(light.slice(offset, offset + 2), 16)) as [number, number, number];
}
