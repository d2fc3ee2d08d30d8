import { AdLibraryError } from '../api/errors.ts';

const dayMs = 86_400_000;

/** The part of an account that the start of a day changes. */
interface DailyAccount {
  /** The day (UTC, ISO text) whose spending the account counts; undefined before the first call. */
  day?: string;
  spent: number;
  uncertain: number;
  calls: number;
  /** Reservations of calls. A booked one has been counted as spent. */
  leases: Readonly<Record<string, { booked?: unknown }>>;
}

/**
 * Returns the account as it is on the day of `now`: a budget opens once for each day (UTC). On a new day, spending starts
 * at 0; prices and the reservations of calls in progress stay. If the clock goes back by at most a day, the account
 * continues to count the later day, so that no budget opens twice.
 * @param now in milliseconds since the epoch
 * @param file the file of the account, which the error names
 * @throws AdLibraryError `unavailable` if the account counts a day more than one day ahead: one of the clocks is wrong
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
