import * as z from 'zod';
import { normalizeAdId } from '../storage/dataset.ts';
import type { RecordsById } from '../storage/user-records.ts';
import { groupBy } from '../views/lists.ts';
import { sanitizeLine } from '../views/safe-text.ts';
import { formatIsoTime } from './tables.ts';

/** A note on an ad: a name, and a value if it has one. */
export interface Label {
  label: string;
  value: string | null;
}

interface AdLabel extends Label {
  /** The id of the ad, as `normalizeAdId` writes it. */
  adId: string;
  labelledAt: string;
}

/** The most characters of a label's name. */
export const maxLabelChars = 40;
/** The most characters of a label's value. */
export const maxLabelValueChars = 200;

/** Returns a name without invisible characters, on one line and in NFC, so that names which look the same are equal. */
export const normalizeLabel = (text: string): string => sanitizeLine(text).normalize('NFC');

/**
 * Builds the key under which a label is stored. An ad has one label of each name. A name has no line break, so the key
 * is unambiguous.
 */
export const buildLabelId = (adId: string, label: string): string => `${normalizeAdId(adId)}\n${label}`;
/** A label as it is stored. `at` is in milliseconds since the epoch. */
const StoredLabel = z.object({ value: z.string().nullable(), at: z.number().min(0).max(8.64e15) });
/** Builds the record of a label. */
export const buildStoredLabel = (value: string | null, at: number): z.output<typeof StoredLabel> => ({ value, at });

/**
 * Returns the labels by ad id.
 * @param selectedIds the ids of the ads whose labels are returned; by default all
 */
export function groupLabelsByAd(
  { labels }: { labels: RecordsById },
  selectedIds?: ReadonlySet<string>,
): Map<string, AdLabel[]> {
  const adLabels = [...labels].flatMap(([id, record]) => {
    const [adId = '', label = ''] = id.split('\n');
    const stored = selectedIds === undefined || selectedIds.has(adId) ? StoredLabel.safeParse(record).data : undefined;
    return stored ? [{ adId, label, value: stored.value, labelledAt: formatIsoTime(stored.at) }] : [];
  });
  return groupBy(adLabels, ({ adId }) => adId);
}

/**
 * Formats labels, for example `hook: question`. If there are more than `max`, the last text says how many are left out.
 */
export function formatLabels(labels: readonly Label[] = [], max = 12): string[] {
  const texts = labels.slice(0, max).map(({ label, value }) => (value === null ? label : `${label}: ${value}`));
  return labels.length > max ? [...texts, `+${labels.length - max} more`] : texts;
}
