import { writeSync } from 'node:fs';
import { growsTooFast } from './growth.ts';
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
