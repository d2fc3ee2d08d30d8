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
export type HeldLock = ReturnType<typeof lockOf>;

/** Where the holder of a lock serves what the lock is for, and the word that proves who asks. */
export interface Address {
  url: string;
  token: string;
}

interface Note {
  id: string;
  process: string;
  host: string;
  address?: Address | undefined;
}

/** How long to wait for a lock, and how often to look at it, in milliseconds. */
const maxWaitMs = 5000;
const lookMs = 10;

const elsewhere =
  'If that address does not answer from here, run this where that process runs; if it is suspended, end it.';
const unfinished = 'Try again when it has finished; if it is suspended, continue or end it.';

export class LockHeld extends AdLibraryError {
  readonly address: Address | undefined;

  constructor(path: string, note: Note | undefined) {
    const [pid] = note?.process.split(' ') ?? [];
    const holder = note ? `process ${pid} of ${note.host}` : 'another program';
    const serves = note?.address ? `, which serves it at ${note.address.url}` : '';
    const problem = `${path} is held by ${holder}${serves}. ${note?.address ? elsewhere : unfinished} If no such process runs there any more, delete that file.`;
    super({ kind: 'busy', problem, storage: 'lock' });
    this.address = note?.address;
  }
}

/** Does something while nobody else has the lock. @throws LockHeld after five seconds */
export async function withLock<Result>(path: string, work: () => Promise<Result>): Promise<Result> {
  const lock = await holdLock(path);
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
export async function holdLock(path: string, signal = AbortSignal.timeout(maxWaitMs)): Promise<HeldLock> {
  const note: Note = { id: randomUUID(), process: thisProcess(), host: hostname() };
  for (;;) {
    if (create(path, note)) return lockOf(path, note);
    const holder = removeEnded(path);
    if (holder === undefined) continue;
    if (signal.aborted || holder.note?.address) throw new LockHeld(holder.path, holder.note);
    await wait(lookMs, undefined, { signal }).catch(() => {});
  }
}

function lockOf(path: string, note: Note) {
  /** Whether the file is still there; it is not, if a person deleted it. */
  const isHeld = () => readNote(path)?.id === note.id;
  return {
    isHeld,
    /** Tells others how to ask this process instead of waiting for it. */
    announce(address: Address | undefined): void {
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
function removeEnded(path: string): { path: string; note: Note | undefined } | undefined {
  const note = readNote(path);
  if (!hasEnded(note?.process ?? '')) return existsSync(path) ? { path, note } : undefined;
  const removal = `${path}.removal`;
  if (!create(removal, { id: randomUUID(), process: thisProcess(), host: hostname() }))
    return { path: removal, note: readNote(removal) };
  if (readNote(path)?.id === note?.id) rmSync(path, { force: true });
  rmSync(removal, { force: true });
  return undefined;
}

function readNote(path: string): Note | undefined {
  const note = parseJson(textOf(() => readFileSync(path, 'utf8'))) as Partial<Note> | undefined;
  return typeof note?.id === 'string' && typeof note.process === 'string' ? (note as Note) : undefined;
}

/** False if there is one already. The file has its note from its first moment: nobody could tell whose it is without. */
function create(path: string, note: Note): boolean {
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

const textOf = (read: () => string): string => {
  try {
    return read().trim();
  } catch {
    return '';
  }
};

/** The same after a restart. Containers may have one host name in common, but not their process namespace. */
const machine = () =>
  hash('sha256', `${hostname()} ${textOf(() => readFileSync('/etc/machine-id', 'utf8'))}`).slice(0, 32);
const boot = () => textOf(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8'));
const namespace = () => textOf(() => readlinkSync('/proc/self/ns/pid'));

/**
 * The start of a process in the system's ticks, which tells it from others that had its number; empty where the system
 * does not tell. A process that has ended stays listed, as Z, until its parent asks for its exit code.
 */
function startOf(pid: number): string {
  // The second field is the program's name, which may hold anything.
  const [state, ...fields] = textOf(() => readFileSync(`/proc/${pid}/stat`, 'utf8'))
    .replace(/^.*\) /s, '')
    .split(' ');
  return state === 'Z' || state === 'X' ? 'ended' : (fields[18] ?? '');
}

/** A name of this process, by which another one finds out whether it has ended: `pid start namespace boot machine`. */
export const thisProcess = (): string => [process.pid, startOf(process.pid), namespace(), boot(), machine()].join(' ');

/**
 * A process whose machine has restarted has ended, a suspended one has not. Without start times, one whose number is in
 * use counts as living.
 */
export function hasEnded(name: string): boolean {
  const [pid = '', started, itsNamespace, itsBoot, itsMachine] = name.split(' ');
  if (itsMachine !== machine()) return false;
  if (itsBoot !== boot()) return true;
  if (itsNamespace !== namespace()) return false;
  const startNow = startOf(Number(pid));
  if (startNow !== '' && started !== '') return startNow !== started;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}
