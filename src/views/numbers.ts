/** Returns a number as people write it in English, such as `1,821`. */
export const formatNumber = (number: number): string => (number < 1000 ? `${number}` : number.toLocaleString('en-US'));

/** Returns a number with its noun, such as `1 ad` or `1,821 ads`. */
export const formatCount = (number: number, noun: string, nouns = `${noun}s`): string =>
  `${formatNumber(number)} ${number === 1 ? noun : nouns}`;

/** Returns the median. For an even number of values, it lies halfway between the two values in the middle. */
export const computeMedian = (values: readonly number[]): number => computePercentile(values, 50);

/**
 * Returns a percentile as SQLite's function `percentile` defines it, with linear interpolation between two values. So a
 * figure in a summary equals the figure of a statement. Returns 0 if there are no values.
 * @param percent from 0 to 100
 */
export function computePercentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((left, right) => left - right);
  const position = (percent / 100) * (sorted.length - 1);
  const [lower = 0, upper = lower] = [sorted[Math.floor(position)], sorted[Math.ceil(position)]];
  return lower + (upper - lower) * (position - Math.floor(position));
}
