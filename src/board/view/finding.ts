import { countsOf } from '../../ui/bars.tsx';
import { countText, monthText, numberText } from '../../ui/formats.ts';
import { medianOf } from '../../views/numbers.ts';
import type { BoardAd } from '../payload.ts';

/** What stands out among ads: a sentence with the numbers it rests on, and what it leads to. */
export interface Finding {
  /** What stands before a name that others wrote, the name, and what stands after it. */
  sentence: readonly [before: string, name: string, after: string];
  opens: { message: string } | { ad: string } | { facet: 'month' | 'landing'; value: string };
}

/** A message: ads of one page whose copy is nearly the same. */
export const messageOf = ({ id, variant = id }: BoardAd): string => variant;

/** With fewer ads, a reader sees everything at a glance. */
export const minAds = 8;

interface Basis {
  /** An ISO date. */
  asOf: string;
  /** The ads are all that match, and no filter leaves some out for when they ran. */
  hasAllLaunches: boolean;
}

/** The first of the rules that finds something; undefined where nothing stands out. */
export function findingOf(ads: readonly BoardAd[], basis: Basis): Finding | undefined {
  if (ads.length < minAds) return undefined;
  return repeatedMessage(ads) ?? runThatGoesOn(ads) ?? changeOfLaunches(ads, basis) ?? sharedLandingPage(ads);
}

const nameOf = ({ pageName = 'One advertiser' }: BoardAd): string => pageName;

/** One message in at least four ads, and a tenth of all. */
function repeatedMessage(ads: readonly BoardAd[]): Finding | undefined {
  const [message = '', times = 0] = maxOf(countsOf(ads.map(messageOf)));
  if (times < 4 || times < ads.length / 10) return undefined;
  const group = ads.filter((ad) => messageOf(ad) === message);
  const longest = group.reduce((most, { daysRunning = 0 }) => Math.max(most, daysRunning), 0);
  const run = longest > 1 ? `; the longest has run ${countText(longest, 'day')}` : '';
  const after = ` repeats one message in ${numberText(times)} of ${countText(ads.length, 'ad')}${run}.`;
  return { sentence: ['', nameOf(group[0] as BoardAd), after], opens: { message } };
}

/** A run of at least thirty days that goes on, and is twice as long as half of the runs. */
function runThatGoesOn(ads: readonly BoardAd[]): Finding | undefined {
  const dated = ads.filter(({ daysRunning }) => daysRunning !== undefined);
  const median = medianOf(dated.map(({ daysRunning = 0 }) => daysRunning));
  const running = dated.filter(({ active }) => active === true);
  const first = running.reduce<BoardAd | undefined>(
    (longest, ad) => ((ad.daysRunning ?? 0) > (longest?.daysRunning ?? 0) ? ad : longest),
    undefined,
  );
  const days = first?.daysRunning ?? 0;
  if (first === undefined || dated.length < minAds || days < 30 || days <= 2 * median) return undefined;
  const rest = `half of ${countText(dated.length, 'ad')} ran ${countText(median, 'day')} or less`;
  const after = ` has run one ad for ${countText(days, 'day')} and still runs it; ${rest}.`;
  return { sentence: ['', nameOf(first), after], opens: { ad: first.id } };
}

/** From one full month to the next, in the last year: at least five launches, and twice as many as in the other. */
function changeOfLaunches(ads: readonly BoardAd[], { asOf, hasAllLaunches }: Basis): Finding | undefined {
  if (!hasAllLaunches) return undefined;
  const counts = countsOf(ads.map(({ startedAt }) => startedAt?.slice(0, 7)));
  // The first month may have begun before what is known, and the month of today has not ended.
  const [earliest = ''] = [...counts.keys()].sort();
  const months = Array.from({ length: 12 }, (_, ago) => monthBefore(asOf, ago + 1)).filter((month) => month > earliest);
  const pairs = months.slice(0, -1).map((month, at) => {
    const before = months[at + 1] ?? '';
    return { month, before, from: counts.get(before) ?? 0, to: counts.get(month) ?? 0 };
  });
  const [largest] = pairs.sort((a, b) => Math.abs(b.to - b.from) - Math.abs(a.to - a.from));
  if (largest === undefined) return undefined;
  const { month, before, from, to } = largest;
  if (Math.max(from, to) < 5 || Math.max(from, to) < 2 * Math.min(from, to)) return undefined;
  const start = `Launches ${to > from ? 'rose' : 'fell'} from ${numberText(from)} in ${monthText(before)}`;
  const value = to > from ? month : before;
  return {
    sentence: [`${start} to ${numberText(to)} in ${monthText(month)}.`, '', ''],
    opens: { facet: 'month', value },
  };
}

/** One landing page behind at least five messages. */
function sharedLandingPage(ads: readonly BoardAd[]): Finding | undefined {
  const messages = new Map<string, Set<string>>();
  for (const ad of ads)
    if (ad.landing) messages.set(ad.landing, (messages.get(ad.landing) ?? new Set()).add(messageOf(ad)));
  const [page = '', different = 0] = maxOf(new Map([...messages].map(([page, { size }]) => [page, size])));
  if (different < 5) return undefined;
  const leading = ads.filter(({ landing }) => landing === page).length;
  const rest = `in ${numberText(leading)} of ${countText(ads.length, 'ad')}`;
  const before = `${numberText(different)} different messages, ${rest}, lead to `;
  return { sentence: [before, page, '.'], opens: { facet: 'landing', value: page } };
}

const maxOf = (counts: ReadonlyMap<string, number>): [string, number] | [] =>
  [...counts].reduce<[string, number] | []>((most, one) => (one[1] > (most[1] ?? 0) ? one : most), []);

/** `2026-11-20` and 2 as `2026-09`. */
function monthBefore(iso: string, months: number): string {
  const time = Date.UTC(Number(iso.slice(0, 4)), Number(iso.slice(5, 7)) - 1 - months);
  return Number.isNaN(time) ? '' : new Date(time).toISOString().slice(0, 7);
}
