import { groupBy } from '../views/lists.ts';

const maxReasons = 4;

/**
 * Lists why pictures are missing, most frequent reason first, e.g. `12: the address has expired; 3: the ad has no
 * picture`.
 */
export function formatReasons(reasons: readonly string[]): string {
  const sorted = [...groupBy(reasons, (reason) => reason)].sort(([, left], [, right]) => right.length - left.length);
  const shownReasons = sorted.slice(0, maxReasons).map(([reason, { length }]) => `${length}: ${reason}`);
  return [...shownReasons, ...(sorted.length > maxReasons ? ['others'] : [])].join('; ');
}
