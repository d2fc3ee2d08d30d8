import { AdLibraryError } from '../api/errors.ts';

const dayMs = 86_400_000;

/** The fields of a stored credit account that are reset when a new day begins. */
interface DailyAccount {
  /** The UTC day of the spending, e.g. `2026-11-22`. Undefined before the first call. */
  day?: string;
  spent: number;
  uncertain: number;
  calls: number;
  /**
   * The credits that are reserved for calls in progress, by the id of the reservation. A reservation with `booked` is
   * already counted as spent.
   */
  leases: Readonly<Record<string, { booked?: unknown }>>;
}

/**
 * Resets an account when a new UTC day begins. Spending restarts at 0. Prices and reserved credits of calls in progress
 * are kept. If the clock goes back by up to one day, the account stays on the later day, because otherwise a budget
 * could be spent twice.
 * @param now the current time in milliseconds since the epoch
 * @param file the path of the account's file, for the error message
 * @throws AdLibraryError `unavailable` if the account is more than one day ahead of the clock, because either the
 * account or the clock must be wrong
 */
export function updateAccountToDay<Account extends DailyAccount>(account: Account, now: number, file: string): Account {
  const today = formatUtcDay(now);
  const { day = '' } = account;
  if (day > formatUtcDay(now + dayMs)) {
    const problem =
      `${file} counts the calls of ${day}, and the clock of this machine says ${today}: one of the two is wrong. ` +
      'If the clock is right, delete that file.';
    throw new AdLibraryError({ kind: 'unavailable', problem, storage: 'data' });
  }
  if (today <= day) return account;
  if (day === '') return { ...account, day: today };
  const openLeases = Object.entries(account.leases).filter(([, { booked }]) => booked === undefined);
  return { ...account, day: today, spent: 0, uncertain: 0, calls: 0, leases: Object.fromEntries(openLeases) };
}

const formatUtcDay = (time: number): string => new Date(time).toISOString().slice(0, 10);
