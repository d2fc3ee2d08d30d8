/** A line of the table of all benchmarks. */
export interface Row {
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

/** Rows go into the same stream as all that a benchmark says, after this word. */
export const rowMark = 'ROW ';

/** Before the reason why nothing can be measured here. */
export const skipMark = 'SKIPPED ';

/** Ends a benchmark that lacks what it needs. */
export function skipBenchmark(reason: string): never {
  process.stdout.write(`${skipMark}${reason}\n`);
  process.exit(0);
}

/** Hands a row to who puts the table together; where nobody does, nothing is printed. */
export function addRow(row: Row): void {
  if (process.env.BENCH_TABLE) process.stdout.write(`${rowMark}${JSON.stringify(row)}\n`);
}
