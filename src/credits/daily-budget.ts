import { AdLibraryError } from '../api/errors.ts';

const dayMs = 86_400_000;

/** The fields of an account that change when a new day begins. */
interface DailyAccount {
  /** The UTC day of the spending, such as `2026-11-22`. Undefined before the first call. */
  day?: string;
  spent: number;
  uncertain: number;
  calls: number;
  /** The reservations of calls, by id. The credits of a booked reservation already count as spent. */
  leases: Readonly<Record<string, { booked?: unknown }>>;
}

/**
 * Updates an account to the UTC day of `now`. On a new day, the spending starts at 0. The prices and the reservations of
 * calls in progress stay. If the clock goes back by at most a day, the account stays on the later day, so that no budget
 * can be spent twice.
 * @param now the current time in milliseconds since the epoch
 * @param file the path of the account's file, for the text of the error
 * @throws AdLibraryError `unavailable` if the day of the account is more than one day ahead, because a clock is wrong
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
