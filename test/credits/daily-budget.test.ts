import fc from 'fast-check';
import { expect, test } from 'vitest';
import { resetAccountOnNewDay } from '../../src/credits/daily-budget.ts';

const dayMs = 86_400_000;
const formatDay = (time: number) => new Date(time).toISOString().slice(0, 10);
interface TestAccount {
  day?: string;
  spent: number;
  uncertain: number;
  calls: number;
  prices: string;
  leases: Record<string, { credits: number; possibleCharge?: { credits: number; countedAt: number } }>;
}
const account: TestAccount = {
  spent: 4,
  uncertain: 2,
  calls: 3,
  prices: 'prices',
  leases: { open: { credits: 5 }, counted: { credits: 2, possibleCharge: { credits: 2, countedAt: 0 } } },
};

test('daily spending resets to 0 when a new day starts, but not when the clock is set back', () => {
  const steps = fc.array(fc.integer({ min: -dayMs, max: 2 * dayMs }), { maxLength: 30 });
  fc.assert(
    fc.property(steps, (jumps) => {
      let now = Date.parse('2026-11-22T12:00:00Z');
      let latest = now;
      let current: TestAccount = resetAccountOnNewDay(account, now, 'file');
      for (const jump of jumps) {
        now = Math.max(now + jump, latest - dayMs);
        const isLater = formatDay(now) > formatDay(latest);
        latest = Math.max(latest, now);
        const before = { ...current, spent: 7 };
        current = resetAccountOnNewDay(before, now, 'file');
        expect(current.day).toBe(formatDay(latest));
        expect(current.spent).toBe(isLater ? 0 : 7);
        expect(current.prices).toBe('prices');
        expect(current.leases.open).toEqual({ credits: 5 });
        expect(before.spent).toBe(7);
      }
    }),
  );
});

test('a new day clears expired credit reservations and keeps the reservations of running calls', () => {
  const first = resetAccountOnNewDay(account, 0, 'file');
  expect(first).toEqual({ ...account, day: '1970-01-01' });
  const next = resetAccountOnNewDay(first, dayMs, 'file');
  expect(next).toMatchObject({ day: '1970-01-02', spent: 0, uncertain: 0, calls: 0 });
  expect(Object.keys(next.leases)).toEqual(['open']);
});
