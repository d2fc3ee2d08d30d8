import { readFileSync } from 'node:fs';

/**
 * Returns the resident memory of a process in megabytes, or NaN if `/proc` does not report it, e.g. on other systems
 * than Linux.
 */
export function readResidentMegabytes(pid: number | undefined): number {
  try {
    return Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024);
  } catch {
    return Number.NaN;
  }
}

/** Formats a number of bytes in megabytes, e.g. `12.5`. */
export const formatMegabytes = (bytes: number): string => (bytes / 1024 / 1024).toFixed(1);
