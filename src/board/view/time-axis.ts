import type { BoardAd } from '../payload.ts';

/** One axis for the runs of all ads, so that bars can be compared. */
export interface TimeAxis {
  from: number;
  to: number;
}

/** A run as fractions of the axis; undefined if its dates are not known. */
export interface Bar {
  start: number;
  length: number;
  /** It began before the axis does. */
  isCut: boolean;
}

const DAY = 86_400_000;

export const dayOf = (iso: string | undefined): number => Date.parse(iso?.slice(0, 10) ?? '');

/** When an ad was last known to run. */
const endOf = ({ endDate, lastSeenAt, active }: BoardAd): number => dayOf(active === false ? endDate : lastSeenAt);

/** Ends today at the latest, where that is known. Begins with the first ad, or after the oldest twentieth where a few old ads would squeeze all the others. */
export function axisOf(ads: readonly BoardAd[], today: string): TimeAxis {
  const end = dayOf(today) || Number.POSITIVE_INFINITY;
  const isPast = (time: number) => time <= end;
  const starts = ads.map(({ startedAt }) => dayOf(startedAt)).filter(isPast);
  const ends = ads.map(endOf).filter(isPast);
  starts.sort((a, b) => a - b);
  const to = ends.reduce((latest, time) => Math.max(latest, time), starts.at(-1) ?? 0);
  const [first = to] = starts;
  const most = starts[Math.floor(starts.length / 20)] ?? to;
  const from = to - first > 2 * (to - most) ? most : first;
  return { from: Math.min(from, to - 7 * DAY), to };
}

export function barOf(ad: BoardAd, { from, to }: TimeAxis): Bar | undefined {
  const start = dayOf(ad.startedAt);
  const end = Math.max(start, endOf(ad) || start);
  if (Number.isNaN(start) || end < from || start > to) return undefined;
  const at = (time: number) => Math.min(1, Math.max(0, (time - from) / (to - from)));
  return { start: at(start), length: at(end) - at(start), isCut: start < from };
}

/** The first days of months on the axis, at most twelve of them. */
export function monthsOn({ from, to }: TimeAxis): { at: number; name: string }[] {
  const first = new Date(from);
  const all: { at: number; name: string }[] = [];
  for (let month = first.getUTCMonth() + 1; all.length < 600; month++) {
    const time = Date.UTC(first.getUTCFullYear(), month);
    if (time > to) break;
    all.push({ at: (time - from) / (to - from), name: new Date(time).toISOString().slice(0, 7) });
  }
  const step = Math.ceil(all.length / 12);
  return all.filter((_, index) => index % step === 0);
}
