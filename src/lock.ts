import { hash, randomUUID } from 'node:crypto';
import { existsSync, linkSync, readFileSync, readlinkSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { AdLibraryError } from './api/errors.ts';
import { parseJson } from './api/json.ts';

/**
 * A lock between processes. The lock is a file that exists as long as the lock is held, and its content names the
 * process that holds it.
 *
 * A lock is never taken from a living process, even if the process is suspended for a long time: the process could
 * finish a write at any time. Therefore no process has to renew its lock. A process on another machine or in another
 * container cannot be observed from here, so it counts as living.
 *
 * If the process of a lock has ended, another process removes the lock. While doing so, that process holds a second
 * lock, the file `….removal`, so that it cannot remove a lock that a third process has just taken. A process that is
 * killed within those microseconds leaves the second file behind, and a person has to delete the file.
 */
export type Lock = ReturnType<typeof createLock>;

/** Where the holder of a lock serves the locked resource, so that other processes can ask it instead of waiting. */
export interface HolderEndpoint {
  url: string;
  /** The secret that a process of the same user sends with its requests. */
  token: string;
}

/** The content of a lock file, as JSON. Other versions of this program read it too. */
interface LockNote {
  id: string;
  /** The identity of the holder, as `identifyThisProcess` writes it. */
  process: string;
  host: string;
  address?: HolderEndpoint | undefined;
}

/** How long to wait for a lock, and the interval between two looks at its file, in milliseconds. */
const maxWaitMs = 5000;
const pollIntervalMs = 10;

const adviceWithEndpoint =
  'If that address does not answer from this machine, run the command where that process runs. If the process is suspended, end it.';
const adviceWithoutEndpoint =
  'Try again when that process has finished. If the process is suspended, continue or end it.';

/** The error of a lock that another process holds. The message names the process, the file and what a person can do. */
export class LockHeldError extends AdLibraryError {
  readonly endpoint: HolderEndpoint | undefined;

  constructor(path: string, note: LockNote | undefined) {
    const [pid] = note?.process.split(' ') ?? [];
    const holder = note ? `process ${pid} of ${note.host}` : 'another program';
    const serves = note?.address ? `, which serves it at ${note.address.url}` : '';
    const problem = `${path} is held by ${holder}${serves}. ${note?.address ? adviceWithEndpoint : adviceWithoutEndpoint} If no such process runs there any more, delete that file.`;
    super({ kind: 'busy', problem, storage: 'lock' });
    this.endpoint = note?.address;
  }
}

/**
 * Runs `work` while this process holds the lock, and releases the lock afterwards.
 * @throws LockHeldError if another process holds the lock for five seconds
 */
export async function withLock<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  const lock = await acquireLock(path);
  try {
    return await work();
  } finally {
    lock.release();
  }
}

/**
 * Acquires a lock for this process. If another process holds the lock, waits until it is released. If the holder has
 * announced an endpoint, fails immediately instead, because the caller can ask the holder.
 * @param signal ends the wait; by default after five seconds
 * @throws LockHeldError if the lock was not released in time; Error if the lock file cannot be written
 */
export async function acquireLock(path: string, signal = AbortSignal.timeout(maxWaitMs)): Promise<Lock> {
  const note: LockNote = { id: randomUUID(), process: identifyThisProcess(), host: hostname() };
  for (;;) {
    if (createLockFile(path, note)) return createLock(path, note);
    const holder = removeAbandonedLock(path);
    if (holder === undefined) continue;
    if (signal.aborted || holder.note?.address) throw new LockHeldError(holder.path, holder.note);
    await wait(pollIntervalMs, undefined, { signal }).catch(() => {});
  }
}

function createLock(path: string, note: LockNote) {
  /** False if a person has deleted the lock file, or if another process has taken the lock since. */
  const isHeld = () => readNote(path)?.id === note.id;
  return {
    isHeld,
    /** Writes an endpoint into the lock file, so that other processes ask this process instead of waiting for the lock. */
    announce(address: HolderEndpoint | undefined): void {
      if (!isHeld()) return;
      const tempFile = `${path}.part`;
      writeFileSync(tempFile, JSON.stringify({ ...note, address }), { mode: 0o600 });
      renameSync(tempFile, path);
    },
    release(): void {
      if (isHeld()) rmSync(path, { force: true });
    },
  };
}

