import { setPriority } from 'node:os';

/** So that the thread that answers callers comes first, and workers still get a quarter beside it. */
const niceness = 5;

/** Lowers the priority of the calling thread. Elsewhere than on Linux, a priority belongs to the whole process. */
export function lowerThreadPriority(): void {
  if (process.platform === 'linux') setPriority(0, niceness);
}
