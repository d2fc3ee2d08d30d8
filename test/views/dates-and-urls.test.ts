import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { buildAdView, formatAd, formatAdList } from '../../src/views/ad.ts';
import { countDaysBetween } from '../../src/views/dates.ts';
import { computeRunningTime } from '../../src/views/days-running.ts';
import { cleanUrl, parseDomain, parseExpiry } from '../../src/views/urls.ts';
import { now } from './sample-ads.ts';

describe('How long an ad has been running', () => {
  const [startedAt, lastSeenAt, futureDay] = ['2026-11-01', '2026-11-10', '2027-01-01'];
  const late = { daysRunning: 9, daysSinceSeen: 10 };
  test.for<[string, object, object]>([
    [
      'days running count up to the end date if the end date is past',
      { startedAt: '2026-01-01', endDate: '2026-01-31', lastSeenAt: '2026-01-30' },
      { daysRunning: 30, stillRunning: false },
    ],
    ['the state of an ad last seen more than two days ago is unknown', { startedAt, lastSeenAt }, late],
    [
      'an ad that was seen in the last two days counts as running',
      { startedAt, lastSeenAt: '2026-11-19' },
      { daysRunning: 18, stillRunning: true, daysSinceSeen: 1 },
    ],
    [
      'an ad with an end date in the future counts as running',
      { startedAt, lastSeenAt, endDate: futureDay },
      { ...late, stillRunning: true },
    ],
    [
      'days running count up to the reading date if the last sighting is later',
      { startedAt, lastSeenAt: futureDay },
      { daysRunning: 19, stillRunning: true, daysSinceSeen: 0 },
    ],
    [
      'days running count up to the reading date if all other dates are in the future',
      { startedAt, lastSeenAt: futureDay, endDate: futureDay },
      { daysRunning: 19, stillRunning: true, daysSinceSeen: 0 },
    ],
    [
      'an ad that starts in the future has no days running',
      { startedAt: futureDay, lastSeenAt: '2027-01-05', endDate: '2027-02-01' },
      { stillRunning: true, daysSinceSeen: 0 },
    ],
    ['an ad without dates has no running time', {}, {}],
    ['texts and numbers that are not dates are ignored', { startedAt: 'soon', endDate: 5 }, {}],
    [
      'days running are missing if the last sighting is before the start',
      { startedAt: lastSeenAt, lastSeenAt: startedAt },
      { daysSinceSeen: 19 },
    ],
  ])('the running time of an ad is computed correctly: %s', ([, dates, run]) =>
    expect(computeRunningTime(dates, now)).toEqual(run),
  );

  test('the running days of an ad never include days after the date on which the ad was read', () => {
    const time = fc.integer({ min: -400, max: 400 }).map((hours) => new Date(now + hours * 3_600_000).toISOString());
    const dates = fc.record({ startedAt: time, lastSeenAt: time, endDate: time }, { requiredKeys: [] });
    fc.assert(
      fc.property(dates, (ad) => {
        const { daysRunning = 0, daysSinceSeen = 0 } = computeRunningTime(ad, now);
        const maxDays =
          ad.startedAt === undefined ? 0 : (countDaysBetween(ad.startedAt, new Date(now).toISOString()) ?? 0);
        expect(daysRunning).toBeLessThanOrEqual(maxDays);
        expect(daysSinceSeen).toBeGreaterThanOrEqual(0);
      }),
    );
  });

  test('the running days of an ad are counted as calendar days in UTC', () => {
    const oneNight = { startedAt: '2026-11-01T22:00:00Z', lastSeenAt: '2026-11-02T21:00:00Z' };
    expect(computeRunningTime(oneNight, now).daysRunning).toBe(1);
    for (const hour of [0, 12, 23])
      expect(computeRunningTime(oneNight, Date.UTC(2026, 10, 20, hour)).daysSinceSeen).toBe(18);
    const oneDay = { startedAt: '2026-11-02T22:00:00Z', lastSeenAt: '2026-11-02T21:00:00Z' };
    expect(computeRunningTime(oneDay, now).daysRunning).toBe(0);
  });

  test('an ad shows the same number of running days in a list as in its own view', () => {
    const ad = { id: 'a', startedAt: '2026-06-01T01:00:00Z', lastSeenAt: '2026-06-30T23:30:00Z' };
    const list = formatAdList({ items: [buildAdView(ad, { detail: 'brief', now })], asOf: '2026-11-20' });
    const alone = formatAd(buildAdView(ad, { detail: 'standard', now }));
    for (const text of [list, alone]) expect(text).toContain('(29 days, seen 143 days ago)');
  });

  test('the text about the running time of an ad mentions only dates that are known', () => {
    const formatRun = (dates: object) =>
      formatAd(buildAdView({ id: 'a', ...dates }, { detail: 'standard', now })).split('\n')[2];
    expect(formatRun({ startedAt: '2026-11-01' })).toBe('since 2026-11-01');
    expect(formatRun({ endDate: '2026-11-01' })).toBe('ended 2026-11-01 (ended)');
    expect(formatRun({ endDate: '2027-11-01' })).toBe('ends 2027-11-01 (running)');
    expect(formatRun({ lastSeenAt: '2026-11-10' })).toBe('last seen 2026-11-10 (seen 10 days ago)');
    expect(formatRun({ startedAt: '2026-11-01', endDate: '2026-11-09', lastSeenAt: '2026-11-08' })).toBe(
      '2026-11-01–2026-11-09 (8 days, ended, last seen 2026-11-08)',
    );
  });

  test.each([
    ...['2026-02-30', '2026-02-29T10:00:00Z', '2026-04-31 10:00:00', '2026-11-31T23:30:00-05:00'],
    ...['30 Feb 2026', '2026/02/30', '02/30/2026', 'Tue, 31 Nov 2026 23:30:30 GMT-0500', 'Feb 29, 2026'],
  ])('the date %s is treated like a text that is not a date, because this day does not exist', (date) => {
    const formatWithDate = (date: string) => {
      const ad = { id: 'a', startedAt: date, lastSeenAt: date, endDate: date };
      const listedAd = buildAdView(ad, { detail: 'brief', now });
      return [
        formatAdList({ items: [listedAd], asOf: '2026-11-20' }),
        formatAd(buildAdView(ad, { detail: 'standard', now })),
        computeRunningTime(ad, now),
      ];
    };
    expect(formatWithDate(date)).toEqual(formatWithDate('soon'));
  });

  test('the last day of each month is shown, also in a leap year', () => {
    for (const [startedAt, day] of [
      ...[['2024-02-29'], ['2026-01-31T23:59:59.999Z'], ['2026-04-30'], ['29 Feb 2024', '2024-02-29']],
      ['Thu, 30 Apr 2026 23:30:31 GMT-0500', '2026-05-01'],
    ] as [startedAt: string, day?: string][])
      expect(formatAd(buildAdView({ id: 'a', startedAt }, { detail: 'standard', now }))).toContain(
        `since ${day ?? startedAt.slice(0, 10)}`,
      );
  });

  test('an ad list omits the time since an ad was last seen if the ad was last seen after the date of the list', () => {
    const ad = buildAdView({ id: 'a', lastSeenAt: '2026-11-10' }, { detail: 'brief', now });
    expect(formatAdList({ items: [ad], asOf: '2026-11-05' })).not.toContain('ago');
  });
});

