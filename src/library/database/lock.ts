import { randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type ProcessIdentity, stateOf, thisProcess } from '../../process.ts';
import { ApiError } from '../service/request.ts';

/**
 * One process owns a database file, because the engine has no locks that hold between processes. Its note beside the
 * file, `<database>.owner`, names the process and, while it serves, the address and the token with which other commands
 * can use the database through it. The owner writes the note anew every second, which shows that it is alive, wherever
 * it runs. A note that nobody renews is taken over, except from a process that this machine can see and that is only
 * suspended: it could finish a write at any time.
 */
export type Owner = ProcessIdentity & { token: string; url: string | null };

/** Milliseconds. */
const defaultTiming = {
  renew: 1_000,
  /** Without a renewal for so long, another process may take the file. */
  expire: 15_000,
  poll: 50,
  /** How long to wait for a process that uses the file without serving it. */
  patience: 30_000,
};
const noticeableWait = 1_000;

export type LockOptions = {
  timing?: typeof defaultTiming | undefined;
  /** Called if the file is not free within a second. */
  onWait?: ((database: string) => void) | undefined;
};

/** The code of the error where another process has the file, and its log. */
export const takenOver = 'database_taken_over';

/** This process may not use the file any more, and writes nothing. */
function lostError(database: string, hasNewOwner: boolean): ApiError {
  const [code, problem] = hasNewOwner
    ? [takenOver, `Another process has taken over ${database}, because this one was not seen any more.`]
    : ['database_replaced', `${database} was deleted or replaced while this process used it; stop it before that.`];
  return new ApiError(503, code, `${problem} This process writes nothing more.`);
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
  const self = thisOwner();
  if (path === ':memory:') {
    const { signal: loss } = new AbortController();
    return { database: path, token: self.token, loss, announce() {}, check() {}, release() {} };
  }
  const database = located(path);
  const note = `${database}.owner`;
  let last: number | undefined;
  let unchangedMs = 0;
  for (let waitedMs = 0, hasTakenOver = false; ; waitedMs += timing.poll) {
    const file = createdNote(note, self);
    if (file !== undefined) {
      // Of several processes that take over at once, the last one wins: each looks again after a longer moment than
      // lies between reading the old note and removing it.
      if (hasTakenOver) await pause(4 * timing.poll);
      if (identityAt(note) === identityOf(file)) return hold(database, file, self, timing);
      fs.closeSync(file);
      hasTakenOver = false;
      continue;
    }
    const renewed = fs.statSync(note, { throwIfNoEntry: false })?.mtimeMs;
    const owner = ownerIn(note);
    unchangedMs = renewed === last ? unchangedMs + timing.poll : 0;
    const state = owner && stateOf(owner);
    if (state === 'ended' || (unchangedMs >= timing.expire && state !== 'running')) {
      hasTakenOver = true;
      fs.rmSync(note, { force: true });
      continue;
    }
    // A process that serves the file does not finish, so waiting for it would be in vain.
    const isAlive = state === 'running' || (last !== undefined && renewed !== last);
    if ((owner?.url && isAlive) || waitedMs >= timing.patience) throw new DatabaseInUse(database, owner);
    if (waitedMs === noticeableWait) onWait?.(database);
    last = renewed;
    await pause(timing.poll);
  }
}

export type DatabaseLock = ReturnType<typeof hold>;

/** @param file the open note */
function hold(database: string, file: number, owner: Owner, timing: typeof defaultTiming) {
  const note = `${database}.owner`;
  // A killed process leaves the engine's own lock behind, a folder beside the database.
  fs.rmSync(`${database}.lock`, { recursive: true, force: true });
  const watched = identityAt(database);
  const hasNewOwner = () => identityAt(note) !== identityOf(file);
  const loss = new AbortController();
  /** @throws ApiError when the file has another owner, or is gone */
  const check = () => {
    if (!loss.signal.aborted && (hasNewOwner() || identityAt(database) !== watched)) {
      clearInterval(timer);
      loss.abort(lostError(database, hasNewOwner()));
    }
    loss.signal.throwIfAborted();
  };
  const timer = setInterval(() => {
    try {
      check();
      write(file, owner);
    } catch {
      // A loss was reported. Where the note could not be renewed, the next turn tries again.
    }
  }, timing.renew).unref();
  return {
    /** The real path of the file, with all links resolved. */
    database,
    token: owner.token,
    /** Aborted when the file is lost; says why. */
    loss: loss.signal as AbortSignal,
    check,
    /** Publishes the address where the owner serves; null: it has stopped serving, but still has the file open. */
    announce(url: string | null) {
      owner.url = url;
      write(file, owner);
    },
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
const maxNoteBytes = 10 * noteLength;
/** Padded, so that a new text always overwrites all of the old one. */
const write = (file: number, owner: Owner) => void fs.writeSync(file, JSON.stringify(owner).padEnd(noteLength), 0);

/** @returns the open note, or undefined where there is one already */
function createdNote(note: string, owner: Owner): number | undefined {
  let file: number | undefined;
  try {
    file = fs.openSync(note, 'wx', 0o600);
    write(file, owner);
    return file;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return undefined;
    if (file !== undefined) fs.unlinkSync(note);
    throw new Error(`Nothing can be written in ${dirname(note)}: ${message}.`);
  }
}

/** Undefined where the note is gone or incomplete, or is no such file: reading that might not end. */
function ownerIn(note: string): Owner | undefined {
  try {
    const file = fs.statSync(note);
    return file.isFile() && file.size <= maxNoteBytes ? JSON.parse(fs.readFileSync(note, 'utf8')) : undefined;
  } catch {
    return undefined;
  }
}

export const thisOwner = (): Owner => ({ ...thisProcess(), token: randomBytes(24).toString('hex'), url: null });

/** Which file it is. Inode numbers are not used again while a file is open. */
const identityOf = (file: number) => namesOf(fs.fstatSync(file, { bigint: true }));
const identityAt = (path: string) => namesOf(fs.statSync(path, { bigint: true, throwIfNoEntry: false }));
const namesOf = (stats: fs.BigIntStats | undefined) => stats && `${stats.dev} ${stats.ino}`;
