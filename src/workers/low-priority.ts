import { setPriority } from 'node:os';

/**
 * The nice value of a worker thread on Linux. When all processors are busy, a thread with this value still gets about a
 * quarter of the time that the main thread gets.
 */
const niceness = 5;

/**
 * Lowers the priority of the calling thread, so that it slows down other threads less. Does nothing on systems other
 * than Linux, because they set priorities only for whole processes.
 */
export function lowerThreadPriority(): void {
  if (process.platform === 'linux') setPriority(0, niceness);
}
