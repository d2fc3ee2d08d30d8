import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatAd, formatAdList, viewAd } from '../../src/views/ad.ts';
import { computeRun, countDaysBetween } from '../../src/views/dates.ts';
import { cleanUrl, parseDomain, parseExpiry } from '../../src/views/urls.ts';
import { now } from './sample-ads.ts';

describe('runOf', () => {
  const [startedAt, lastSeenAt, later] = ['2026-11-01', '2026-11-10', '2027-01-01'];
  const late = { daysRunning: 9, daysSinceSeen: 10 };
  test.for<[string, object, object]>([
    [
      'counts days to the end date if the end date is past',
      { startedAt: '2026-01-01', endDate: '2026-01-31', lastSeenAt: '2026-01-30' },
      { daysRunning: 30, stillRunning: false },
    ],
    ['leaves the state of an ad open that was last seen more than two days ago', { startedAt, lastSeenAt }, late],
    [
      'says that an ad runs that was seen in the last two days',
      { startedAt, lastSeenAt: '2026-11-19' },
      { daysRunning: 18, stillRunning: true, daysSinceSeen: 1 },
    ],
    [
      'says that an ad runs whose end date is in the future',
      { startedAt, lastSeenAt, endDate: later },
      { ...late, stillRunning: true },
    ],
    [
      'counts days to the reading if the ad claims to be seen later',
      { startedAt, lastSeenAt: later },
      { daysRunning: 19, stillRunning: true, daysSinceSeen: 0 },
    ],
    [
      'counts days to the reading if both the end and the last sighting are in the future',
      { startedAt, lastSeenAt: later, endDate: later },
      { daysRunning: 19, stillRunning: true, daysSinceSeen: 0 },
    ],
    [
      'counts no days for an ad that starts in the future',
      { startedAt: later, lastSeenAt: '2027-01-05', endDate: '2027-02-01' },
      { stillRunning: true, daysSinceSeen: 0 },
    ],
    ['says nothing of an ad without dates', {}, {}],
    ['says nothing of texts and numbers that are no dates', { startedAt: 'soon', endDate: 5 }, {}],
    [
      'counts no negative days if the last sighting is before the start',
      { startedAt: lastSeenAt, lastSeenAt: startedAt },
      { daysSinceSeen: 19 },
    ],
  ])('%s', ([, dates, run]) => expect(computeRun(dates, now)).toEqual(run));

  test('never counts a day after the reading', () => {
    const time = fc.integer({ min: -400, max: 400 }).map((hours) => new Date(now + hours * 3_600_000).toISOString());
    const dates = fc.record({ startedAt: time, lastSeenAt: time, endDate: time }, { requiredKeys: [] });
    fc.assert(
      fc.property(dates, (ad) => {
        const { daysRunning = 0, daysSinceSeen = 0 } = computeRun(ad, now);
        const most =
          ad.startedAt === undefined ? 0 : (countDaysBetween(ad.startedAt, new Date(now).toISOString()) ?? 0);
        expect(daysRunning).toBeLessThanOrEqual(most);
        expect(daysSinceSeen).toBeGreaterThanOrEqual(0);
      }),
    );
  });

  test('counts calendar days, in the evening as in the morning', () => {
    const oneNight = { startedAt: '2026-11-01T22:00:00Z', lastSeenAt: '2026-11-02T21:00:00Z' };
    expect(computeRun(oneNight, now).daysRunning).toBe(1);
    for (const hour of [0, 12, 23]) expect(computeRun(oneNight, Date.UTC(2026, 10, 20, hour)).daysSinceSeen).toBe(18);
    const oneDay = { startedAt: '2026-11-02T22:00:00Z', lastSeenAt: '2026-11-02T21:00:00Z' };
    expect(computeRun(oneDay, now).daysRunning).toBe(0);
  });

  test('says the same of an ad in a list and alone', () => {
    const ad = { id: 'a', startedAt: '2026-06-01T01:00:00Z', lastSeenAt: '2026-06-30T23:30:00Z' };
    const list = formatAdList({ items: [viewAd(ad, { detail: 'brief', now })], asOf: '2026-11-20' });
    const alone = formatAd(viewAd(ad, { detail: 'standard', now }));
    for (const text of [list, alone]) expect(text).toContain('(29 days, seen 143 days ago)');
  });

  test('says which of its dates are known, where not all of them are', () => {
    const said = (dates: object) => formatAd(viewAd({ id: 'a', ...dates }, { detail: 'standard', now })).split('\n')[2];
    expect(said({ startedAt: '2026-11-01' })).toBe('since 2026-11-01');
    expect(said({ endDate: '2026-11-01' })).toBe('ended 2026-11-01 (ended)');
    expect(said({ lastSeenAt: '2026-11-10' })).toBe('last seen 2026-11-10 (seen 10 days ago)');
    expect(said({ startedAt: '2026-11-01', endDate: '2026-11-09', lastSeenAt: '2026-11-08' })).toBe(
      '2026-11-01–2026-11-09 (8 days, ended, last seen 2026-11-08)',
    );
  });

  test('does not count days since an ad was seen that lie before the day of the list', () => {
    const ad = viewAd({ id: 'a', lastSeenAt: '2026-11-10' }, { detail: 'brief', now });
    expect(formatAdList({ items: [ad], asOf: '2026-11-05' })).not.toContain('ago');
  });
});

