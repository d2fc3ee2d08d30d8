import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
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
      : ['database_replaced', `${database} was deleted or replaced while this process used it; stop it before that.`];
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
 * @throws Error when the file cannot be written
 */
export async function lockDatabase(path: string, options: LockOptions = {}): Promise<DatabaseLock> {
  const { timing = defaultTiming, onWait } = options;
  const token = randomBytes(24).toString('hex');
  if (path === ':memory:') return { database: path, token, announce() {}, check() {}, release() {} };
  const database = located(path);
  const note = `${database}.owner`;
  let last: string | undefined;
  let unchangedMs = 0;
  for (let waitedMs = 0, hasTakenOver = false; ; waitedMs += timing.poll) {
    const file = createNote(note, token);
    if (file !== undefined) {
      // Of several processes that take over at once, the last one wins: each looks again after a longer moment than
      // lies between reading the old note and removing it.
      if (hasTakenOver) await pause(4 * timing.poll);
      if (identityAt(note) === identityOf(file)) return hold(database, token, file, options);
      fs.closeSync(file);
      hasTakenOver = false;
      continue;
    }
    const { owner, seen } = readNote(note);
    unchangedMs = seen === last ? unchangedMs + timing.poll : 0;
    const state = owner && stateOf(owner);
    if (state === 'ended' || (unchangedMs >= timing.expire && state !== 'running')) {
      hasTakenOver = true;
      fs.rmSync(note, { force: true });
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

/** @param file the open note */
function hold(database: string, token: string, file: number, options: LockOptions): DatabaseLock {
  const { timing = defaultTiming, onLost } = options;
  const note = `${database}.owner`;
  // A killed process leaves the engine's own lock behind, a folder beside the database.
  fs.rmSync(`${database}.lock`, { recursive: true, force: true });
  const watched = identityAt(database);
  const hasNewOwner = () => identityAt(note) !== identityOf(file);
  let lost: DatabaseLost | undefined;
  let renewedAt = performance.now();
  const renew = () => {
    renewedAt = performance.now();
    const seconds = (performance.timeOrigin + renewedAt) / 1000;
    fs.futimesSync(file, seconds, seconds);
  };
  const check = () => {
    if (lost) throw lost;
    if (hasNewOwner() || identityAt(database) !== watched) {
      clearInterval(timer);
      lost = new DatabaseLost(database, hasNewOwner());
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
    announce: (url) => write(file, { ...thisOwner(token), url }),
    release() {
      clearInterval(timer);
      if (!hasNewOwner()) fs.unlinkSync(note);
      fs.closeSync(file);
    },
  };
}

/** The real path of a database file, which is made if there is none. */
function located(path: string): string {
  try {
    fs.closeSync(fs.openSync(path, 'a', 0o600));
  } catch (error) {
    throw new Error(`The database ${path} cannot be written: ${(error as Error).message}.`);
  }
  return fs.realpathSync(path);
}

const noteLength = 1024;

/** Padded, so that a new text always overwrites all of the old one. */
const write = (file: number, owner: Owner) => void fs.writeSync(file, JSON.stringify(owner).padEnd(noteLength), 0);

/** @returns the open note, or undefined where there is one already */
function createNote(note: string, token: string): number | undefined {
  let file: number | undefined;
  try {
    file = fs.openSync(note, 'wx', 0o600);
    write(file, thisOwner(token));
    return file;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return undefined;
    if (file !== undefined) fs.unlinkSync(note);
    throw new Error(`Nothing can be written in ${dirname(note)}: ${message}.`);
  }
}

/** `owner` is undefined where the note is gone or incomplete; `seen` changes while an owner lives. */
function readNote(note: string): { owner?: Owner | undefined; seen?: string } {
  try {
    const text = fs.readFileSync(note, 'utf8');
    return { owner: ownerIn(text), seen: `${fs.statSync(note).mtimeMs} ${text}` };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
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

export const thisOwner = (token: string): Owner => ({ ...processAt(process.pid), pid: process.pid, token, url: null });

/** Hosts are equal only for processes that see each other's numbers: same boot of the same kernel, same namespace. */
function processAt(pid: number): Pick<Owner, 'host' | 'started'> {
  const read = <Value>(get: () => Value) => {
    try {
      return get();
    } catch {
      return null;
    }
  };
  const boot = read(() => fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim());
  const namespace = read(() => fs.readlinkSync('/proc/self/ns/pid'));
  // The second field is the program's name, which may hold anything.
  const fields = read(() =>
    fs
      .readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' '),
  );
  // A process that has ended stays listed until its parent asks for its exit code.
  const started = fields?.[0] === 'Z' ? null : (fields?.[19] ?? null);
  return { host: boot && namespace && `${boot} ${namespace}`, started };
}

/** Whether the owner runs; `unknown` for processes that cannot be seen from here. */
function stateOf({ pid, started, host }: Owner): 'running' | 'ended' | 'unknown' {
  const seen = processAt(pid);
  if (host === null || started === null || host !== seen.host) return 'unknown';
  return seen.started === started ? 'running' : 'ended';
}

/** Which file it is. Inode numbers are not used again while a file is open. */
const identityOf = (file: number) => namesOf(fs.fstatSync(file, { bigint: true }));
const identityAt = (path: string) => namesOf(fs.statSync(path, { bigint: true, throwIfNoEntry: false }));
const namesOf = (stats: fs.BigIntStats | undefined) => stats && `${stats.dev} ${stats.ino}`;
