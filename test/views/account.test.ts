import { describe, expect, test } from 'vitest';
import {
  buildAccountView,
  buildCreditsView,
  buildIdentityView,
  formatCredits,
  formatIdentity,
} from '../../src/views/account.ts';

/** Covers special cases only. docs/tools.md shows an ordinary account, which another test compares. */
describe('The text view of the credit status', () => {
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

  test('the result text about credits says which usage limit is reached', () => {
    const usageLimit = { ...status.usageLimit, isLimitReached: true, limitType: 'hourly', hourlyCredits: 410 };
    const reached = formatCredits(buildCreditsView({ ...status, usageLimit }));
    expect(reached).toMatch(/^hourly: 410 of 400 used, 0 left$.*^usage limit reached: hourly$/ms);
    const unnamed = formatCredits(buildCreditsView({ ...status, usageLimit: { isLimitReached: true } }));
    expect(unnamed).toMatch(/^usage limit reached$/m);
  });

  test('the result data about credits contains the dates of the billing period and the credits left in each limit', () => {
    const derived = { periodStartsOn: '2026-11-01', periodEndsOn: '2026-12-01', hourlyLeft: 80, dailyLeft: 540 };
    expect(buildCreditsView(status)).toEqual({ ...status, ...derived });
  });

  test('the credits left in a usage limit have no floating-point error', () => {
    const creditsView = buildCreditsView({ ...status, usageLimit: { ...status.usageLimit, hourlyCredits: 320.3 } });
    expect(creditsView.hourlyLeft).toBe(79.7);
    expect(formatCredits(creditsView)).toContain('hourly: 320.3 of 400 used, 79.7 left');
  });
});

test('the result text about an account leaves out null fields and mentions team membership', () => {
  const knownFields = { userId: 'u-1', billingUserId: 'u-2', isTeamMember: true, subscriptionStatus: 'active' };
  const user = { ...knownFields, planId: null };
  expect(buildAccountView(user)).toEqual(knownFields);
  const identity = formatIdentity(buildIdentityView({ authenticated: true, authSource: 'api_key', user }));
  expect(identity).toMatch(/^plan: none\nsubscription: active\na member of a team$/m);
  expect(formatIdentity(buildIdentityView({ authenticated: false, authSource: 'none' }))).toMatch(/^not authenticated/);
});
