import { hash, randomUUID } from 'node:crypto';
import { readFileSync, readlinkSync, rmSync } from 'node:fs';
import { mkdir, open, stat, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { memoryTurns } from '../memory-state.ts';
import { type Turns, tooBusy } from '../turns.ts';

/** How long a lock whose owner is not seen any more is kept for it, and how often an owner renews its own. */
const leaseMs = 10_000;
const renewMs = 3000;
/** How long one waits for the lock of a file, in milliseconds. */
const maxLockMs = 30_000;

interface LockOptions {
  signal: AbortSignal;
  /** How often one looks whether the lock is free, in milliseconds. */
  lookMs: number;
}

/**
 * Takes a lock that several processes share: a file while it lasts. That of a process that has ended is free.
 * @returns what ends it. Rejects if it cannot be made, or if the signal aborts first
 */
async function takeLock(path: string, { signal, lookMs }: LockOptions): Promise<() => void> {
  const owner = ownName();
  await makeFolder(dirname(path));
  let known = '';
  for (let unchangedMs = 0; !(await create(path, owner)); unchangedMs += lookMs) {
    const note = noteAt(path);
    if (note !== known) unchangedMs = 0;
    known = note;
    if (hasEnded(note) || unchangedMs >= leaseMs) removeIf(path, note);
    else await wait(lookMs, undefined, { signal });
  }
  let renewals = 0;
  const renewal = setInterval(() => {
    // The file of a lock that ends meanwhile is not made anew.
    if (noteAt(path).startsWith(owner)) void writeFile(path, `${owner} ${++renewals}`, { flag: 'r+' }).catch(() => {});
  }, renewMs).unref();
  return () => {
    clearInterval(renewal);
    removeIf(path, owner);
  };
}

/** Does something while no other process does so with the same file. */
export async function locked<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  const unlock = await takeLock(`${path}.lock`, { signal: AbortSignal.timeout(maxLockMs), lookMs: 10 });
  return work().finally(unlock);
}

/** False if another one has it. */
async function create(path: string, owner: string): Promise<boolean> {
  const file = await open(path, 'wx', 0o600).catch(unless('EEXIST'));
  if (file === undefined) return false;
  try {
    await file.writeFile(owner);
    return true;
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    await file.close();
  }
}

/** The name of the owner, and how often the lock was renewed. */
function noteAt(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Unless it was renewed or changed hands meanwhile. At once, since the process may end now. */
function removeIf(path: string, note: string): void {
  if (noteAt(path).startsWith(note)) rmSync(path, { force: true });
}

/** A new name for something that this process owns: `pid machine id`. */
export const ownName = () => `${process.pid} ${machine()} ${randomUUID()}`;

/**
 * The same for processes that see each other's numbers: of one boot of a kernel, and one namespace. Containers may have
 * one host name in common, so it is only for systems without namespaces.
 */
function machine(): string {
  try {
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}/${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    return hostname();
  }
}

/** Whether the process of a name, `pid machine …`, is gone; one that is not seen from here is not known to be. */
export function hasEnded(name: string): boolean {
  const [pid, of] = name.split(' ');
  if (!/^\d+$/.test(pid ?? '') || of !== machine()) return false;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

/** Turns over all processes that use a folder. @param files the folder that a person chose */
export function fileTurns(files: string): Turns {
  // Also where nothing can be written; and only one call of this process has to look.
  const own = memoryTurns();
  return {
    take: async (name, signal) => {
      const endOwn = await own.take(name, signal);
      const path = join(files, 'turns', hash('sha256', name).slice(0, 32));
      const end = await takeLock(path, { signal, lookMs: 100 }).catch(() => () => {});
      const endBoth = () => {
        end();
        endOwn();
      };
      if (!signal.aborted) return endBoth;
      endBoth();
      throw tooBusy();
    },
  };
}

/**
 * Makes a folder for this user alone, with the folders above it. One level after the other: `recursive` never ends where
 * a file system refuses folders by saying that there is none above, as `/proc` does.
 */
export async function makeFolder(path: string): Promise<void> {
  const isThere = async () => (await stat(path).catch(() => undefined))?.isDirectory() === true;
  if (await isThere()) return;
  if (dirname(path) !== path) await makeFolder(dirname(path));
  await mkdir(path, { mode: 0o700 }).catch(async (error) => {
    if (!(await isThere())) throw error;
  });
}

/** A handler for errors that are expected. */
export const unless =
  (...codes: readonly string[]) =>
  (error: NodeJS.ErrnoException): undefined => {
    if (!codes.includes(error.code ?? '')) throw error;
  };
