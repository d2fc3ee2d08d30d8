import { describe, expect, test } from 'vitest';
import { viewAd } from '../../src/present/ad.ts';
import { adListText, adText } from '../../src/present/ad-text.ts';
import { dayOf, runOf } from '../../src/present/values.ts';
import { now } from './sample-ads.ts';

describe('how long an ad has run', () => {
  test('counts to the end date once that is past, and says it ended', () => {
    expect(runOf({ startedAt: '2026-01-01', endDate: '2026-01-31', lastSeenAt: '2026-01-30' }, now)).toEqual({
      daysRunning: 30,
      stillRunning: false,
    });
  });

  test('counts to the last time it was seen, and claims nothing when that was long ago', () => {
    expect(runOf({ startedAt: '2026-11-01', lastSeenAt: '2026-11-10' }, now)).toEqual({
      daysRunning: 9,
      daysSinceSeen: 10,
    });
  });

  test('says it runs when it was seen in the last two days or ends in the future', () => {
    expect(runOf({ startedAt: '2026-11-01', lastSeenAt: '2026-11-19' }, now).stillRunning).toBe(true);
    expect(runOf({ startedAt: '2026-11-01', lastSeenAt: '2026-11-10', endDate: '2027-01-01' }, now)).toMatchObject({
      daysRunning: 9,
      stillRunning: true,
    });
  });

  test('counts calendar days, in the evening as in the morning', () => {
    const oneNight = { startedAt: '2026-11-01T22:00:00Z', lastSeenAt: '2026-11-02T21:00:00Z' };
    expect(runOf(oneNight, now).daysRunning).toBe(1);
    for (const hour of [0, 12, 23]) expect(runOf(oneNight, Date.UTC(2026, 10, 20, hour)).daysSinceSeen).toBe(18);
    const oneDay = { startedAt: '2026-11-02T22:00:00Z', lastSeenAt: '2026-11-02T21:00:00Z' };
    expect(runOf(oneDay, now).daysRunning).toBe(0);
  });

  test('says the same of an ad in a list and alone', () => {
    const ad = { id: 'a', startedAt: '2026-06-01T01:00:00Z', lastSeenAt: '2026-06-30T23:30:00Z' };
    const list = adListText({ items: [viewAd(ad, { detail: 'brief', now })], asOf: '2026-11-20' });
    const alone = adText(viewAd(ad, { detail: 'standard', now }));
    for (const text of [list, alone]) expect(text).toContain('(29 days, seen 143 days ago)');
  });

  test('says which of its dates are known, where not all of them are', () => {
    const said = (dates: object) => adText(viewAd({ id: 'a', ...dates }, { detail: 'standard', now })).split('\n')[2];
    expect(said({ startedAt: '2026-11-01' })).toBe('since 2026-11-01');
    expect(said({ endDate: '2026-11-01' })).toBe('ended 2026-11-01 (ended)');
    expect(said({ lastSeenAt: '2026-11-10' })).toBe('last seen 2026-11-10 (seen 10 days ago)');
    expect(said({ startedAt: '2026-11-01', endDate: '2026-11-09', lastSeenAt: '2026-11-08' })).toBe(
      '2026-11-01–2026-11-09 (8 days, ended, last seen 2026-11-08)',
    );
  });

  test('does not count days since an ad was seen that lie before the day of the list', () => {
    const ad = viewAd({ id: 'a', lastSeenAt: '2026-11-10' }, { detail: 'brief', now });
    expect(adListText({ items: [ad], asOf: '2026-11-05' })).not.toContain('ago');
  });

  test('says nothing of dates that are missing or make no sense', () => {
    expect(runOf({}, now)).toEqual({});
    expect(runOf({ startedAt: 'soon', endDate: 5 }, now)).toEqual({});
    expect(runOf({ startedAt: '2026-11-10', lastSeenAt: '2026-11-01' }, now).daysRunning).toBeUndefined();
  });

  test('shows days as the API writes them', () => {
    expect(dayOf('2026-07-01T23:59:00.000Z')).toBe('2026-07-01');
    expect(dayOf('never')).toBeUndefined();
  });
});
