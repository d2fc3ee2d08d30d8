import { setPriority } from 'node:os';

/**
 * Linux nice value of a worker thread. Under full load, a thread with this value still gets about a quarter of the time
 * that the main thread gets.
 */
const niceness = 5;

/**
 * Lowers the priority of the calling thread. Does nothing except on Linux: other systems set priorities for whole
 * processes.
 */
export function lowerThreadPriority(): void {
  if (process.platform === 'linux') setPriority(0, niceness);
}
