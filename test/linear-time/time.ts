import { writeSync } from 'node:fs';
import type { HostileText } from './hostile-texts.ts';

/** One line of standard output for each thing that is wrong. */
export const report = (problem: string): void => void writeSync(1, `${problem}\n`);

/** Reports what is too slow, and on standard error what is timed next: that is the culprit when it never ends. */
export function time(name: string, run: (text: string) => unknown, texts: readonly HostileText[]): void {
  writeSync(2, `${name}\n`);
  const slow = texts.find((text) => growsTooFast(refusable(run), text));
  if (slow) report(`${name} takes too long: ${slow.name}`);
}

/** To refuse a text is what many functions are for. */
const refusable = (run: (text: string) => unknown) => (text: string) => {
  try {
    run(text);
  } catch {}
};

/** Enough to see the square of it, and to be done with thousands of texts soon. */
const GLANCE = 500;
/** Enough to leave no doubt. */
const LONG = [4000, 8000];
/** Four times the length takes four times as long, or 16 times where the time grows with the square. */
const GROWTH = 12;

/** Whether the time a run takes grows clearly faster than its text. A pause for other work of this process is not repeated. */
const growsTooFast = (run: (text: string) => unknown, { ofLength }: HostileText): boolean =>
  grows({ run, ofLength, length: GLANCE, floor: 0.3, times: 1 }) &&
  LONG.every((length) => grows({ run, ofLength, length, floor: 5, times: 3 }));

interface Measured {
  run(text: string): unknown;
  ofLength(length: number): string;
  length: number;
  /** Milliseconds. */
  floor: number;
  times: number;
}

function grows({ run, ofLength, length, floor, times }: Measured): boolean {
  const least = (text: string) => Math.min(...Array.from({ length: times }, () => timeOf(() => run(text))));
  return least(ofLength(4 * length)) > GROWTH * least(ofLength(length)) + floor;
}

/** Of the processor, in milliseconds: what other processes take of it does not count. */
function timeOf(run: () => unknown): number {
  const start = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}