describe('The URLs in an ad', () => {
  test('the domain of a URL is shown without its prefix www', () => {
    const otherNotations = ['HTTP://WWW.SERRA.EXAMPLE', 'https://user:secret@serra.example:8443/', '//serra.example'];
    for (const address of ['https://www.serra.example/boots?x=1', 'serra.example/boots', ...otherNotations])
      expect(parseDomain(address)).toBe('serra.example');
    for (const invalidUrl of ['', null, `https://${'a'.repeat(250)}.example/`, `https://${'a.'.repeat(600)}example/`])
      expect(parseDomain(invalidUrl)).toBeUndefined();
    expect(parseDomain(`https://${'a.'.repeat(120)}example/`)).toBe(`${'a.'.repeat(120)}example`);
  });

  const tracked = 'p?id=7&utm_source=fb&fbclid=1&c={{campaign.name}}&gclid=x&size=42#reviews';
  test.each([
    ['without tracking parameters, macros and fragments', tracked, 'p?id=7&size=42'],
    ['without a query if it only has tracking parameters', '?utm_medium=cpc', ''],
    ['with letters instead of percent codes, but with encoded spaces', '%EB%B6%80%EC%B8%A0%20a', '부츠%20a'],
    ['unchanged if its percent codes are invalid', '%E0%A4%A', '%E0%A4%A'],
  ])('a result shows the URL of an ad in a readable form: %s', (_, path, shownUrl) =>
    expect(cleanUrl(`https://serra.example/${path}`, 60)).toBe(`https://serra.example/${shownUrl}`),
  );

  test('a URL that is shortened in a result shows how many characters are missing', () => {
    const address = `https://serra.example/${'boots/'.repeat(3000)}`;
    const [, keptText = '', missing] = /^(.*)… \(\+(\d+) chars\)$/.exec(cleanUrl(address, 30) ?? '') ?? [];
    expect(keptText.length + Number(missing)).toBe(address.length);
  });

  test('a URL or domain is shown with a limited length, no matter how long the URL is', () => {
    fc.assert(
      fc.property(fc.oneof(fc.webUrl({ withQueryParameters: true }), fc.string({ unit: 'binary' })), (address) => {
        expect(cleanUrl(address.repeat(50), 30)?.length ?? 0).toBeLessThan(200);
        expect(parseDomain(address) ?? '').not.toMatch(/[\s/]/);
      }),
    );
  });
});

test('the expiry date of a signed media URL is read from the parameters of the URL', () => {
  expect(parseExpiry('https://m.example/v.mp4?_nc=1&oe=68000000')).toBe(0x68000000 * 1000);
  expect(parseExpiry('https://m.example/v.mp4?Expires=1700000000&Signature=x')).toBe(1_700_000_000_000);
  expect(parseExpiry('https://m.example/v?X-Amz-Date=20260101T000000Z&X-Amz-Expires=3600')).toBe(
    Date.UTC(2026, 0, 1, 1),
  );
  expect(parseExpiry('https://m.example/v.mp4')).toBeUndefined();
});
