import { setPriority } from 'node:os';

/**
 * The nice value of a worker thread on Linux. When all processors are busy, the thread still gets about a quarter of
 * the main thread's time.
 */
const niceness = 5;

/**
 * Lowers the priority of the calling thread, so that it slows down other threads less. Does nothing outside Linux,
 * because other systems set priorities only for whole processes.
 */
export function lowerThreadPriority(): void {
  if (process.platform === 'linux') setPriority(0, niceness);
}
