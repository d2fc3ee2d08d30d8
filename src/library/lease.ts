import {
  type BigIntStats,
  closeSync,
  fstatSync,
  futimesSync,
  openSync,
  rmSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { ApiError } from './api-error.ts';
import { clearEngineLock, replaceFiles } from './database-files.ts';
import {
  answers,
  DatabaseInUse,
  hasEnded,
  noteOf,
  noteText,
  type OwnerNote,
  readNote,
  thisOwner,
} from './owner-note.ts';

/** The right to use a database file, held as long as this process renews it. */
export type Lease = {
  /** Publishes the address where the owner serves; null: it has stopped serving, but still has the file open. */
  announce(url: string | null): void;
  /** @throws LeaseLost when another process has taken over the file; FileReplaced when the file is gone */
  check(): void;
  /** From now on, the file must stay where it is. */
  watchFile(): void;
  release(): void;
};

/** Milliseconds. */
export type LeaseTiming = {
  renew: number;
  /** Without a renewal for so long, another process may take the lease. */
  expire: number;
  poll: number;
  /** How long to wait for a process that uses the file without serving it. */
  patience: number;
};

export const leaseTiming: LeaseTiming = { renew: 1_000, expire: 15_000, poll: 50, patience: 30_000 };

export type LeaseOptions = {
  token: string;
  timing?: LeaseTiming | undefined;
  /** Called once if the lease or the file is lost. */
  onLost?: ((error: ApiError) => unknown) | undefined;
  /** Called if the file is not free within a second. */
  onWait?: ((database: string) => void) | undefined;
};

const noticeableWait = 1_000;

export class LeaseLost extends ApiError {
  constructor(database: string) {
    super(
      503,
      'database_taken_over',
      `Another process has taken over ${database}, because this one was suspended or too busy to renew its lease. This process writes nothing more.`,
    );
  }
}

export class FileReplaced extends ApiError {
  constructor(database: string) {
    super(
      503,
      'database_replaced',
      `${database} was deleted or replaced while this process used it: what is written to the open file can no longer be found. Stop the process before you move or restore its database. This process writes nothing more.`,
    );
  }
}

/**
 * Takes a database file for this process, or waits for it.
 *
 * The clocks of different machines are never compared: a note counts as abandoned after enough polls without a change.
 * @throws DatabaseInUse when the owner serves the file, or does not finish in time
 */
export async function takeLease(database: string, options: LeaseOptions): Promise<Lease> {
  const lease = await waitForLease(database, options);
  try {
    // A killed process leaves it behind; the lease makes it redundant.
    await clearEngineLock(database);
    lease.watchFile();
    return lease;
  } catch (error) {
    lease.release();
    throw error;
  }
}

async function waitForLease(database: string, options: LeaseOptions): Promise<Lease> {
  const { timing = leaseTiming, onWait } = options;
  let last: OwnerNote | undefined;
  for (let polls = 0, unchanged = 0; ; polls++) {
    const file = createNote(database, options.token);
    if (file !== undefined) return holdLease(database, file, options);
    const note = readNote(database);
    unchanged = note && isSame(note, last) ? unchanged + 1 : 0;
    const ended = note?.owner !== undefined && hasEnded(note.owner);
    if (note && (ended || unchanged * timing.poll >= timing.expire)) {
      const lease = await takeOver(database, note, ended, options);
      if (lease) return lease;
    }
    if (note && !ended) await throwIfServed(database, note, last);
    if (polls * timing.poll >= timing.patience) throw new DatabaseInUse(database, note?.owner, false);
    if (polls * timing.poll === noticeableWait) onWait?.(database);
    last = note;
    await pause(timing.poll);
  }
}

const isSame = (note: OwnerNote, other: OwnerNote | undefined) =>
  note.text === other?.text && note.changedMs === other.changedMs;

/** Waiting for an owner that serves is pointless, whether it answers here or only renews its lease. */
async function throwIfServed(database: string, note: OwnerNote, last: OwnerNote | undefined): Promise<void> {
  const { owner } = note;
  if (!owner?.url || isSame(note, last)) return;
  if (await answers(owner)) throw new DatabaseInUse(database, owner, true);
  if (note.text === last?.text) throw new DatabaseInUse(database, owner, false);
}

/** @returns the open note, or undefined when there is one already */
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

function holdLease(database: string, file: number, { token, timing = leaseTiming, onLost }: LeaseOptions): Lease {
  let lost: ApiError | undefined;
  let watched: string | undefined;
  let renewedAt = performance.now();
  const renew = () => {
    renewedAt = performance.now();
    const time = (performance.timeOrigin + renewedAt) / 1000;
    futimesSync(file, time, time);
  };
  const check = () => {
    if (!lost) {
      if (!isNote(database, file)) lost = new LeaseLost(database);
      else if (watched !== undefined && fileAt(database) !== watched) lost = new FileReplaced(database);
      if (lost) {
        clearInterval(timer);
        onLost?.(lost);
      }
    }
    if (lost) throw lost;
    // Long work delays the timer below, but not the renewal.
    if (performance.now() - renewedAt >= timing.renew) renew();
  };
  const timer = setInterval(() => {
    try {
      check();
      renew();
    } catch {
      // If the lease is lost, onLost was called. If renewing failed, the next turn tries again.
    }
  }, timing.renew).unref();
  return {
    check,
    watchFile() {
      watched = fileAt(database);
    },
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

/** Whether an open file is still the note of the database. */
const isNote = (database: string, file: number): boolean =>
  fileAt(noteOf(database)) === identity(fstatSync(file, { bigint: true }));

/** Which file has this name. Inode numbers are not reused while a file is open. */
function fileAt(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && identity(found);
}

const identity = ({ ino, dev }: BigIntStats) => `${dev} ${ino}`;

/**
 * Replaces an owner that ended or stopped renewing. If several processes do so at once, the last one wins: each checks
 * its note again after a pause that is long compared to the moment between reading the old note and writing its own.
 */
async function takeOver(database: string, note: OwnerNote, ended: boolean, options: LeaseOptions) {
  const { token, timing = leaseTiming } = options;
  const now = readNote(database);
  if (!now || !isSame(now, note)) return undefined;
  rmSync(noteOf(database), { force: true });
  const file = createNote(database, token);
  if (file === undefined) return undefined;
  let settled = false;
  const onLost = (error: ApiError) => settled && options.onLost?.(error);
  const lease = holdLease(database, file, { ...options, onLost });
  try {
    await pause(ended ? 4 * timing.poll : timing.renew);
    lease.check();
    if (!ended) await replaceFiles(database);
    lease.check();
    settled = true;
    return lease;
  } catch (error) {
    lease.release();
    if (error instanceof LeaseLost) return undefined;
    throw error;
  }
}
