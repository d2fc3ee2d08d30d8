/** A row of the table in BENCHMARKS.md. */
interface Row {
  what: string;
  /** The measured value and the baseline from the same run, with their units. */
  ours: string;
  beside: string;
  /** The measured value divided by the baseline. */
  ratio: number;
  /** The limit in words, and whether the measured value is within the limit. */
  limit?: string;
  holds?: boolean;
}

/** Prints a row as Markdown. If the measured value exceeds its limit, the benchmark fails. */
export function addRow({ what, ours, beside, ratio, limit, holds }: Row): void {
  const outcome = limit === undefined ? '' : `${limit}: ${holds ? 'holds' : 'MISSED'}`;
  process.stdout.write(`| ${[what, ours, beside, ratio.toFixed(2), outcome].join(' | ')} |\n`);
  if (holds === false) process.exitCode = 1;
}

/** Prints a row for a value with a fixed upper limit. */
export function addBoundedRow(what: string, measured: number, maxValue: number, unit = 'ms'): void {
  const formattedValue = measured < 10 ? measured.toFixed(1) : measured.toFixed(0);
  const [ours, beside] = [`${formattedValue} ${unit}`, `${maxValue} ${unit} allowed`];
  addRow({ what, ours, beside, ratio: measured / maxValue, limit: 'at most 1.00', holds: measured <= maxValue });
}

/** Ends a benchmark whose required programs are not installed. */
export function skipBenchmark(reason: string): never {
  process.stdout.write(`| not measured: ${reason} | | | | |\n`);
  process.exit(0);
}

/** Returns a quantile. For example, 95% of the values are below the quantile for 0.95. */
export function computeQuantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((left, right) => left - right);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}

export const computeMedian = (values: readonly number[]): number => computeQuantile(values, 0.5);
