import * as z from 'zod';
import { normalizeAdId } from '../storage/dataset.ts';
import type { RecordsById } from '../storage/user-records.ts';
import { groupBy } from '../views/lists.ts';
import { sanitizeLine } from '../views/safe-text.ts';
import { formatIsoTime } from './tables.ts';

/** A label that the user has put on an ad. The value is null if the label has only a name. */
export interface Label {
  label: string;
  value: string | null;
}

interface AdLabel extends Label {
  /** The normalized id of the ad. */
  adId: string;
  labelledAt: string;
}

/** The maximum length of a label name, in characters. */
export const maxLabelChars = 40;
/** The maximum length of a label value, in characters. */
export const maxLabelValueChars = 200;

/** Normalizes a name: one line, no invisible characters, Unicode form NFC. Names that look the same are then equal. */
export const normalizeLabel = (text: string): string => sanitizeLine(text).normalize('NFC');

/**
 * Returns the record id of a label. An ad has at most one label of each name. The id is unambiguous, because names have
 * no line breaks.
 */
export const buildLabelId = (adId: string, label: string): string => `${normalizeAdId(adId)}\n${label}`;
/** The stored form of a label. `at` is in milliseconds since the epoch. */
const StoredLabel = z.object({ value: z.string().nullable(), at: z.number().min(0).max(8.64e15) });
/** Creates the stored form of a label. */
export const buildStoredLabel = (value: string | null, at: number): z.output<typeof StoredLabel> => ({ value, at });

/**
 * Groups labels by ad id.
 * @param selectedIds ids of the ads whose labels are returned; default: all
 */
export function groupLabelsByAd(
  { labels }: { labels: RecordsById },
  selectedIds?: ReadonlySet<string>,
): Map<string, AdLabel[]> {
  const adLabels = [...labels].flatMap(([id, record]) => {
    const [adId = '', label = ''] = id.split('\n');
    const storedLabel =
      selectedIds === undefined || selectedIds.has(adId) ? StoredLabel.safeParse(record).data : undefined;
    return storedLabel ? [{ adId, label, value: storedLabel.value, labelledAt: formatIsoTime(storedLabel.at) }] : [];
  });
  return groupBy(adLabels, ({ adId }) => adId);
}

/**
 * Formats labels, e.g. `hook: question`. If there are more than `max`, the last string states how many were omitted.
 */
export function formatLabels(labels: readonly Label[] = [], max = 12): string[] {
  const texts = labels.slice(0, max).map(({ label, value }) => (value === null ? label : `${label}: ${value}`));
  return labels.length > max ? [...texts, `+${labels.length - max} more`] : texts;
}
