import { hash, randomUUID } from 'node:crypto';
import { existsSync, linkSync, readFileSync, readlinkSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { AdLibraryError } from './api/errors.ts';
import { parseJson } from './api/json.ts';

/**
 * Locks between processes: a file while it lasts, whose note names the process that holds it. A lock is never taken from
 * a process that lives, however long it is suspended, because it could finish a write at any time; so nothing has to
 * renew a lock. A process of another machine or container cannot be seen from here, and counts as living.
 *
 * The lock of a process that has ended is removed by a process that holds the lock of removals meanwhile, a second file:
 * so nobody removes a lock that another process has just taken. A process that is killed within those microseconds
 * leaves the second file behind, which a person has to delete.
 */
export type Lock = ReturnType<typeof createLock>;

/** Where the holder of a lock serves what the lock is for, and the word that proves who asks. */
export interface HolderEndpoint {
  url: string;
  token: string;
}

interface LockNote {
  id: string;
  process: string;
  host: string;
  address?: HolderEndpoint | undefined;
}

/** How long to wait for a lock, and how often to look at it, in milliseconds. */
const maxWaitMs = 5000;
const pollIntervalMs = 10;

const adviceWithEndpoint =
  'If that address does not answer from here, run this where that process runs; if it is suspended, end it.';
const adviceWithoutEndpoint = 'Try again when it has finished; if it is suspended, continue or end it.';

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

/** Does something while nobody else has the lock. @throws LockHeld after five seconds */
export async function withLock<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  const lock = await acquireLock(path);
  try {
    return await work();
  } finally {
    lock.release();
  }
}

/**
 * Takes a lock for this process.
 * @param signal ends the wait, which otherwise lasts five seconds. Nobody waits for a holder that can be asked instead
 * @throws LockHeld, or Error when the file cannot be made
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
  /** Whether the file is still there; it is not, if a person deleted it. */
  const isHeld = () => readNote(path)?.id === note.id;
  return {
    isHeld,
    /** Tells others how to ask this process instead of waiting for it. */
    announce(address: HolderEndpoint | undefined): void {
      if (!isHeld()) return;
      const part = `${path}.part`;
      writeFileSync(part, JSON.stringify({ ...note, address }), { mode: 0o600 });
      renameSync(part, path);
    },
    release(): void {
      if (isHeld()) rmSync(path, { force: true });
    },
  };
}

/** Removes a lock whose process has ended. Returns the lock to wait for, if there is one. */
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

function readNote(path: string): LockNote | undefined {
  const note = parseJson(readTextOrEmpty(() => readFileSync(path, 'utf8'))) as Partial<LockNote> | undefined;
  return typeof note?.id === 'string' && typeof note.process === 'string' ? (note as LockNote) : undefined;
}

/** False if there is one already. The file has its note from its first moment: nobody could tell whose it is without. */
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

const readTextOrEmpty = (read: () => string): string => {
  try {
    return read().trim();
  } catch {
    return '';
  }
};

/** The same after a restart. Containers may have one host name in common, but not their process namespace. */
const readMachineId = () =>
  hash('sha256', `${hostname()} ${readTextOrEmpty(() => readFileSync('/etc/machine-id', 'utf8'))}`).slice(0, 32);
const readBootId = () => readTextOrEmpty(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'));
const readPidNamespace = () => readTextOrEmpty(() => readlinkSync('/proc/self/ns/pid'));

/**
 * The start of a process in the system's ticks, which tells it from others that had its number; empty where the system
 * does not tell. A process that has ended stays listed, as Z, until its parent asks for its exit code.
 */
function readStartTime(pid: number): string {
  // The second field is the program's name, which may hold anything.
  const [state, ...fields] = readTextOrEmpty(() => readFileSync(`/proc/${pid}/stat`, 'utf8'))
    .replace(/^.*\) /s, '')
    .split(' ');
  return state === 'Z' || state === 'X' ? 'ended' : (fields[18] ?? '');
}

/** A name of this process, by which another one finds out whether it has ended: `pid start namespace boot machine`. */
export const identifyThisProcess = (): string =>
  [process.pid, readStartTime(process.pid), readPidNamespace(), readBootId(), readMachineId()].join(' ');

/**
 * A process whose machine has restarted has ended, a suspended one has not. Without start times, one whose number is in
 * use counts as living.
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
