/** A line of the table in BENCHMARKS.md. */
interface Row {
  what: string;
  /** What was measured, and what it is held against in the same run, with their units. */
  ours: string;
  beside: string;
  /** The first of these by the second. */
  ratio: number;
  /** What it has to stay within, in words, and whether it does. */
  limit?: string;
  holds?: boolean;
}

/** Prints a row as Markdown; one that misses its limit fails the benchmark. */
export function addRow({ what, ours, beside, ratio, limit, holds }: Row): void {
  const kept = limit === undefined ? '' : `${limit}: ${holds ? 'holds' : 'MISSED'}`;
  process.stdout.write(`| ${[what, ours, beside, ratio.toFixed(2), kept].join(' | ')} |\n`);
  if (holds === false) process.exitCode = 1;
}

/** The row of what must not be more than a fixed number of milliseconds or megabytes. */
export function addBoundedRow(what: string, measured: number, most: number, unit = 'ms'): void {
  const shown = measured < 10 ? measured.toFixed(1) : measured.toFixed(0);
  const [ours, beside] = [`${shown} ${unit}`, `${most} ${unit} allowed`];
  addRow({ what, ours, beside, ratio: measured / most, limit: 'at most 1.00', holds: measured <= most });
}

/** Ends a benchmark that lacks what it needs. */
export function skipBenchmark(reason: string): never {
  process.stdout.write(`| not measured: ${reason} | | | | |\n`);
  process.exit(0);
}

/** The value below which a part of them lies. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((left, right) => left - right);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}

export const median = (values: readonly number[]): number => quantile(values, 0.5);
