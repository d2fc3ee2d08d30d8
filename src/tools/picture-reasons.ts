import { groupBy } from '../views/group-by.ts';

const maxReasons = 4;

/**
 * Formats the reasons for missing pictures, the most frequent reason first, e.g. `12: the address has expired; 3: the
 * ad has no picture`.
 */
export function formatMissingPictureReasons(reasons: readonly string[]): string {
  const reasonGroups = [...groupBy(reasons, (reason) => reason)].sort(
    ([, left], [, right]) => right.length - left.length,
  );
  const shownReasons = reasonGroups.slice(0, maxReasons).map(([reason, { length }]) => `${length}: ${reason}`);
  return [...shownReasons, ...(reasonGroups.length > maxReasons ? ['others'] : [])].join('; ');
}
