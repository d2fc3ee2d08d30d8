import { readFileSync, readlinkSync, statSync } from 'node:fs';

/**
 * One process owns a database file. Its note beside the file, `<database>.owner`, names the process and, while it
 * serves, the address and the token with which other commands can use the database through it. The owner updates the
 * note's modification time every second; that shows others that it is alive, wherever it runs.
 */
export type Owner = {
  pid: number;
  /** Identifies the running kernel and the process namespace of `pid`; null where the system does not say. */
  host: string | null;
  token: string;
  url: string | null;
};

/** `owner` is undefined when the note is incomplete. */
export type OwnerNote = { text: string; changedMs: number; owner: Owner | undefined };

export const noteOf = (database: string) => `${database}.owner`;

/** Padded, so that a new text always overwrites all of the old one. */
export const noteText = (owner: Owner) => JSON.stringify(owner).padEnd(1024);

/** @returns undefined when there is no note */
export function readNote(database: string): OwnerNote | undefined {
  try {
    const { mtimeMs } = statSync(noteOf(database));
    const text = readFileSync(noteOf(database), 'utf8');
    return { text, changedMs: mtimeMs, owner: parseOwner(text) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function parseOwner(text: string): Owner | undefined {
  try {
    const { pid, host, token, url } = JSON.parse(text);
    if (!Number.isInteger(pid) || typeof token !== 'string') return undefined;
    return { pid, host: host ?? null, token, url: url ?? null };
  } catch {
    return undefined;
  }
}

/** The note's content for this process. */
export const thisOwner = (token: string): Owner => ({ pid: process.pid, host: thisHost(), token, url: null });

/** Equal only for processes that see each other's pids: same boot of the same kernel, same process namespace. */
function thisHost(): string | null {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    return null;
  }
}

/** Whether the owner has certainly ended. Known only of processes that would be visible here. */
export function hasEnded({ pid, host }: Owner): boolean {
  if (host === null || host !== thisHost()) return false;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

/** Whether the owner's address can be reached from here. */
export async function answers({ url, token }: Owner): Promise<boolean> {
  if (url === null) return false;
  try {
    const headers = { Authorization: `Bearer ${token}` };
    return (await fetch(`${url}/-/owner`, { headers, signal: AbortSignal.timeout(2_000) })).ok;
  } catch {
    return false;
  }
}

/** Another process that is alive uses the file. */
export class DatabaseInUse extends Error {
  readonly owner: Owner | undefined;
  /** Whether the owner answers at its address. */
  readonly reachable: boolean;

  constructor(database: string, owner: Owner | undefined, reachable: boolean) {
    super(`${database} is in use by ${owner ? `process ${owner.pid}` : 'another process'}${advice(owner, reachable)}`);
    this.owner = owner;
    this.reachable = reachable;
  }
}

function advice(owner: Owner | undefined, reachable: boolean): string {
  if (!owner?.url) return ', which has not finished yet. Try again when it has.';
  if (reachable) return `, which serves it at ${owner.url}.`;
  return `, which serves it at ${owner.url}, an address that does not answer from here. Run this command on the machine or in the container of that process.`;
}
