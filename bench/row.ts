/** A row of the table in BENCHMARKS.md. */
interface BenchmarkRow {
  measurement: string;
  /**
   * The measured value, as text with its unit. `baselineText` is the baseline from the same run, also with its unit.
   */
  measuredText: string;
  baselineText: string;
  /** The measured value divided by the baseline. */
  ratio: number;
  /**
   * The limit in words, e.g. `at most 10 ms more`. `isWithinLimit` is true if the measured value is within the limit.
   */
  limitText?: string;
  isWithinLimit?: boolean;
}

/**
 * Prints a row of the table as Markdown. If the measured value exceeds its limit, the exit code of the benchmark is 1.
 */
export function printRow({
  measurement,
  measuredText,
  baselineText,
  ratio,
  limitText,
  isWithinLimit,
}: BenchmarkRow): void {
  const limitResult = limitText === undefined ? '' : `${limitText}: ${isWithinLimit ? 'holds' : 'MISSED'}`;
  process.stdout.write(`| ${[measurement, measuredText, baselineText, ratio.toFixed(2), limitResult].join(' | ')} |\n`);
  if (isWithinLimit === false) process.exitCode = 1;
}

/** Prints a row for a value with a fixed upper limit. */
export function printRowWithMaximum(measurement: string, measuredValue: number, maxValue: number, unit = 'ms'): void {
  const formattedValue = measuredValue < 10 ? measuredValue.toFixed(1) : measuredValue.toFixed(0);
  const [measuredText, baselineText] = [`${formattedValue} ${unit}`, `${maxValue} ${unit} allowed`];
  printRow({
    measurement,
    measuredText,
    baselineText,
    ratio: measuredValue / maxValue,
    limitText: 'at most 1.00',
    isWithinLimit: measuredValue <= maxValue,
  });
}

/**
 * Prints why the benchmark cannot run, e.g. because a required program is not installed, and ends the process without
 * an error.
 */
export function skipBenchmark(reason: string): never {
  process.stdout.write(`| not measured: ${reason} | | | | |\n`);
  process.exit(0);
}

/** Returns a quantile of the numbers. For example, 95% of the numbers are below the quantile for 0.95. */
export function computeQuantile(numbers: readonly number[], quantile: number): number {
  const sortedValues = numbers.toSorted((left, right) => left - right);
  return sortedValues[Math.min(sortedValues.length - 1, Math.floor(sortedValues.length * quantile))] ?? Number.NaN;
}

export const computeMedian = (numbers: readonly number[]): number => computeQuantile(numbers, 0.5);
