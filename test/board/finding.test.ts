import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { BriefAd } from '../../src/board/payload.ts';
import { type Finding, getVariantId, minAdsForOverview, selectFinding } from '../../src/board/view/finding.ts';
import { markDifferences } from '../../src/board/view/text-differences.ts';
import { createFormatters } from '../../src/ui/formats.ts';

const readAt = '2026-11-20T09:00:00Z';
const formatters = createFormatters('en');
const completeContext = { readAt, hasAllLaunches: true, formatters };
const createAdsOnDays = (
  count: number,
  adAt: (index: number) => Partial<BriefAd> = () => ({}),
  name = 'Serra',
): BriefAd[] =>
  Array.from({ length: count }, (_, index) => ({ id: `${name} ${index}`, pageName: name, ...adAt(index) }));
const startOn = (...months: [month: string, ads: number][]): BriefAd[] => {
  const all = months.flatMap(([month, count]) => Array<string>(count).fill(`${month}-05T00:00:00Z`));
  return createAdsOnDays(all.length, (index) => ({ startedAt: all[index] ?? '' }));
};
const repeated = (count: number, times: number, name = 'Serra') =>
  createAdsOnDays(count, (index) => (index < times ? { variant: name, daysRunning: 10 * index } : {}), name);
const computeFinding = (days: number, active?: boolean) =>
  createAdsOnDays(9, (index) => ({ daysRunning: index === 4 ? days : 20, ...(active !== undefined && { active }) }));
const computeLeadingFinding = (messages: number) =>
  createAdsOnDays(30, (index) => (index < messages ? { landing: 'serra.example/boots' } : {}));

const readText = ({ sentenceParts }: Finding) =>
  sentenceParts.map((part) => (typeof part === 'string' ? part : part.name)).join('');
/** Some Node.js versions abbreviate September as "Sep", others as "Sept". */
const normalizeSpelling = (text: string) => text.replaceAll('Sep ', 'Sept ');

