import { setPriority } from 'node:os';

/** With this value, the thread that answers callers comes first, and workers still get a quarter of the time. */
const niceness = 5;

/** Lowers the priority of the calling thread. Does nothing on other systems than Linux, where priorities belong to processes. */
export function lowerThreadPriority(): void {
  if (process.platform === 'linux') setPriority(0, niceness);
}