/**
 * Removes the lock if its process has ended. Returns the lock to wait for: this lock if its process lives, or the lock
 * of another process that is removing this one. Returns undefined if the caller can try to take the lock.
 */
function removeAbandonedLock(path: string): { path: string; note: LockNote | undefined } | undefined {
  const note = readNote(path);
  if (!hasProcessEnded(note?.process ?? '')) return existsSync(path) ? { path, note } : undefined;
  const removal = `${path}.removal`;
  if (!createLockFile(removal, { id: randomUUID(), process: identifyThisProcess(), host: hostname() }))
    return { path: removal, note: readNote(removal) };
  if (readNote(path)?.id === note?.id) rmSync(path, { force: true });
  rmSync(removal, { force: true });
  return undefined;
}

/** Returns the content of a lock file; undefined if the file is missing or has no complete content. */
function readNote(path: string): LockNote | undefined {
  const note = parseJson(readTextOrEmpty(() => readFileSync(path, 'utf8'))) as Partial<LockNote> | undefined;
  return typeof note?.id === 'string' && typeof note.process === 'string' ? (note as LockNote) : undefined;
}

/**
 * Creates a lock file and returns true, or returns false if the file already exists. The content is written to another
 * file and then linked to the path, so that the lock file never exists without the name of its holder.
 * @throws Error if the file cannot be written
 */
function createLockFile(path: string, note: LockNote): boolean {
  const complete = `${path}.${note.id}`;
  try {
    writeFileSync(complete, JSON.stringify(note), { flag: 'wx', mode: 0o600 });
    linkSync(complete, path);
    return true;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return false;
    throw new Error(`${path} cannot be written (${message})`, { cause: error });
  } finally {
    if (existsSync(complete)) rmSync(complete);
  }
}

/** Returns the trimmed text; an empty text if reading fails. */
const readTextOrEmpty = (read: () => string): string => {
  try {
    return read().trim();
  } catch {
    return '';
  }
};

/** Returns an id of this machine that stays the same after a restart. */
const readMachineId = () =>
  hash('sha256', `${hostname()} ${readTextOrEmpty(() => readFileSync('/etc/machine-id', 'utf8'))}`).slice(0, 32);
/** Returns an id that changes with each start of the machine; an empty text if the system has none. */
const readBootId = () => readTextOrEmpty(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'));
/** Returns the id of the process namespace. Two containers may share a host name, but not this namespace. */
const readPidNamespace = () => readTextOrEmpty(() => readlinkSync('/proc/self/ns/pid'));

/**
 * Returns when a process started, in clock ticks of the system. The start time distinguishes the process from earlier
 * processes with the same pid. Returns `ended` for a process that has ended, and an empty text if the system does not
 * tell. A process that has ended stays listed in state Z until its parent reads the exit code.
 */
function readStartTime(pid: number): string {
  // The second field is the name of the program in parentheses. The name may contain spaces and parentheses, so the
  // expression removes everything up to the last parenthesis.
  const [state, ...fields] = readTextOrEmpty(() => readFileSync(`/proc/${pid}/stat`, 'utf8'))
    .replace(/^.*\) /s, '')
    .split(' ');
  return state === 'Z' || state === 'X' ? 'ended' : (fields[18] ?? '');
}

/**
 * Returns an identity of this process, from which another process can find out whether this process has ended. Format:
 * `pid startTime namespace bootId machineId`.
 */
export const identifyThisProcess = (): string =>
  [process.pid, readStartTime(process.pid), readPidNamespace(), readBootId(), readMachineId()].join(' ');

/**
 * Returns whether the process with this identity has ended. A suspended process has not ended. All processes from before
 * a restart of the machine have ended. A process of another machine or container counts as living. If the system does
 * not tell start times, a process counts as living while any process uses its pid.
 * @param processIdentity the result of `identifyThisProcess` in that process
 */
export function hasProcessEnded(processIdentity: string): boolean {
  const [pid = '', itsStartTime, itsNamespace, itsBoot, itsMachine] = processIdentity.split(' ');
  if (itsMachine !== readMachineId()) return false;
  if (itsBoot !== readBootId()) return true;
  if (itsNamespace !== readPidNamespace()) return false;
  const currentStartTime = readStartTime(Number(pid));
  if (currentStartTime !== '' && itsStartTime !== '') return currentStartTime !== itsStartTime;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}