describe('The key finding above the ads on the board', () => {
  test.each<[string, BriefAd[], string | undefined, object?]>([
    ['no ads', [], undefined],
    ['seven ads, though all are the same', repeated(7, 7), undefined],
    ['ads of which none stands out', createAdsOnDays(200), undefined],
    ['ads without an advertiser', repeated(20, 20).map(({ pageName: _, ...ad }) => ad), undefined],
    [
      'a message in many ads',
      repeated(155, 24),
      'Serra repeats one message in 24 of its 155 ads here; the longest ran 230 days.',
      { variant: 'Serra' },
    ],
    ['a message in less than a tenth', repeated(155, 15), undefined],
    ['a message in three ads', repeated(8, 3), undefined],
    [
      'a message of one advertiser among the many ads of others',
      [...createAdsOnDays(800, () => ({}), 'Other'), ...repeated(32, 10)],
      'Serra repeats one message in 10 of its 32 ads here; the longest ran 90 days.',
      { variant: 'Serra' },
    ],
    [
      'a run that goes on',
      computeFinding(296, true),
      'Serra has run one ad for 296 days and still runs it; half of its 9 ads here ran 20 days or less.',
      { ad: 'Serra 4' },
    ],
    [
      'a run beside ads whose days are unknown',
      [...computeFinding(296, true), ...createAdsOnDays(20).map((ad) => ({ ...ad, id: `more ${ad.id}` }))],
      'Serra has run one ad for 296 days and still runs it; half of its 9 ads here with known days ran 20 days or less.',
      { ad: 'Serra 4' },
    ],
    [
      'a run of which it is unknown whether it goes on',
      computeFinding(296),
      'Serra has run one ad for 296 days or more; half of its 9 ads here ran 20 days or less.',
      { ad: 'Serra 4' },
    ],
    ['a run that has ended', computeFinding(296, false), undefined],
    ['a run that is not twice the median', computeFinding(40, true), undefined],
    [
      'a rise of launches',
      startOn(['2026-06', 1], ['2026-09', 4], ['2026-10', 16], ['2026-11', 90]),
      'Launches of Serra rose from 4 in Sept 2026 to 16 in Oct 2026.',
      { values: { advertiser: 'Serra', month: '2026-10' } },
    ],
    [
      'a fall of launches',
      startOn(['2026-06', 1], ['2026-08', 9], ['2026-09', 9]),
      'Launches of Serra fell from 9 in Sept 2026 to 0 in Oct 2026.',
      { values: { advertiser: 'Serra', month: '2026-09' } },
    ],
    [
      'launches in the first month and in the month of the reading',
      startOn(['2026-10', 4], ['2026-11', 90]),
      undefined,
    ],
    [
      'a small change of launches',
      startOn(['2026-06', 20], ['2026-07', 8], ['2026-08', 8], ['2026-09', 8], ['2026-10', 8]),
      undefined,
    ],
    [
      'a landing page of many messages',
      computeLeadingFinding(6),
      'Serra leads 6 different messages, in 6 of its 30 ads here, to serra.example/boots.',
      { values: { advertiser: 'Serra', landing: 'serra.example/boots' } },
    ],
    ['a landing page of a few messages', computeLeadingFinding(4), undefined],
  ])('the key finding of the ad board (a sentence above the ads) has the expected text: %s', (_, ads, text, opens) => {
    const finding = selectFinding(ads, completeContext);
    expect(finding && normalizeSpelling(readText(finding))).toBe(text);
    if (opens) expect(finding?.clickTarget).toEqual(opens);
  });

  test('the ad board does not add up the ads of two advertiser pages with the same name', () => {
    const createPage = (pageId: string, count: number) =>
      startOn(['2026-06', 1], ['2026-09', count], ['2026-10', 4]).map((ad) => ({
        ...ad,
        id: `${pageId} ${ad.id}`,
        pageId,
      }));
    const finding = selectFinding([...createPage('11', 4), ...createPage('22', 16)], completeContext);
    expect(finding && normalizeSpelling(readText(finding))).toBe(
      'Launches of Serra (page 22) rose from 0 in Aug 2026 to 16 in Sept 2026.',
    );
    expect(finding?.clickTarget).toEqual({ values: { advertiser: '22', month: '2026-09' } });
  });

  test('the ad board does not compare the ad launches of two months while a filter hides some of the ads', () => {
    const ads = startOn(['2026-06', 1], ['2026-09', 4], ['2026-10', 16]);
    expect(selectFinding(ads, { ...completeContext, hasAllLaunches: false })).toBeUndefined();
  });

  test('the ad board does not compare the ad launches of two months if the date on which the ads were read is unknown', () => {
    const ads = startOn(['2026-06', 1], ['2026-09', 4], ['2026-10', 16]);
    expect(selectFinding(ads, { ...completeContext, readAt: undefined })).toBeUndefined();
  });

  test('the ad board reports no fall in ad launches for a month that was not over when the ads were read', () => {
    const ads = startOn(['2026-06', 1], ['2026-07', 8], ['2026-08', 10], ['2026-09', 4]);
    for (const day of ['2026-09-01', '2026-09-10', '2026-09-30'])
      expect(selectFinding(ads, { ...completeContext, readAt: `${day}T08:00:00Z` })?.clickTarget).toBeUndefined();
  });

  test('the ad board does not compare the ad launches of two months if no ad was seen in the months before the ads were read', () => {
    const createLastSeenAds = (day: string) =>
      startOn(['2026-03', 1], ['2026-04', 4], ['2026-05', 16]).map((ad) => ({ ...ad, lastSeenAt: `${day}T00:00:00Z` }));
    expect(selectFinding(createLastSeenAds('2026-07-01'), completeContext)).toBeUndefined();
    expect(selectFinding(createLastSeenAds('2026-11-20'), completeContext)).toBeDefined();
  });

  test('the numbers in the key finding of the ad board (a sentence above the ads) match the ads on the board', () => {
    const month = fc.constantFrom('2026-05', '2026-06', '2026-07', '2026-08', '2026-09', '2026-10', '2026-11');
    const anyAd = fc.record({
      pageName: fc.constantFrom('Serra', 'Acme'),
      variant: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
      landing: fc.constantFrom('x.example', 'y.example'),
      startedAt: month.map((one) => `${one}-05`),
      lastSeenAt: month.map((one) => `${one}-20`),
      daysRunning: fc.integer({ min: 0, max: 300 }),
      active: fc.boolean(),
    });
    const board = fc.array(anyAd, { minLength: minAdsForOverview, maxLength: 60 });
    const messages = fc.constantFrom(true, false);
    fc.assert(
      fc.property(board, messages, (drawn, areDifferent) => {
        const ads = drawn.map(({ variant, ...ad }, at): BriefAd => {
          const message = areDifferent ? {} : { variant: `${ad.pageName} ${variant}` };
          return { id: `${at}`, ...ad, ...message };
        });
        const finding = selectFinding(ads, completeContext);
        if (finding === undefined) return;
        const [name] = finding.sentenceParts.flatMap((part) => (typeof part === 'string' ? [] : [part.name]));
        const adsOfAdvertiser = ads.filter(({ pageName }) => pageName === name);
        const { clickTarget } = finding;
        const text = readText(finding);
        if ('variant' in clickTarget)
          expect(text).toContain(
            `in ${adsOfAdvertiser.filter((ad) => getVariantId(ad) === clickTarget.variant).length} of its ${adsOfAdvertiser.length} `,
          );
        else if ('ad' in clickTarget)
          expect(text).toContain(`for ${adsOfAdvertiser.find(({ id }) => id === clickTarget.ad)?.daysRunning} days`);
        else if (clickTarget.values.landing)
          expect(text).toContain(
            `in ${adsOfAdvertiser.filter(({ landing }) => landing === clickTarget.values.landing).length} of its`,
          );
        else {
          const inMonth = adsOfAdvertiser.filter(({ startedAt }) =>
            startedAt?.startsWith(clickTarget.values.month ?? '-'),
          ).length;
          expect(text).toMatch(new RegExp(`(?:from|to) ${inMonth} in`));
        }
      }),
    );
  });
});

