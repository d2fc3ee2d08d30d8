import { hash, randomUUID } from 'node:crypto';
import { lstatSync, readFileSync, rmSync } from 'node:fs';
import { mkdir, open, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { stateOf, thisProcess } from '../../process.ts';
import { memoryTurns } from '../drivers/memory.ts';
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
    const version = versionAt(path);
    if (version !== known) unchangedMs = 0;
    known = version;
    if (hasEnded(noteAt(path)) || unchangedMs >= leaseMs) await removeLost(path, version, unchangedMs);
    await wait(lookMs, undefined, { signal });
  }
  let renewals = 0;
  const renewal = setInterval(() => {
    // The file of a lock that ends meanwhile is not made anew.
    if (noteAt(path).startsWith(owner)) void writeFile(path, `${owner} ${++renewals}`, { flag: 'r+' }).catch(() => {});
  }, renewMs).unref();
  return () => {
    clearInterval(renewal);
    // At once, since the process may end now.
    if (noteAt(path).startsWith(owner)) rmSync(path, { force: true });
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

/** The longest note that is read. */
const maxNoteBytes = 1000;

/** The name of the owner, and how often the lock was renewed. Where it is no such file, reading might not end. */
function noteAt(path: string): string {
  try {
    const file = lstatSync(path);
    return file.isFile() && file.size <= maxNoteBytes ? readFileSync(path, 'utf8') : '';
  } catch {
    return '';
  }
}

/** Differs whenever a lock was made or renewed, also where nothing can be read. */
function versionAt(path: string): string {
  const file = lstatSync(path, { throwIfNoEntry: false });
  return file === undefined ? '' : `${file.ino} ${file.ctimeMs} ${noteAt(path)}`;
}

/** The lock of an owner that is gone. One process at a time: another one would remove what was taken since it looked. */
async function removeLost(path: string, version: string, unchangedMs: number): Promise<void> {
  const removal = `${path}.removal`;
  // It takes no time, unless it was killed.
  if (unchangedMs >= 2 * leaseMs) rmSync(removal, { force: true });
  if (!(await create(removal, ''))) return;
  try {
    if (versionAt(path) === version) rmSync(path, { force: true });
  } finally {
    rmSync(removal, { force: true });
  }
}

/** A new name for something that this process owns: `pid host id started`. */
export function ownName(): string {
  const { pid, host, started } = thisProcess();
  return [pid, host, randomUUID(), started].join(' ');
}

/** Whether the process of a name is gone; a process that is not seen from here is not known to be. */
export function hasEnded(name: string): boolean {
  const [pid = '', host = '', , started] = name.split(' ');
  return /^\d+$/.test(pid) && stateOf({ pid: Number(pid), host, started: started || null }) === 'ended';
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
