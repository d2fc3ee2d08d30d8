import { hash, randomUUID } from 'node:crypto';
import { existsSync, linkSync, readFileSync, readlinkSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { AdLibraryError } from './api/errors.ts';
import { parseJson } from './api/json.ts';

/**
 * A lock between processes: a file that exists while a process holds the lock, and that names this process.
 *
 * A lock is never taken from a running process, even if the process has been suspended for long, because the process
 * could still finish a write. Processes therefore need not renew their locks. A process on another machine or in
 * another container cannot be checked from here, so it counts as running.
 *
 * If the process that holds a lock has ended, another process removes the lock. During the removal, the removing process
 * holds a second lock, the file `….removal`. Without the second lock, this process could remove a lock that a third
 * process has just acquired. If the removing process is killed within these microseconds, the second file stays, and a
 * person has to delete it.
 */
export type Lock = ReturnType<typeof createLock>;

/**
 * The URL at which the lock holder serves the locked resource, and a token for requests. Other processes can send
 * requests to this URL instead of waiting for the lock.
 */
export interface LockHolderEndpoint {
  url: string;
  /** A secret for requests to the URL. Other processes of the same user read it from the lock file. */
  token: string;
}

/**
 * The content of a lock file as JSON. Other versions of this program read the file, so the field names must not change.
 */
interface LockFileContent {
  id: string;
  /** The process that holds the lock, in the format of `identifyThisProcess`. */
  process: string;
  host: string;
  address?: LockHolderEndpoint | undefined;
}

/** The maximum time to wait for a lock, and the interval between two checks of the lock file, in milliseconds. */
const maxWaitMs = 5000;
const pollIntervalMs = 10;

const adviceWithEndpoint =
  'If that address does not answer from this machine, run the command where that process runs. If the process is suspended, end it.';
const adviceWithoutEndpoint =
  'Try again when that process has finished. If the process is suspended, continue or end it.';

/**
 * Thrown if another process holds a lock. The message names that process and the lock file, and tells the user what to
 * do.
 */
export class LockHeldError extends AdLibraryError {
  readonly endpoint: LockHolderEndpoint | undefined;

  constructor(lockPath: string, content: LockFileContent | undefined) {
    const [pid] = content?.process.split(' ') ?? [];
    const holderText = content ? `process ${pid} of ${content.host}` : 'another program';
    const endpointText = content?.address ? `, which serves it at ${content.address.url}` : '';
    const problem = `${lockPath} is held by ${holderText}${endpointText}. ${content?.address ? adviceWithEndpoint : adviceWithoutEndpoint} If no such process runs there any more, delete that file.`;
    super({ kind: 'busy', problem, storage: 'lock' });
    this.endpoint = content?.address;
  }
}

/**
 * Acquires a lock, runs `work`, and releases the lock.
 * @throws LockHeldError if another process holds the lock for more than five seconds
 */
export async function withLock<Result>(lockPath: string, work: () => Promise<Result>): Promise<Result> {
  const lock = await acquireLock(lockPath);
  try {
    return await work();
  } finally {
    lock.release();
  }
}

/**
 * Acquires a lock for this process. If another process holds the lock, waits until it is released. Fails immediately if
 * the other process has published an endpoint, because the caller can use the endpoint instead.
 * @param signal aborts the wait; by default after five seconds
 * @throws LockHeldError if the lock is not released in time
 * @throws Error if the lock file cannot be written
 */
export async function acquireLock(lockPath: string, signal = AbortSignal.timeout(maxWaitMs)): Promise<Lock> {
  const lockFileContent: LockFileContent = { id: randomUUID(), process: identifyThisProcess(), host: hostname() };
  for (;;) {
    if (createLockFile(lockPath, lockFileContent)) return createLock(lockPath, lockFileContent);
    const blockingLock = removeAbandonedLock(lockPath);
    if (blockingLock === undefined) continue;
    if (signal.aborted || blockingLock.content?.address)
      throw new LockHeldError(blockingLock.path, blockingLock.content);
    await delay(pollIntervalMs, undefined, { signal }).catch(() => {});
  }
}

function createLock(lockPath: string, content: LockFileContent) {
  /**
   * Returns true if this process still holds the lock. Returns false if the lock file was deleted or belongs to another
   * process.
   */
  const isHeld = () => readLockFile(lockPath)?.id === content.id;
  return {
    isHeld,
    /**
     * Publishes an endpoint in the lock file, so that other processes can send requests to this process instead of
     * waiting.
     */
    setEndpoint(endpoint: LockHolderEndpoint | undefined): void {
      if (!isHeld()) return;
      const temporaryPath = `${lockPath}.part`;
      writeFileSync(temporaryPath, JSON.stringify({ ...content, address: endpoint }), { mode: 0o600 });
      renameSync(temporaryPath, lockPath);
    },
    release(): void {
      if (isHeld()) rmSync(lockPath, { force: true });
    },
  };
}

/**
 * Removes a lock if its process has ended. Returns undefined if the caller can now try to acquire the lock. Otherwise
 * returns the lock to wait for: the lock at `lockPath` if its process is running, or the removal lock of another
 * process.
 */
function removeAbandonedLock(lockPath: string): { path: string; content: LockFileContent | undefined } | undefined {
  const content = readLockFile(lockPath);
  if (!hasProcessEnded(content?.process ?? '')) return existsSync(lockPath) ? { path: lockPath, content } : undefined;
  const removalPath = `${lockPath}.removal`;
  if (!createLockFile(removalPath, { id: randomUUID(), process: identifyThisProcess(), host: hostname() }))
    return { path: removalPath, content: readLockFile(removalPath) };
  if (readLockFile(lockPath)?.id === content?.id) rmSync(lockPath, { force: true });
  rmSync(removalPath, { force: true });
  return undefined;
}

/** Reads and parses a lock file. Returns undefined if the file is missing or invalid. */
function readLockFile(lockPath: string): LockFileContent | undefined {
  const content = parseJson(readTrimmedTextOrEmpty(() => readFileSync(lockPath, 'utf8'))) as
    | Partial<LockFileContent>
    | undefined;
  return typeof content?.id === 'string' && typeof content.process === 'string'
    ? (content as LockFileContent)
    : undefined;
}

/**
 * Creates a lock file. Returns false if the lock file already exists. The content is first written to a temporary file,
 * which is then linked to `lockPath`, so that other processes never see an incomplete lock file.
 * @throws Error if the file cannot be written
 */
function createLockFile(lockPath: string, content: LockFileContent): boolean {
  const temporaryPath = `${lockPath}.${content.id}`;
  try {
    writeFileSync(temporaryPath, JSON.stringify(content), { flag: 'wx', mode: 0o600 });
    linkSync(temporaryPath, lockPath);
    return true;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return false;
    throw new Error(`${lockPath} cannot be written (${message})`, { cause: error });
  } finally {
    if (existsSync(temporaryPath)) rmSync(temporaryPath);
  }
}

/**
 * Returns the text from `readText` without surrounding whitespace, or an empty string if `readText` throws, e.g. for a
 * missing file.
 */
const readTrimmedTextOrEmpty = (readText: () => string): string => {
  try {
    return readText().trim();
  } catch {
    return '';
  }
};

/** Returns an id of this machine that stays the same after a restart. */
const readMachineId = () =>
  hash('sha256', `${hostname()} ${readTrimmedTextOrEmpty(() => readFileSync('/etc/machine-id', 'utf8'))}`).slice(0, 32);
/**
 * Returns an id that changes each time the machine starts, or an empty string if the system provides no such id.
 */
const readBootId = () => readTrimmedTextOrEmpty(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'));
/**
 * Returns the id of this process's PID namespace. Two containers with the same host name can be told apart by their
 * namespaces.
 */
const readPidNamespace = () => readTrimmedTextOrEmpty(() => readlinkSync('/proc/self/ns/pid'));

/**
 * Returns the start time of a process in clock ticks, which distinguishes the process from earlier processes with the
 * same pid. Returns an empty string if the system reports no start times. Returns `ended` for a process that has ended
 * but that Linux still lists, in the state Z or X, because its parent has not read the exit code yet.
 */
function readProcessStartTime(pid: number): string {
  // The second field is the program name in parentheses, which may contain spaces and parentheses. Therefore remove
  // everything up to the last parenthesis.
  const [state, ...statFields] = readTrimmedTextOrEmpty(() => readFileSync(`/proc/${pid}/stat`, 'utf8'))
    .replace(/^.*\) /s, '')
    .split(' ');
  return state === 'Z' || state === 'X' ? 'ended' : (statFields[18] ?? '');
}

/**
 * Returns a text that identifies this process, so that another process can check whether this process has ended. The
 * format is `pid startTime namespace bootId machineId`.
 */
export const identifyThisProcess = (): string =>
  [process.pid, readProcessStartTime(process.pid), readPidNamespace(), readBootId(), readMachineId()].join(' ');

/**
 * Returns true if the process that `identifyThisProcess` described has ended, e.g. because the machine was restarted.
 *
 * A suspended process counts as running. A process on another machine or in another container also counts as running,
 * because it cannot be checked from here. If the system reports no start times, any process with the same pid counts as
 * this process.
 */
export function hasProcessEnded(processIdentity: string): boolean {
  const [pid = '', recordedStartTime, recordedNamespace, recordedBootId, recordedMachineId] =
    processIdentity.split(' ');
  if (recordedMachineId !== readMachineId()) return false;
  if (recordedBootId !== readBootId()) return true;
  if (recordedNamespace !== readPidNamespace()) return false;
  const currentStartTime = readProcessStartTime(Number(pid));
  if (currentStartTime !== '' && recordedStartTime !== '') return currentStartTime !== recordedStartTime;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}
