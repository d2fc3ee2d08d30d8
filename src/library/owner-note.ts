import { readFileSync, readlinkSync, statSync } from 'node:fs';

/**
 * One process owns a database file. Its note beside the file, `<database>.owner`, says which one that is, and, while it
 * serves, at which address and with which token the other commands can ask it to act for them. The owner changes the
 * note's time of change at least every second: that is how others see that it lives, wherever it runs.
 */
export type Owner = {
  pid: number;
  /** The system and the process namespace that `pid` belongs to; null where the system does not tell. */
  host: string | null;
  token: string;
  url: string | null;
};

/** A note as it was found; `owner` is undefined where it was cut short, or is just being written. */
export type OwnerNote = { text: string; changedMs: number; owner: Owner | undefined };

export const noteOf = (database: string) => `${database}.owner`;

/** Padded, so that each writing takes the place of the last one whole. */
export const noteText = (owner: Owner) => JSON.stringify(owner).padEnd(1024);

/** @returns undefined without a note */
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

/** This process, as others find it in a note. */
export const thisOwner = (token: string): Owner => ({ pid: process.pid, host: thisHost(), token, url: null });

/** The same only for processes that see each other's numbers: one kernel since its start, one namespace of processes. */
function thisHost(): string | null {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    return null;
  }
}

/** Whether the owner has certainly ended. Only of a process that would be visible here can that be known. */
export function hasEnded({ pid, host }: Owner): boolean {
  if (host === null || host !== thisHost()) return false;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

/** Whether the owner can be asked from here to act for this process. */
export async function answers({ url, token }: Owner): Promise<boolean> {
  if (url === null) return false;
  try {
    const headers = { Authorization: `Bearer ${token}` };
    return (await fetch(`${url}/-/owner`, { headers, signal: AbortSignal.timeout(2_000) })).ok;
  } catch {
    return false;
  }
}

/** The file is in the hands of a process that lives. */
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
