import { readFileSync } from 'node:fs';

/** Resident megabytes of a process; NaN where the system does not tell. */
export function residentMegabytes(pid: number | undefined): number {
  try {
    return Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024);
  } catch {
    return Number.NaN;
  }
}

export const megabytes = (bytes: number): string => (bytes / 1024 / 1024).toFixed(1);