test.each<[string[], string[]]>([
  [
    ['Free shipping on all boots', 'Free returns on all boots'],
    ['Free [shipping] on all boots', 'Free [returns] on all boots'],
  ],
  [
    ['one two three four', 'one two three four five six', 'one two zwei four'],
    ['one two [three] four', 'one two three four[ five six]', 'one two [zwei] four'],
  ],
  [
    ['今日優惠月牙餐盤', '今日優惠青瓷餐盤'],
    ['今日優惠[月牙]餐盤', '今日優惠[青瓷]餐盤'],
  ],
  // Texts with few words in common get no marks, because almost every word would be marked.
  [
    ['Meet the pillow', 'Why everyone is talking'],
    ['Meet the pillow', 'Why everyone is talking'],
  ],
  [
    ['', 'x'],
    ['', 'x'],
  ],
])('the word comparison on the ad board highlights the words that differ between the texts %j', (texts, marked) => {
  const markedTexts = markDifferences(texts).map((parts) =>
    parts.map(({ text, isDifferent }) => (isDifferent ? `[${text}]` : text)),
  );
  expect(markedTexts.map((parts) => parts.join(''))).toEqual(marked);
});

test('the word comparison of two ad texts of the maximum size takes less than five seconds', () => {
  const writeAdText = (word: string) => `${word} `.repeat(5000);
  const since = performance.now();
  markDifferences([writeAdText('one'), writeAdText('two'), Array.from({ length: 5000 }, (_, at) => at).join(' ')]);
  expect(performance.now() - since).toBeLessThan(5000);
});
