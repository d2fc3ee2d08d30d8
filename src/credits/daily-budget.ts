import { AdLibraryError } from '../api/errors.ts';
import { dayMs } from '../views/durations.ts';

/** The fields of a stored credit account that change when a new day begins. */
interface DailyAccount {
  /** The UTC day of the spending, e.g. `2026-11-22`. Undefined before the first call. */
  day?: string;
  spent: number;
  uncertain: number;
  calls: number;
  /**
   * The reservations of credits for calls in progress, by id. `possibleCharge` is set if the process of a call has
   * died. The reserved credits then already count as spent.
   */
  leases: Readonly<Record<string, { possibleCharge?: unknown }>>;
}

/**
 * Resets an account when a new UTC day begins: spending restarts at 0, and prices and open reservations are kept. If
 * the clock goes back by up to a day, the account stays on the later day, because otherwise the budget could be spent
 * twice.
 * @param now the current time in milliseconds since 1970
 * @param accountPath the path of the account's file, for the error message
 * @throws AdLibraryError `unavailable` if the day of the account is more than one day ahead of the clock, because the
 * account or the clock must then be wrong
 */
export function resetAccountOnNewDay<Account extends DailyAccount>(
  account: Account,
  now: number,
  accountPath: string,
): Account {
  const today = formatUtcDay(now);
  const { day = '' } = account;
  if (day > formatUtcDay(now + dayMs)) {
    const problem =
      `${accountPath} counts the calls of ${day}, and the clock of this machine says ${today}: one of the two is wrong. ` +
      'If the clock is right, delete that file.';
    throw new AdLibraryError({ kind: 'unavailable', problem, storage: 'data' });
  }
  if (today <= day) return account;
  if (day === '') return { ...account, day: today };
  const openLeases = Object.entries(account.leases).filter(([, { possibleCharge }]) => possibleCharge === undefined);
  return { ...account, day: today, spent: 0, uncertain: 0, calls: 0, leases: Object.fromEntries(openLeases) };
}

const formatUtcDay = (timeMs: number): string => new Date(timeMs).toISOString().slice(0, 10);
