import { describe, expect, test } from 'vitest';
import { formatCredits, formatIdentity, viewAccount, viewCredits, viewIdentity } from '../../src/views/account.ts';

/** What is said of a usual account stands in docs/tools.md. */
describe('credits', () => {
  const status = {
    planId: 'pro',
    billingUserId: 'u-1',
    periodStart: 1_793_491_200,
    periodEnd: 1_796_083_200,
    credits: 640,
    creditsMax: 1000,
    usageLimit: {
      ...{ isLimitReached: false, limitType: 'none' },
      ...{ hourlyCredits: 320, hourlyLimit: 400, dailyCredits: 360, dailyLimit: 900 },
    },
  };

  test('say which limit is reached, as far as the service says it', () => {
    const usageLimit = { ...status.usageLimit, isLimitReached: true, limitType: 'hourly', hourlyCredits: 410 };
    const reached = formatCredits(viewCredits({ ...status, usageLimit }));
    expect(reached).toMatch(/^hourly: 410 of 400 used, 0 left$.*^usage limit reached: hourly$/ms);
    const unnamed = formatCredits(viewCredits({ ...status, usageLimit: { isLimitReached: true } }));
    expect(unnamed).toMatch(/^usage limit reached$/m);
  });

  test('have the same in data', () => {
    const derived = { periodStartsOn: '2026-11-01', periodEndsOn: '2026-12-01', hourlyLeft: 80, dailyLeft: 540 };
    expect(viewCredits(status)).toEqual({ ...status, ...derived });
  });
});

test('an account has no nulls, and says whether it is of a team and that nobody is authenticated', () => {
  const known = { userId: 'u-1', billingUserId: 'u-2', isTeamMember: true, subscriptionStatus: 'active' };
  const user = { ...known, planId: null };
  expect(viewAccount(user)).toEqual(known);
  const identity = formatIdentity(viewIdentity({ authenticated: true, authSource: 'api_key', user }));
  expect(identity).toMatch(/^plan: none\nsubscription: active\na member of a team$/m);
  expect(formatIdentity(viewIdentity({ authenticated: false, authSource: 'none' }))).toMatch(/^not authenticated/);
});
