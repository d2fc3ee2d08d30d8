import { closeSync, fstatSync, futimesSync, openSync, rmSync, statSync, unlinkSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
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
import { Refusal } from './refusal.ts';

/** The right to a database file, for as long as this process renews it. */
export type Lease = {
  /** Says where the owner serves from now on; null: no longer, though it still has the file open. */
  announce(url: string | null): void;
  /** @throws LeaseLost when the file belongs to another process by now */
  check(): void;
  release(): void;
};

/** Milliseconds. */
export type LeaseTiming = {
  renew: number;
  /** After so long without a renewal anybody may take the lease. */
  expire: number;
  poll: number;
  /** How long to wait for a process that is soon done with the file. */
  patience: number;
};

export const leaseTiming: LeaseTiming = { renew: 1_000, expire: 15_000, poll: 50, patience: 30_000 };

export type LeaseOptions = {
  token: string;
  timing?: LeaseTiming | undefined;
  /** Called once if the lease is lost. */
  onLost?: ((error: LeaseLost) => unknown) | undefined;
  /** Called if the file is not free within a second. */
  onWait?: ((database: string) => void) | undefined;
};

const noticeable = 1_000;

export class LeaseLost extends Refusal {
  constructor(database: string) {
    super(
      503,
      'database_taken_over',
      `Another process has taken over ${database}, because this one had not shown for too long that it still runs. Nothing more is written here.`,
    );
  }
}

/**
 * Takes a database file for this process, or waits for it.
 *
 * Clocks of different machines are never compared: a note counts as abandoned when it has not changed in as many looks
 * at it as make up the time of expiry.
 * @throws DatabaseInUse when its owner lives and serves, or is not done in time
 */
export async function takeLease(database: string, options: LeaseOptions): Promise<Lease> {
  const lease = await waitForLease(database, options);
  try {
    // A killed process cannot remove it, and whoever holds the lease needs no other lock.
    await clearEngineLock(database);
    return lease;
  } catch (error) {
    lease.release();
    throw error;
  }
}

async function waitForLease(database: string, options: LeaseOptions): Promise<Lease> {
  const { timing = leaseTiming, onWait } = options;
  let last: OwnerNote | undefined;
  for (let looks = 0, unchanged = 0; ; looks++) {
    const file = createNote(database, options.token);
    if (file !== undefined) return holdLease(database, file, options);
    const note = readNote(database);
    unchanged = note && isSame(note, last) ? unchanged + 1 : 0;
    const ended = note?.owner !== undefined && hasEnded(note.owner);
    if (note && (ended || unchanged * timing.poll >= timing.expire)) {
      const lease = await takeOver(database, note, ended, options);
      if (lease) return lease;
    }
    if (note && !ended) await refuseIfServed(database, note, last);
    if (looks * timing.poll >= timing.patience) throw new DatabaseInUse(database, note?.owner, false);
    if (looks * timing.poll === noticeable) onWait?.(database);
    last = note;
    await pause(timing.poll);
  }
}

const isSame = (note: OwnerNote, other: OwnerNote | undefined) =>
  note.text === other?.text && note.changedMs === other.changedMs;

/** An owner that serves does not end soon, whether it answers here or only renews its lease. */
async function refuseIfServed(database: string, note: OwnerNote, last: OwnerNote | undefined): Promise<void> {
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
  let lost: LeaseLost | undefined;
  let renewedAt = performance.now();
  const renew = () => {
    renewedAt = performance.now();
    const time = (performance.timeOrigin + renewedAt) / 1000;
    futimesSync(file, time, time);
  };
  const check = () => {
    if (!lost && !isNote(database, file)) {
      lost = new LeaseLost(database);
      clearInterval(timer);
      onLost?.(lost);
    }
    if (lost) throw lost;
    // Work that leaves the timer no turn keeps the lease all the same.
    if (performance.now() - renewedAt >= timing.renew) renew();
  };
  const timer = setInterval(() => {
    try {
      check();
      renew();
    } catch {
      // Lost: onLost has heard of it. Not renewed: the next turn tries again.
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
      if (!lost && isNote(database, file)) unlinkSync(noteOf(database));
      closeSync(file);
    },
  };
}

/** Whether an open file is still the note of the database. Its number cannot be given anew while it is open. */
function isNote(database: string, file: number): boolean {
  const mine = fstatSync(file, { bigint: true });
  const found = statSync(noteOf(database), { bigint: true, throwIfNoEntry: false });
  return found !== undefined && found.ino === mine.ino && found.dev === mine.dev;
}

/**
 * Puts this process in the place of an owner that ended or fell silent. Of several that do so at once the last one
 * stays: each looks again after a while that is long beside the moment between its last look and its own note.
 */
async function takeOver(database: string, note: OwnerNote, ended: boolean, options: LeaseOptions) {
  const { token, timing = leaseTiming } = options;
  const now = readNote(database);
  if (!now || !isSame(now, note)) return undefined;
  rmSync(noteOf(database), { force: true });
  const file = createNote(database, token);
  if (file === undefined) return undefined;
  let settled = false;
  const onLost = (error: LeaseLost) => settled && options.onLost?.(error);
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