describe('where an ad leads', () => {
  test('is a domain without www, however the address is written, and none where it is longer than a name can be', () => {
    const other = ['HTTP://WWW.SERRA.EXAMPLE', 'https://user:secret@serra.example:8443/', '//serra.example'];
    for (const address of ['https://www.serra.example/boots?x=1', 'serra.example/boots', ...other])
      expect(parseDomain(address)).toBe('serra.example');
    for (const none of ['', null, `https://${'a'.repeat(250)}.example/`, `https://${'a.'.repeat(600)}example/`])
      expect(parseDomain(none)).toBeUndefined();
    expect(parseDomain(`https://${'a.'.repeat(120)}example/`)).toBe(`${'a.'.repeat(120)}example`);
  });

  const tracked = 'p?id=7&utm_source=fb&fbclid=1&c={{campaign.name}}&gclid=x&size=42#reviews';
  test.each([
    ['without tracking, macros and fragments, with what the page needs', tracked, 'p?id=7&size=42'],
    ['without a query that is tracking alone', '?utm_medium=cpc', ''],
    ['readable where the path is percent-coded, as one word', '%EB%B6%80%EC%B8%A0%20a', '부츠%20a'],
    ['as it is where the coding is broken', '%E0%A4%A', '%E0%A4%A'],
  ])('is shown %s', (_, path, shown) =>
    expect(cleanUrl(`https://serra.example/${path}`, 60)).toBe(`https://serra.example/${shown}`),
  );

  test('says how much of a long address is missing, what was not looked at included', () => {
    const address = `https://serra.example/${'boots/'.repeat(3000)}`;
    const [, kept = '', missing] = /^(.*)… \(\+(\d+) chars\)$/.exec(cleanUrl(address, 30) ?? '') ?? [];
    expect(kept.length + Number(missing)).toBe(address.length);
  });

  test('is bounded', () => {
    fc.assert(
      fc.property(fc.oneof(fc.webUrl({ withQueryParameters: true }), fc.string({ unit: 'binary' })), (address) => {
        expect(cleanUrl(address.repeat(50), 30)?.length ?? 0).toBeLessThan(200);
        expect(parseDomain(address) ?? '').not.toMatch(/[\s/]/);
      }),
    );
  });
});

test('a signed address says when it ends, in three dialects', () => {
  expect(parseExpiry('https://m.example/v.mp4?_nc=1&oe=68000000')).toBe(0x68000000 * 1000);
  expect(parseExpiry('https://m.example/v.mp4?Expires=1700000000&Signature=x')).toBe(1_700_000_000_000);
  expect(parseExpiry('https://m.example/v?X-Amz-Date=20260101T000000Z&X-Amz-Expires=3600')).toBe(
    Date.UTC(2026, 0, 1, 1),
  );
  expect(parseExpiry('https://m.example/v.mp4')).toBeUndefined();
});
