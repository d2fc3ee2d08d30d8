import { writeSync } from 'node:fs';
import type { HostileText } from './hostile-texts.ts';

/** One line of standard output for each thing that is wrong. */
export const report = (problem: string): void => void writeSync(1, `${problem}\n`);

/** What a text is given to. */
export type Run = (text: string) => unknown;

/** Reports what is too slow, and on standard error what is timed next: that is the culprit when it never ends. */
export async function time(name: string, run: Run, texts: readonly HostileText[]): Promise<void> {
  writeSync(2, `${name}\n`);
  for (const text of await someOf(texts, run))
    if (await growsTooFast(run, text)) return report(`${name} takes too long: ${text.name}`);
}

/** All of them, unless a run takes so long that they would take more than some time, in milliseconds. */
async function someOf(texts: readonly HostileText[], run: Run, most = 100): Promise<readonly HostileText[]> {
  const all: number[] = [];
  for (const text of texts.slice(0, 5)) all.push(await timeOf(run, text.ofLength(glance.length)));
  const each = Math.ceil(((all.sort()[2] ?? 0) * texts.length) / most);
  return texts.filter((_, at) => at % Math.max(1, each) === 0);
}

/** What takes less for so long a text is no burden, whatever it grows with: most runs end here. */
const glance = { length: 4000, ms: 0.8 };
/** Enough to leave no doubt. */
const longer = [4000, 8000];

/** Whether the time a run takes grows clearly faster than its text. A pause for other work of this process is not repeated. */
async function growsTooFast(run: Run, { ofLength }: HostileText): Promise<boolean> {
  const timeFor = async (length: number, times: number) => {
    const all: number[] = [];
    for (let time = 0; time < times; time++) all.push(await timeOf(run, ofLength(length)));
    return Math.min(...all);
  };
  // Four times the length takes four times as long, or 16 times where the time grows with the square.
  const first = await timeFor(glance.length, 1);
  if (first < glance.ms || first < 7 * (await timeFor(glance.length / 4, 1))) return false;
  for (const length of longer) {
    if ((await timeFor(4 * length, 3)) < 10 * (await timeFor(length, 3)) + 2) return false;
  }
  return true;
}

/** Of the processor, in milliseconds: what other processes take of it does not count. */
async function timeOf(run: Run, text: string): Promise<number> {
  const start = process.cpuUsage();
  try {
    await run(text);
  } catch {
    // To refuse a text is what many functions are for.
  }
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}
