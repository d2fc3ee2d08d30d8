/** Formats a number with commas as thousands separators, e.g. `1,821`. */
export const formatNumber = (number: number): string => (number < 1000 ? `${number}` : formatRoundedNumber(number));

/**
 * Formats a number with commas as thousands separators and at most `maxDecimals` decimals, e.g. `1,250.5`. Calls
 * `toLocaleString` only for numbers with an exponent or more decimals, because its first call takes a tenth of the time
 * of a session's first tool call. The result is always the same as with `toLocaleString`.
 */
export function formatRoundedNumber(number: number, maxDecimals = 3): string {
  const [integerDigits = '', decimals = ''] = String(Math.abs(number)).split('.');
  if (!Number.isFinite(number) || integerDigits.includes('e') || decimals.length > maxDecimals)
    return number.toLocaleString('en-US', { maximumFractionDigits: maxDecimals });
  const groups: string[] = [];
  for (let end = integerDigits.length; end > 0; end -= 3)
    groups.unshift(integerDigits.slice(Math.max(0, end - 3), end));
  const sign = number < 0 || Object.is(number, -0) ? '-' : '';
  return `${sign}${groups.join(',')}${decimals === '' ? '' : `.${decimals}`}`;
}

/**
 * Formats a number of credits with at most six decimals, e.g. `0.0004`. The service may charge that small a part of a
 * credit.
 */
export const formatCreditAmount = (credits: number): string => formatRoundedNumber(credits, 6);

/** Rounds credits to six decimal places, because sums of fractional credits contain floating-point errors. */
export const roundCredits = (credits: number) => Math.round(credits * 1e6) / 1e6;

/** Formats a number together with its noun, e.g. `1 ad` or `1,821 ads`. */
export const formatCount = (number: number, noun: string, pluralNoun = `${noun}s`): string =>
  `${formatNumber(number)} ${number === 1 ? noun : pluralNoun}`;

/** Computes the median of numbers. If the number of values is even, the median is the mean of the two middle values. */
export const computeMedian = (values: readonly number[]): number => computePercentile(values, 50);

/**
 * Computes a percentile with linear interpolation, like the `percentile` function of SQLite. The numbers in a summary
 * therefore match the numbers of an SQL query. Returns 0 if there are no values.
 * @param percentage a number from 0 to 100
 */
export function computePercentile(values: readonly number[], percentage: number): number {
  const sortedValues = values.toSorted((left, right) => left - right);
  const position = (percentage / 100) * (sortedValues.length - 1);
  const [lower = 0, upper = lower] = [sortedValues[Math.floor(position)], sortedValues[Math.ceil(position)]];
  return lower + (upper - lower) * (position - Math.floor(position));
}

/** Returns the sum of numbers. */
export const sumNumbers = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0);
