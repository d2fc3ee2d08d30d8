import {
  type BigIntStats,
  closeSync,
  fstatSync,
  futimesSync,
  openSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { open, realpath, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { ApiError } from '../service/request.ts';

/**
 * One process owns a database file, because the engine has no locks that hold between processes. Its note beside the
 * file, `<database>.owner`, names the process and, while it serves, the address and the token with which other commands
 * can use the database through it. The owner renews the note every second, which shows that it is alive, wherever it
 * runs. A note that nobody renews is taken over, except from a process that this machine can see and that is only
 * suspended: it could finish a write at any time.
 */
export interface Owner {
  pid: number;
  /** When the process started, in the system's ticks, because process numbers are used again. Null where unknown. */
  started: string | null;
  /** The running kernel and the process namespace of `pid`; null where the system does not tell. */
  host: string | null;
  token: string;
  url: string | null;
}

export interface DatabaseLock {
  /** Publishes the address where the owner serves; null: it has stopped serving, but still has the file open. */
  announce(url: string | null): void;
  /** @throws DatabaseLost when the file has another owner, or is gone */
  check(): void;
  release(): void;
}

/** Milliseconds. */
export interface LockTiming {
  renew: number;
  /** Without a renewal for so long, another process may take the file. */
  expire: number;
  poll: number;
  /** How long to wait for a process that uses the file without serving it. */
  patience: number;
}

export interface LockOptions {
  token: string;
  timing?: LockTiming | undefined;
  /** Called once when the file is lost. */
  onLost?: ((error: DatabaseLost) => unknown) | undefined;
  /** Called if the file is not free within a second. */
  onWait?: ((database: string) => void) | undefined;
}

const defaultTiming: LockTiming = { renew: 1_000, expire: 15_000, poll: 50, patience: 30_000 };
const noticeableWait = 1_000;

/** This process may not use the file any more, and writes nothing more. */
export class DatabaseLost extends ApiError {
  /** Whether another process has the file, and its log. */
  readonly hasNewOwner: boolean;

  constructor(database: string, hasNewOwner: boolean) {
    const [code, problem] = hasNewOwner
      ? ['database_taken_over', `Another process has taken over ${database}, because this one was not seen any more.`]
      : [
          'database_replaced',
          `${database} was deleted or replaced while this process used it: what is written to the open file can no longer be found. Stop the process before you move or restore its database.`,
        ];
    super(503, code, `${problem} This process writes nothing more.`);
    this.hasNewOwner = hasNewOwner;
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
  return `, which serves it at ${owner.url}, an address that does not answer from here. Run this command on the machine or in the container of that process; if it is suspended, end it.`;
}

/**
 * Takes a database file for this process, or waits for it. The clocks of different machines are never compared: a note
 * counts as abandoned after enough polls without a change.
 * @throws DatabaseInUse when the owner serves the file, or does not finish in time
 */
export async function lockDatabase(database: string, options: LockOptions): Promise<DatabaseLock> {
  const { token, timing = defaultTiming, onWait } = options;
  let last: Note | undefined;
  let unchangedMs = 0;
  for (let waitedMs = 0, hasTakenOver = false; ; waitedMs += timing.poll) {
    const file = createNote(database, token);
    if (file !== undefined) {
      // Of several processes that take over at once, the last one wins: each looks again after a longer moment than
      // lies between reading the old note and removing it.
      if (hasTakenOver) await pause(4 * timing.poll);
      if (isNote(database, file)) return hold(database, file, options);
      closeSync(file);
      hasTakenOver = false;
      continue;
    }
    const note = readNote(database);
    const isUnchanged = note !== undefined && note.text === last?.text && note.changedMs === last.changedMs;
    unchangedMs = isUnchanged ? unchangedMs + timing.poll : 0;
    const state = note?.owner && stateOf(note.owner);
    if (note && (state === 'ended' || (unchangedMs >= timing.expire && state !== 'running'))) {
      hasTakenOver = true;
      rmSync(noteOf(database), { force: true });
      continue;
    }
    // To wait for a process that serves would be in vain, whether it answers here or only renews its note.
    if (note?.owner?.url && !isUnchanged) {
      if (await answers(note.owner)) throw new DatabaseInUse(database, note.owner, true);
      if (note.text === last?.text) throw new DatabaseInUse(database, note.owner, false);
    }
    if (waitedMs >= timing.patience) throw new DatabaseInUse(database, note?.owner, false);
    if (waitedMs === noticeableWait) onWait?.(database);
    last = note;
    await pause(timing.poll);
  }
}

function hold(database: string, file: number, { token, timing = defaultTiming, onLost }: LockOptions): DatabaseLock {
  // A killed process leaves the engine's own lock behind, a folder beside the database.
  rmSync(`${database}.lock`, { recursive: true, force: true });
  const watched = identityAt(database);
  let lost: DatabaseLost | undefined;
  let renewedAt = performance.now();
  const renew = () => {
    renewedAt = performance.now();
    const seconds = (performance.timeOrigin + renewedAt) / 1000;
    futimesSync(file, seconds, seconds);
  };
  const check = () => {
    if (lost) throw lost;
    const hasNewOwner = !isNote(database, file);
    if (hasNewOwner || identityAt(database) !== watched) {
      clearInterval(timer);
      lost = new DatabaseLost(database, hasNewOwner);
      onLost?.(lost);
      throw lost;
    }
    // Long work delays the timer below, but not the renewal.
    if (performance.now() - renewedAt >= timing.renew) renew();
  };
  const timer = setInterval(() => {
    try {
      check();
      renew();
    } catch {
      // A loss was reported. Where the note could not be renewed, the next turn tries again.
    }
  }, timing.renew).unref();
  return {
    check,
    announce(url) {
      writeSync(file, noteText({ ...thisOwner(token), url }), 0);
      renew();
    },
    release() {
      clearInterval(timer);
      if (isNote(database, file)) unlinkSync(noteOf(database));
      closeSync(file);
    },
  };
}

/**
 * The real path of a database file, with all links resolved. Creates the file if there is none.
 * @throws Error when the file cannot be written, or has hard links (their other names cannot be found)
 */
export async function locateDatabase(path: string): Promise<string> {
  if (path === ':memory:') return path;
  try {
    await (await open(path, 'a', 0o600)).close();
  } catch (error) {
    throw new Error(`The database ${path} cannot be written: ${reasonOf(error as NodeJS.ErrnoException, path)}.`);
  }
  const database = await realpath(path);
  const { nlink } = await stat(database);
  if (nlink > 1) {
    throw new Error(
      `${database} has ${nlink} names (hard links), so another process could open it under another name. Make a copy and use that.`,
    );
  }
  return database;
}

function reasonOf({ code, message }: NodeJS.ErrnoException, path: string): string {
  switch (code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return `there is no such folder as ${dirname(resolve(path))}`;
    case 'EISDIR':
      return 'it is a folder';
    case 'EACCES':
    case 'EPERM':
      return 'this user may not write it';
    case 'EROFS':
      return 'its file system is read-only';
    default:
      return message;
  }
}

/** `owner` is undefined where the note is incomplete. */
type Note = { text: string; changedMs: number; owner: Owner | undefined };

const noteOf = (database: string) => `${database}.owner`;

/** Padded, so that a new text always overwrites all of the old one. */
const noteText = (owner: Owner) => JSON.stringify(owner).padEnd(1024);

/** @returns the open note, or undefined where there is one already */
function createNote(database: string, token: string): number | undefined {
  let file: number | undefined;
  try {
    file = openSync(noteOf(database), 'wx', 0o600);
    writeSync(file, noteText(thisOwner(token)));
    return file;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return undefined;
    if (file !== undefined) unlinkSync(noteOf(database));
    throw new Error(`Nothing can be written in ${dirname(database)}, where the database is kept: ${message}.`);
  }
}

/** @returns undefined where there is no note */
function readNote(database: string): Note | undefined {
  try {
    const { mtimeMs } = statSync(noteOf(database));
    const text = readFileSync(noteOf(database), 'utf8');
    return { text, changedMs: mtimeMs, owner: ownerIn(text) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function ownerIn(text: string): Owner | undefined {
  try {
    const { pid, started = null, host = null, token, url = null } = JSON.parse(text);
    return Number.isInteger(pid) && typeof token === 'string' ? { pid, started, host, token, url } : undefined;
  } catch {
    return undefined;
  }
}

export const thisOwner = (token: string): Owner => ({
  ...{ pid: process.pid, started: startOf(process.pid), host: thisHost() },
  ...{ token, url: null },
});

/** Equal only for processes that see each other's numbers: same boot of the same kernel, same process namespace. */
function thisHost(): string | null {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    return null;
  }
}

/** When a process started; null where there is none, or the system does not tell. */
function startOf(pid: number): string | null {
  try {
    // The second field is the program's name, which may hold anything.
    const [, fields = ''] = /\)([^)]*)$/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? [];
    const [state, ...others] = fields.trim().split(' ');
    // A process that has ended stays listed until its parent asks for its exit code.
    return state === 'Z' ? null : (others[18] ?? null);
  } catch {
    return null;
  }
}

/** Whether the owner runs; `unknown` for processes that cannot be seen from here. */
function stateOf({ pid, started, host }: Owner): 'running' | 'ended' | 'unknown' {
  if (host === null || started === null || host !== thisHost()) return 'unknown';
  return startOf(pid) === started ? 'running' : 'ended';
}

/** Whether the owner's address can be reached from here. */
async function answers({ url, token }: Owner): Promise<boolean> {
  if (url === null) return false;
  try {
    const headers = { Authorization: `Bearer ${token}` };
    return (await fetch(`${url}/-/owner`, { headers, signal: AbortSignal.timeout(2_000) })).ok;
  } catch {
    return false;
  }
}

/** Whether an open file is still the note of the database. */
const isNote = (database: string, file: number): boolean =>
  identityAt(noteOf(database)) === identity(fstatSync(file, { bigint: true }));

/** Which file has this name. Inode numbers are not used again while a file is open. */
function identityAt(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && identity(found);
}

const identity = ({ ino, dev }: BigIntStats) => `${dev} ${ino}`;
