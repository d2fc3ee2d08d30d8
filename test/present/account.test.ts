import { describe, expect, test } from 'vitest';
import {
  collectionListText,
  creditsText,
  identityText,
  viewAccount,
  viewCollection,
  viewCredits,
  viewIdentity,
} from '../../src/present/account.ts';

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

  test('say what is left in words, and until when', () => {
    expect(creditsText(viewCredits(status))).toMatchInlineSnapshot(`
      "credits left: 640 of 1,000
      period: 2026-11-01 to 2026-12-01
      hourly: 320 of 400 used, 80 left
      daily: 360 of 900 used, 540 left
      usage limit not reached
      plan: pro
      billed to user: u-1"
    `);
  });

  test('say which limit is reached, as far as the service says it', () => {
    const usageLimit = { ...status.usageLimit, isLimitReached: true, limitType: 'hourly', hourlyCredits: 410 };
    const reached = creditsText(viewCredits({ ...status, usageLimit }));
    expect(reached).toMatch(/^hourly: 410 of 400 used, 0 left$.*^usage limit reached: hourly$/ms);
    const unnamed = creditsText(viewCredits({ ...status, usageLimit: { isLimitReached: true } }));
    expect(unnamed).toMatch(/^usage limit reached$/m);
  });

  test('have the same in data', () => {
    const derived = { periodStartsOn: '2026-11-01', periodEndsOn: '2026-12-01', hourlyLeft: 80, dailyLeft: 540 };
    expect(viewCredits(status)).toEqual({ ...status, ...derived });
  });
});

describe('account and identity', () => {
  const user = { userId: 'u-1', billingUserId: 'u-2', planId: null, isTeamMember: true, subscriptionStatus: 'active' };

  test('have no nulls', () => {
    const { planId: _, ...known } = user;
    expect(viewAccount(user)).toEqual(known);
  });

  test('say so where nobody is authenticated', () => {
    expect(identityText(viewIdentity({ authenticated: false, authSource: 'none' }))).toMatch(/^not authenticated/);
  });

  test('say whose key it is', () => {
    const identity = {
      authenticated: true,
      authSource: 'api_key',
      user: { ...user, name: 'Ana "the boss"\nLima', emailAddress: null },
      apiKey: { id: 'k-1', name: 'laptop', keyPrefix: 'svc_live_ab' },
      oauthClientId: null,
    };
    expect(identityText(viewIdentity(identity))).toMatchInlineSnapshot(`
      "authenticated by: api_key
      name: "Ana 'the boss' Lima"
      account of user: u-1
      billed to user: u-2
      plan: none
      subscription: active
      a member of a team
      key: laptop
      key id: k-1
      key starts with: svc_live_ab"
    `);
  });
});

const counts = { adCount: 12, pageCount: 3, isDefault: true, defaultType: 'saved', isOwner: false };
const id = 'c0ffee00-0000-4000-8000-000000000001';
const collection = viewCollection({ id, name: 'Autumn ideas', type: 'manual', ...counts });

test('a collection reads as one line with name, id, counts and owner', () => {
  expect(collectionListText({ items: [collection] })).toBe(
    '1 collection.\n1. "Autumn ideas" c0ffee00-0000-4000-8000-000000000001 12 ads, 3 pages, type manual, default saved, someone else\'s',
  );
});
