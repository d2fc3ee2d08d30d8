import { setPriority } from 'node:os';

/**
 * The nice value of a worker thread on Linux. When all processors are busy, the thread still gets about a quarter of
 * the processor time that the main thread gets.
 */
const workerNiceValue = 5;

/**
 * Lowers the priority of the current thread, so that it slows down other threads less. Does nothing on systems other
 * than Linux, because they set priorities only for whole processes.
 */
export function lowerThreadPriority(): void {
  if (process.platform === 'linux') setPriority(0, workerNiceValue);
}
