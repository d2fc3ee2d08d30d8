import { hash, randomUUID } from 'node:crypto';
import { existsSync, linkSync, readFileSync, readlinkSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { AdLibraryError } from './api/errors.ts';
import { parseJson } from './api/json.ts';

/**
 * A lock between processes. The lock is a file that exists while a process holds the lock. The file names that process.
 *
 * A lock is never taken from a running process, because the process could still finish a write. This also applies to a
 * process that has been suspended for a long time. Processes therefore do not have to renew their locks. A process on
 * another machine or in another container cannot be checked from here, so it counts as running.
 *
 * If the process that holds a lock has ended, another process removes the lock. During the removal, the process holds a
 * second lock, the file `….removal`. It therefore cannot remove a lock that a third process has just acquired. If the
 * removing process is killed within these microseconds, the second file stays and a person has to delete it.
 */
export type Lock = ReturnType<typeof createLock>;

/**
 * The URL under which the process that holds the lock serves the locked resource, and a token for requests. Other
 * processes can send requests there instead of waiting.
 */
export interface HolderEndpoint {
  url: string;
  /** The secret that other processes of the same user read from the lock file and send with their requests. */
  token: string;
}

/**
 * The content of a lock file, as JSON. Other versions of this program also read it, so the field names must not change.
 */
interface LockFileContent {
  id: string;
  /** The identity of the process that holds the lock, from `identifyThisProcess`. */
  process: string;
  host: string;
  address?: HolderEndpoint | undefined;
}

/** How long to wait for a lock, and the interval between two checks of the lock file, in milliseconds. */
const maxWaitMs = 5000;
const pollIntervalMs = 10;

const adviceWithEndpoint =
  'If that address does not answer from this machine, run the command where that process runs. If the process is suspended, end it.';
const adviceWithoutEndpoint =
  'Try again when that process has finished. If the process is suspended, continue or end it.';

/**
 * The error for a lock that another process holds. The message names the process and the lock file, and says what the
 * user can do.
 */
export class LockHeldError extends AdLibraryError {
  readonly endpoint: HolderEndpoint | undefined;

  constructor(path: string, note: LockFileContent | undefined) {
    const [pid] = note?.process.split(' ') ?? [];
    const holder = note ? `process ${pid} of ${note.host}` : 'another program';
    const endpointText = note?.address ? `, which serves it at ${note.address.url}` : '';
    const problem = `${path} is held by ${holder}${endpointText}. ${note?.address ? adviceWithEndpoint : adviceWithoutEndpoint} If no such process runs there any more, delete that file.`;
    super({ kind: 'busy', problem, storage: 'lock' });
    this.endpoint = note?.address;
  }
}

/**
 * Runs `work` while holding the lock, and releases the lock afterwards.
 * @throws LockHeldError if another process holds the lock for more than five seconds
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
 * Acquires a lock for this process. If another process holds the lock, waits until that process releases it. If that
 * process has announced an endpoint, fails immediately, because the caller can use the endpoint instead.
 * @param signal ends the wait; by default after five seconds
 * @throws LockHeldError if the lock is not released in time
 * @throws Error if the lock file cannot be written
 */
export async function acquireLock(path: string, signal = AbortSignal.timeout(maxWaitMs)): Promise<Lock> {
  const note: LockFileContent = { id: randomUUID(), process: identifyThisProcess(), host: hostname() };
  for (;;) {
    if (createLockFile(path, note)) return createLock(path, note);
    const holder = removeAbandonedLock(path);
    if (holder === undefined) continue;
    if (signal.aborted || holder.note?.address) throw new LockHeldError(holder.path, holder.note);
    await wait(pollIntervalMs, undefined, { signal }).catch(() => {});
  }
}

function createLock(path: string, note: LockFileContent) {
  /**
   * Returns true while this process holds the lock. Returns false if the lock file was deleted, or if another process
   * has acquired the lock since.
   */
  const isHeld = () => readLockFile(path)?.id === note.id;
  return {
    isHeld,
    /**
     * Writes an endpoint into the lock file, so that other processes use this process instead of waiting for the lock.
     */
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
 * Removes a lock whose process has ended. Returns the lock to wait for: the same lock if its process is still running,
 * or the removal lock of another process. Returns undefined if the caller can try to acquire the lock.
 */
function removeAbandonedLock(path: string): { path: string; note: LockFileContent | undefined } | undefined {
  const note = readLockFile(path);
  if (!hasProcessEnded(note?.process ?? '')) return existsSync(path) ? { path, note } : undefined;
  const removalPath = `${path}.removal`;
  if (!createLockFile(removalPath, { id: randomUUID(), process: identifyThisProcess(), host: hostname() }))
    return { path: removalPath, note: readLockFile(removalPath) };
  if (readLockFile(path)?.id === note?.id) rmSync(path, { force: true });
  rmSync(removalPath, { force: true });
  return undefined;
}

/** Reads a lock file. Returns undefined if the file is missing or incomplete. */
function readLockFile(path: string): LockFileContent | undefined {
  const note = parseJson(readTextOrEmpty(() => readFileSync(path, 'utf8'))) as Partial<LockFileContent> | undefined;
  return typeof note?.id === 'string' && typeof note.process === 'string' ? (note as LockFileContent) : undefined;
}

/**
 * Creates a lock file. Returns false if the file already exists. The content is first written to a temporary file and
 * then linked to `path`, so that a lock file is never empty.
 * @throws Error if the file cannot be written
 */
function createLockFile(path: string, note: LockFileContent): boolean {
  const tempFile = `${path}.${note.id}`;
  try {
    writeFileSync(tempFile, JSON.stringify(note), { flag: 'wx', mode: 0o600 });
    linkSync(tempFile, path);
    return true;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return false;
    throw new Error(`${path} cannot be written (${message})`, { cause: error });
  } finally {
    if (existsSync(tempFile)) rmSync(tempFile);
  }
}

/**
 * Calls `read` and returns the trimmed text. Returns an empty string if `read` throws, e.g. because the file does not
 * exist.
 */
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
/** Returns an id that changes each time the machine starts. Returns an empty string if the system has no such id. */
const readBootId = () => readTextOrEmpty(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'));
/** Returns the id of this process's PID namespace. Two containers may share a host name, but not a PID namespace. */
const readPidNamespace = () => readTextOrEmpty(() => readlinkSync('/proc/self/ns/pid'));

/**
 * Returns the start time of a process in clock ticks of the system. It distinguishes the process from earlier processes
 * with the same pid. Returns `ended` if the process has ended, and an empty string if the system does not report start
 * times. An ended process stays listed in state Z until its parent has read the exit code.
 */
function readStartTime(pid: number): string {
  // The second field is the name of the program in parentheses. The name itself may contain spaces and parentheses, so
  // remove everything up to the last parenthesis.
  const [state, ...fields] = readTextOrEmpty(() => readFileSync(`/proc/${pid}/stat`, 'utf8'))
    .replace(/^.*\) /s, '')
    .split(' ');
  return state === 'Z' || state === 'X' ? 'ended' : (fields[18] ?? '');
}

/**
 * Returns the identity of this process, from which another process can find out whether this process has ended. The
 * format is `pid startTime namespace bootId machineId`.
 */
export const identifyThisProcess = (): string =>
  [process.pid, readStartTime(process.pid), readPidNamespace(), readBootId(), readMachineId()].join(' ');

/**
 * Returns true if the process with this identity has ended. All processes from before a restart of the machine have
 * ended. A suspended process, and a process on another machine or in another container, count as running. If the system
 * does not report start times, a process counts as running while any process has its pid.
 * @param processIdentity the result of `identifyThisProcess` in the other process
 */
export function hasProcessEnded(processIdentity: string): boolean {
  const [pid = '', recordedStartTime, recordedNamespace, recordedBootId, recordedMachineId] =
    processIdentity.split(' ');
  if (recordedMachineId !== readMachineId()) return false;
  if (recordedBootId !== readBootId()) return true;
  if (recordedNamespace !== readPidNamespace()) return false;
  const currentStartTime = readStartTime(Number(pid));
  if (currentStartTime !== '' && recordedStartTime !== '') return currentStartTime !== recordedStartTime;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}
