import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** Tells a process from all others, and from those that had its number before. */
export interface ProcessIdentity {
  pid: number;
  /**
   * The running kernel and the process namespace: processes with the same host see each other's numbers. Containers may
   * have one host name in common, so the name counts only on systems without namespaces.
   */
  host: string;
  /** When the process started, in the system's ticks; null where the system does not tell. */
  started: string | null;
}

export const thisProcess = (): ProcessIdentity => ({
  pid: process.pid,
  host: thisHost(),
  started: startOf(process.pid),
});

/** Whether the process runs, also if it is suspended; `unknown` for a process that cannot be seen from here. */
export function stateOf({ pid, host, started }: ProcessIdentity): 'running' | 'ended' | 'unknown' {
  if (host !== thisHost()) return 'unknown';
  const seen = startOf(pid);
  if (seen !== null && started !== null) return seen === started ? 'running' : 'ended';
  try {
    process.kill(pid, 0);
    return 'unknown';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH' ? 'ended' : 'unknown';
  }
}

function thisHost(): string {
  try {
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}/${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    return hostname();
  }
}

/** Null where nothing can be read. */
function startOf(pid: number): string | null {
  try {
    // The second field is the program's name, which may hold anything.
    const [state, ...fields] = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    // A process that has ended stays listed, as Z, until its parent asks for its exit code.
    return state === 'Z' ? 'ended' : (fields[18] ?? null);
  } catch {
    return null;
  }
}
