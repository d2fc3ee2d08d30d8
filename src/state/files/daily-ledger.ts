import { hash, randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { open, readFile, rename, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import * as z from 'zod';
import { AdLibraryError, raceAbort } from '../../api/call.ts';
import type { CreditAccount, CreditLedger } from '../../credits/ledger.ts';
import { parsedLine } from '../record-lines.ts';
import { type Account, creditAccount, emptyAccount, passTime, readBalance, reserve, settle } from '../store/account.ts';
import { ownFolder, syncFolder } from './account-file.ts';
import { hasEnded, takeLock, unless } from './file-lock.ts';

export interface DailyLedgerOptions {
  /** The folder that a person chose. */
  folder: string;
  baseUrl: string;
  apiKey: string;
  /** In milliseconds since the epoch. */
  now: () => number;
  warn(message: string, fields: Record<string, unknown>): void;
}

/** Where a folder keeps what calls from a shell spent. */
export const creditsFolder = (files: string): string => join(files, 'credits');

/** What was spent on one day by one key. */
interface Day {
  /** In UTC, as ISO text. */
  day: string;
  /** Counts up with each change. */
  version: number;
  account: Account;
}

const amount = z.number().min(0);
const Day = z.object({
  day: z.iso.date(),
  version: z.int(),
  account: z.looseObject({
    ...{ spent: amount, uncertain: z.number(), calls: amount, paidAt: amount, number: amount },
    ...{ savedCalls: amount, savedCredits: amount, prices: z.string() },
    leases: z.record(z.string(), z.looseObject({ credits: amount, owner: z.string(), at: z.number() })),
    settled: z.array(z.string()),
  }),
});

/** No call lasts longer: a lease that is older belongs to a process that died, even if another one has its number now. */
const maxLeaseMs = 15 * 60_000;
const lockOptions = { lookMs: 10, maxMs: 30_000 };
/** How often one looks whether another process has changed it, and how long at most, in milliseconds. */
const lookMs = 50;
const maxLooks = 10;

/**
 * What all calls from a shell spend with one key on one day (UTC), in a file that one process changes at a time. What a
 * process had reserved counts when it is killed. A day that has begun stays, if the clock goes back: a budget opens once
 * for each day.
 */
export function dailyCreditLedger({ folder, baseUrl, apiKey, now, warn }: DailyLedgerOptions): CreditLedger {
  const path = join(creditsFolder(folder), `${hash('sha256', `${baseUrl}\n${apiKey}`).slice(0, 32)}.json`);
  const owner = `${process.pid} ${hostname()}`;
  let known = newDay(now());
  let turn: Promise<unknown> = Promise.resolve();

  const readNow = async (): Promise<Day> => {
    const text = await readFile(path, 'utf8').catch(unless('ENOENT'));
    const read = text === undefined ? newDay(now()) : (parsedLine(Day, text) as Day | undefined);
    if (read === undefined) throw new Error('it is damaged; delete it to begin the day anew');
    const today = dayOf(now());
    if (today > read.day) beginDay(read, today);
    passTime(read.account, now(), (_, lease) => hasEnded(lease.owner) || Math.abs(now() - lease.at) > maxLeaseMs);
    known = read;
    return read;
  };
  /** Changes it, after all changes that this process or another one has begun. */
  const update = async <Result>(change: (account: Account) => Result): Promise<{ result: Result; after: Day }> => {
    const work = async () => {
      await ownFolder(dirname(path));
      const signal = AbortSignal.timeout(lockOptions.maxMs);
      const unlock = await takeLock(`${path}.lock`, { ...lockOptions, signal });
      try {
        const day = await readNow();
        const result = change(day.account);
        day.version++;
        await replace(path, JSON.stringify(day));
        return { result, after: day };
      } finally {
        unlock();
      }
    };
    const done = turn.then(work);
    turn = done.catch(() => {});
    return done;
  };
  const unavailable = (error: unknown) => {
    const problem = `What calls have spent today cannot be read or written in ${path}: ${error instanceof Error ? error.message : error}.`;
    return new AdLibraryError({ kind: 'unavailable', problem, sent: false }, { cause: error });
  };
  const failed = (error: unknown) =>
    warn('what a call cost could not be counted', { file: path, error: String(error) });

  return {
    read: async () =>
      viewOf(
        await readNow().catch((error) => {
          throw unavailable(error);
        }),
      ),
    estimate: async () => viewOf(await readNow().catch(() => known)),
    reserve: async (tenantId, requestOf) => {
      const id = randomUUID();
      const { result, after } = await update((account) => {
        const request = requestOf(creditAccount(account));
        return { request, kind: reserve(account, request, { id, owner, now: now() }) };
      }).catch((error) => {
        throw unavailable(error);
      });
      const { kind, request } = result;
      if (kind === 'wait') return { kind, version: String(after.version) };
      if (kind === 'refused') return { kind, account: viewOf(after) };
      const { credits, paid, line } = request;
      const lease = { id, tenantId, credits, paid, line, number: after.account.number };
      return { kind, lease, account: viewOf(after) };
    },
    /** Also when nothing has changed for a while: a process that died changes nothing. */
    changed: async (_, version, signal) => {
      for (let looks = 0; looks < maxLooks; looks++) {
        await raceAbort(wait(lookMs), signal);
        if (String((await readNow().catch(() => known)).version) !== version) return;
      }
    },
    settle: async (_, settlement, lease) => {
      await update((account) => {
        settle(account, lease?.id ?? randomUUID(), settlement, { hasLease: lease !== undefined, now: now() });
        // Nothing is settled twice within one process.
        account.settled = [];
      }).catch(failed);
    },
    saved: async (_, credits) => {
      const { after } = await update((account) => {
        account.savedCalls++;
        account.savedCredits += credits;
      }).catch(() => ({ after: known }));
      return viewOf(after);
    },
    readBalance: async (_, credits) =>
      (await update((account) => readBalance(account, credits, now())).catch(() => undefined))?.result,
  };
}

const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

const newDay = (at: number): Day => ({ day: dayOf(at), version: 0, account: emptyAccount() });

/** Prices are still known, and what is under way is still reserved. */
function beginDay(known: Day, day: string): void {
  known.day = day;
  Object.assign(known.account, { spent: 0, uncertain: 0, calls: 0, savedCalls: 0, savedCredits: 0 });
  for (const [id, { booked }] of Object.entries(known.account.leases)) if (booked) delete known.account.leases[id];
}

const viewOf = ({ account, day }: Day): CreditAccount => ({ ...creditAccount(account), day });

/** All of it is on the disk before it has its name. */
async function replace(path: string, text: string): Promise<void> {
  const part = `${path}.part`;
  try {
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | (constants.O_NOFOLLOW ?? 0);
    const file = await open(part, flags, 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(part, path);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
  await syncFolder(path);
}
