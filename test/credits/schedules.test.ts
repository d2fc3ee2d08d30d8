import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isBudgetRespected, isEveryFittingCallAdmitted, type Plan, schedules } from '../support/credit-schedule.ts';

/** `npm run schedules` tries a hundred thousand. */
const options = { numRuns: 150 };

test('only one call of unknown price, or a price that rises, can exceed a budget', async () => {
  await fc.assert(fc.asyncProperty(schedules(true), isBudgetRespected), options);
});

test('where charges are stated and nothing fails, every call that fits is sent, and the ledger agrees', async () => {
  await fc.assert(fc.asyncProperty(schedules(false), isEveryFittingCallAdmitted), options);
});

test('an empty page of unknown size says nothing of what a larger one may cost', async () => {
  const rule = {
    kind: 'byLimit',
    credits: 1,
    hits: 0,
    varies: false,
    statesCharges: true,
    tellsBalance: false,
  } as const;
  const failed = { fate: 'http 502', isCharged: true } as const;
  const plans: Plan[] = [{ fate: 'answer', isCharged: true }, ...Array.from({ length: 9 }, () => failed)];
  const steps = [undefined, 50, 50, 50].flatMap((limit) => [{ begin: 'search' as const, limit }, { answer: 0 }]);
  expect(await isBudgetRespected({ budget: 5, rule, plans, steps })).toBe(true);
});
