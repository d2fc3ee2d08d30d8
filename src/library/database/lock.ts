import { randomBytes } from 'node:crypto';
import {
  closeSync,
  fstatSync,
  futimesSync,
  openSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
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
  /** The real path of the file, with all links resolved. */
  database: string;
  token: string;
  /** Publishes the address where the owner serves; null: it has stopped serving, but still has the file open. */
  announce(url: string | null): void;
  /** @throws DatabaseLost when the file has another owner, or is gone */
  check(): void;
  release(): void;
}

export interface LockOptions {
  timing?: LockTiming | undefined;
  /** Called once when the file is lost. */
  onLost?: ((error: DatabaseLost) => unknown) | undefined;
  /** Called if the file is not free within a second. */
  onWait?: ((database: string) => void) | undefined;
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

  constructor(database: string, owner: Owner | undefined) {
    const rest = owner?.url
      ? `, which serves it at ${owner.url}. If that address does not answer from here, run this command on the machine or in the container of that process; if it is suspended, end it.`
      : ', which has not finished yet. Try again when it has.';
    super(`${database} is in use by ${owner ? `process ${owner.pid}` : 'another process'}${rest}`);
    this.owner = owner;
  }
}

/**
 * Takes a database file for this process, or waits for it; makes the file if there is none. The clocks of different
 * machines are never compared: a note counts as abandoned after enough polls without a change.
 * @throws DatabaseInUse when the owner serves the file, or does not finish in time
 * @throws Error when the file cannot be written, or has hard links (their other names cannot be found)
 */
export async function lockDatabase(path: string, options: LockOptions = {}): Promise<DatabaseLock> {
  const { timing = defaultTiming, onWait } = options;
  const token = randomBytes(24).toString('hex');
  if (path === ':memory:') return { database: path, token, announce() {}, check() {}, release() {} };
  const database = locate(path);
  let last: string | undefined;
  let unchangedMs = 0;
  for (let waitedMs = 0, hasTakenOver = false; ; waitedMs += timing.poll) {
    const file = createNote(database, token);
    if (file !== undefined) {
      // Of several processes that take over at once, the last one wins: each looks again after a longer moment than
      // lies between reading the old note and removing it.
      if (hasTakenOver) await pause(4 * timing.poll);
      if (isNote(database, file)) return hold({ database, token, file }, options);
      closeSync(file);
      hasTakenOver = false;
      continue;
    }
    const { owner, seen } = readNote(database);
    unchangedMs = seen === last ? unchangedMs + timing.poll : 0;
    const state = owner && stateOf(owner);
    if (state === 'ended' || (unchangedMs >= timing.expire && state !== 'running')) {
      hasTakenOver = true;
      rmSync(noteOf(database), { force: true });
      continue;
    }
    // To wait for a process that serves would be in vain.
    const isAlive = state === 'running' || (last !== undefined && seen !== last);
    if ((owner?.url && isAlive) || waitedMs >= timing.patience) throw new DatabaseInUse(database, owner);
    if (waitedMs === noticeableWait) onWait?.(database);
    last = seen;
    await pause(timing.poll);
  }
}

interface Held {
  database: string;
  token: string;
  /** The open note. */
  file: number;
}

function hold({ database, token, file }: Held, { timing = defaultTiming, onLost }: LockOptions): DatabaseLock {
  // A killed process leaves the engine's own lock behind, a folder beside the database.
  rmSync(`${database}.lock`, { recursive: true, force: true });
  const watched = identityAt(database);
  let lost: DatabaseLost | undefined;
  let url: string | null = null;
  let renewedAt = performance.now();
  const renew = () => {
    renewedAt = performance.now();
    // Whole, so that it heals where anything else has written to it.
    writeSync(file, noteText({ ...thisOwner(token), url }), 0);
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
    database,
    token,
    check,
    announce(address) {
      url = address;
      renew();
    },
    release() {
      clearInterval(timer);
      if (isNote(database, file)) unlinkSync(noteOf(database));
      closeSync(file);
    },
  };
}

const reasons: Record<string, string> = {
  ENOENT: 'there is no such folder',
  ENOTDIR: 'there is no such folder',
  EISDIR: 'it is a folder',
  EACCES: 'this user may not write it',
  EPERM: 'this user may not write it',
  EROFS: 'its file system is read-only',
};

/** The real path of a database file, which is made if there is none. */
function locate(path: string): string {
  try {
    closeSync(openSync(path, 'a', 0o600));
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    throw new Error(`The database ${path} cannot be written: ${reasons[code] ?? message}.`);
  }
  const database = realpathSync(path);
  const { nlink } = statSync(database);
  if (nlink === 1) return database;
  throw new Error(
    `${database} has ${nlink} names (hard links), so another process could open it under another name. Make a copy and use that.`,
  );
}

const noteOf = (database: string) => `${database}.owner`;

const noteLength = 1024;

/** Padded, so that a new text always overwrites all of the old one. */
const noteText = (owner: Owner) => JSON.stringify(owner).padEnd(noteLength);

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

/** `owner` is undefined where the note is gone or incomplete; `seen` changes while an owner lives. */
function readNote(database: string): { owner?: Owner | undefined; seen?: string } {
  try {
    const text = readFileSync(noteOf(database), 'utf8');
    return { owner: ownerIn(text), seen: `${statSync(noteOf(database)).mtimeMs} ${text}` };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw error;
  }
}

function ownerIn(text: string): Owner | undefined {
  try {
    const { pid, started = null, host = null, token, url = null } = JSON.parse(text.slice(0, noteLength));
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

/** Whether an open file is still the note of the database. */
function isNote(database: string, file: number): boolean {
  const { ino, dev } = fstatSync(file, { bigint: true });
  return identityAt(noteOf(database)) === `${dev} ${ino}`;
}

/** Which file has this name. Inode numbers are not used again while a file is open. */
function identityAt(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && `${found.dev} ${found.ino}`;
}
