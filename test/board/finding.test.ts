import { expect, test } from 'vitest';
import type { BoardAd } from '../../src/board/payload.ts';
import { findingOf } from '../../src/board/view/finding.ts';
import { wordsThatDiffer } from '../../src/board/view/words-that-differ.ts';

const asOf = '2026-11-20T09:00:00Z';
const ads = (count: number, of: (index: number) => Partial<BoardAd> = () => ({})): BoardAd[] =>
  Array.from({ length: count }, (_, index) => ({ id: `${index}`, pageName: 'Serra', ...of(index) }));
const started = (...months: [month: string, ads: number][]): BoardAd[] => {
  const all = months.flatMap(([month, count]) => Array<string>(count).fill(`${month}-05T00:00:00Z`));
  return ads(all.length, (index) => ({ startedAt: all[index] ?? '' }));
};
const repeated = (of: number, times: number) =>
  ads(of, (index) => (index < times ? { variant: 'a', daysRunning: 10 * index } : {}));
const run = (days: number, active = true) => ads(9, (index) => ({ daysRunning: index === 4 ? days : 20, active }));
const leading = (messages: number) => ads(30, (index) => (index < messages ? { landing: 'serra.example/boots' } : {}));

test.each<[string, BoardAd[], string | undefined, object?]>([
  ['nothing', [], undefined],
  ['a few ads, though all the same', repeated(7, 7), undefined],
  ['ads of which none stands out', ads(200), undefined],
  [
    'a message in many ads',
    repeated(155, 24),
    'Serra repeats one message in 24 of 155 ads; the longest has run 230 days.',
    { message: 'a' },
  ],
  ['a message in less than a tenth', repeated(155, 15), undefined],
  ['a message in three ads', repeated(8, 3), undefined],
  [
    'a run that goes on',
    run(296),
    'Serra has run one ad for 296 days and still runs it; half of 9 ads ran 20 days or less.',
    { ad: '4' },
  ],
  ['a run that has ended', run(296, false), undefined],
  ['a run that is not twice the median', run(40), undefined],
  [
    'a rise of launches',
    started(['2026-06', 1], ['2026-09', 4], ['2026-10', 16], ['2026-11', 90]),
    'Launches rose from 4 in Sept 2026 to 16 in Oct 2026.',
    { facet: 'month', value: '2026-10' },
  ],
  [
    'a fall of launches',
    started(['2026-06', 1], ['2026-08', 9], ['2026-09', 9]),
    'Launches fell from 9 in Sept 2026 to 0 in Oct 2026.',
    { facet: 'month', value: '2026-09' },
  ],
  ['launches in the first month and in this one', started(['2026-10', 4], ['2026-11', 90]), undefined],
  [
    'a small change',
    started(['2026-06', 20], ['2026-07', 8], ['2026-08', 8], ['2026-09', 8], ['2026-10', 8]),
    undefined,
  ],
  [
    'a landing page of many messages',
    leading(6),
    '6 different messages, in 6 of 30 ads, lead to serra.example/boots.',
    { facet: 'landing', value: 'serra.example/boots' },
  ],
  ['a landing page of a few', leading(4), undefined],
])('of %s the board says what stands out, or nothing', (_, given, sentence, opens) => {
  const finding = findingOf(given, { asOf, hasAllLaunches: true });
  expect(finding?.sentence.join('').replace('Sep ', 'Sept ')).toBe(sentence);
  if (opens) expect(finding?.opens).toEqual(opens);
});

test('launches of a part, or of ads that a filter by time leaves, are compared with nothing', () => {
  const given = started(['2026-06', 1], ['2026-09', 4], ['2026-10', 16]);
  expect(findingOf(given, { asOf, hasAllLaunches: false })).toBeUndefined();
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
  // Where little is the same, marks would say nothing.
  [
    ['Meet the pillow', 'Why everyone is talking'],
    ['Meet the pillow', 'Why everyone is talking'],
  ],
  [
    ['', 'x'],
    ['', 'x'],
  ],
])('of %j the words that differ are marked', (texts, marked) => {
  const shown = wordsThatDiffer(texts).map((parts) =>
    parts.map(({ text, isDifferent }) => (isDifferent ? `[${text}]` : text)),
  );
  expect(shown.map((parts) => parts.join(''))).toEqual(marked);
});

test('the longest copy is compared in a moment, whatever it holds', () => {
  const copy = (word: string) => `${word} `.repeat(5000);
  const since = performance.now();
  wordsThatDiffer([copy('one'), copy('two'), Array.from({ length: 5000 }, (_, at) => at).join(' ')]);
  expect(performance.now() - since).toBeLessThan(5000);
});
