import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import * as z from 'zod';
import { raceAbort } from '../../api/abort.ts';
import { AdLibraryError } from '../../api/errors.ts';
import type { CreditLedger } from '../../credits/ledger.ts';
import { hasEnded, LockHeld, thisProcess, withLock } from '../../lock.ts';
import { parsedLine } from '../record-lines.ts';
import type { DocumentChange } from '../store/documents.ts';
import { type Account, type StoreLedgerOptions, storeLedger } from '../store/ledger.ts';
import { onlyHere } from '../store/presence.ts';
import { ownFolder, replaceFile } from './account-file.ts';
import { unless } from './folder.ts';

export interface DailyLedgerOptions {
  /** The folder that a person chose. */
  folder: string;
  baseUrl: string;
  apiKey: string;
  /** In milliseconds since the epoch. */
  now: () => number;
  warn(message: string, fields: Record<string, unknown>): void;
}

/** The file in which a folder counts the spending of calls from a shell. */
export const creditsFolder = (files: string): string => join(files, 'credits');

const amount = z.number().min(0);
/** The spending of one key on one day. The version counts up with each change. */
const Written = z.object({
  version: z.int(),
  account: z.looseObject({
    ...{ day: z.iso.date(), spent: amount, uncertain: z.number(), calls: amount, paidAt: amount, number: amount },
    prices: z.string(),
    leases: z.record(z.string(), z.looseObject({ credits: amount, owner: z.string(), at: z.number() })),
    settled: z.array(z.string()),
  }),
});

interface Written {
  version: number;
  account: Account;
}

/** No call lasts longer: a lease that is older belongs to a process that died, even if another one has its number now. */
const maxLeaseMs = 15 * 60_000;
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
  return storeLedger({
    documents: accountInFile(path, now),
    keyOf: () => path,
    presence: {
      ...onlyHere,
      id: thisProcess(),
      isDead: (owner, at) => hasEnded(owner) || Math.abs(now() - at) > maxLeaseMs,
    },
    begin: (account, at) => beginDay(account, new Date(at).toISOString().slice(0, 10)),
    onLost: (error) => warn('what a call cost could not be counted', { file: path, error: String(error) }),
  });
}

/** Prices are still known, and what calls in progress hold is still reserved. */
function beginDay(account: Account, day: string): void {
  if (account.day !== undefined && day > account.day) {
    Object.assign(account, { spent: 0, uncertain: 0, calls: 0 });
    for (const [id, { booked }] of Object.entries(account.leases)) if (booked) delete account.leases[id];
  }
  if (account.day === undefined || day > account.day) account.day = day;
}

/** The one document of a file. */
function accountInFile(path: string, now: () => number): StoreLedgerOptions['documents'] {
  let known: Written | undefined;
  let turn: Promise<unknown> = Promise.resolve();
  const read = async (): Promise<Written | undefined> => {
    const text = await readFile(path, 'utf8').catch(unless('ENOENT'));
    known = text === undefined ? undefined : (parsedLine(Written, text) as Written | undefined);
    if (text !== undefined && known === undefined) throw new Error('it is damaged; delete it to begin the day anew');
    return known;
  };
  const unavailable = (error: unknown): never => {
    if (error instanceof LockHeld) throw error;
    const problem = `What calls have spent today cannot be read or written in ${path}: ${error instanceof Error ? error.message : error}.`;
    throw new AdLibraryError({ kind: 'unavailable', problem, sent: false }, { cause: error });
  };
  const as = <Doc>(written: Written | undefined) => ({
    version: String(written?.version ?? ''),
    doc: written?.account as Doc | undefined,
    now: now(),
  });
  return {
    // Other processes may have changed it since.
    known: () => ({ ...as(known), ageMs: Number.POSITIVE_INFINITY }),
    /** Runs after all changes that this process or another one has begun. */
    update: <Doc, Result>(_: string, change: DocumentChange<Doc, Result>) => {
      const work = async () => {
        await ownFolder(dirname(path));
        return withLock(`${path}.lock`, async () => {
          const before = await read();
          const { doc, version } = as<Doc>(before);
          const { next, result } = change(doc, now(), version);
          if (!next) return result;
          const written = { version: (before?.version ?? 0) + 1, account: next as unknown as Account };
          await replaceFile(path, (file) => file.writeFile(JSON.stringify(written)));
          known = written;
          return result;
        });
      };
      const done = turn.then(work).catch(unavailable);
      turn = done.catch(() => {});
      return done;
    },
    /** Resolves after a while even without a change, because a process that died changes nothing. */
    changed: async (_, version, signal) => {
      for (let looks = 0; looks < maxLooks; looks++) {
        await raceAbort(wait(lookMs), signal);
        if (as(await read().catch(() => known)).version !== version) return;
      }
    },
  };
}
