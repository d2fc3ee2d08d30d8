import * as z from 'zod';
import { normalizeAdId } from '../storage/dataset.ts';
import type { RecordsById } from '../storage/user-records.ts';
import { groupBy } from '../views/group-by.ts';
import { formatIsoTime } from './tables.ts';

/**
 * A label that the user has attached to an ad: its name (`label`) and optional `value`. `value` is null if the label
 * consists only of a name.
 */
export interface Label {
  label: string;
  value: string | null;
}

interface AdLabel extends Label {
  /** The id of the ad, in lower case. */
  adId: string;
  labelledAt: string;
}

/** The maximum length of a label's name, in characters. */
export const maxLabelNameChars = 40;
/** The maximum length of a label's value, in characters. */
export const maxLabelValueChars = 200;

/**
 * Returns the record id of a label, which consists of the ad id, a line break and the name of the label. An ad
 * therefore has at most one label of each name. Names contain no line breaks.
 */
export const buildLabelRecordId = (adId: string, labelName: string): string => `${normalizeAdId(adId)}\n${labelName}`;
/**
 * Schema of a stored label. `labelledAt` is the time at which the label was set, in milliseconds since the Unix epoch.
 */
const StoredLabel = z.object({ value: z.string().nullable(), labelledAt: z.number().min(0).max(8.64e15) });
/** Builds the stored form of a label: its value, and the time at which the ad was labelled. */
export const buildStoredLabel = (value: string | null, labelledAt: number): z.output<typeof StoredLabel> => ({
  value,
  labelledAt,
});

/**
 * Groups stored labels by ad id.
 * @param selectedIds ids of the ads whose labels are returned; all ads by default
 */
export function groupLabelsByAd(
  { labels }: { labels: RecordsById },
  selectedIds?: ReadonlySet<string>,
): Map<string, AdLabel[]> {
  const adLabels = [...labels].flatMap(([id, record]) => {
    const [adId = '', label = ''] = id.split('\n');
    const storedLabel =
      selectedIds === undefined || selectedIds.has(adId) ? StoredLabel.safeParse(record).data : undefined;
    return storedLabel
      ? [{ adId, label, value: storedLabel.value, labelledAt: formatIsoTime(storedLabel.labelledAt) }]
      : [];
  });
  return groupBy(adLabels, ({ adId }) => adId);
}

/**
 * Formats labels as texts such as `hook: question`. If there are more than `maxLabels` labels, the last text states how
 * many are omitted, e.g. `+3 more`.
 */
export function formatLabels(labels: readonly Label[] = [], maxLabels = 12): string[] {
  const labelTexts = labels
    .slice(0, maxLabels)
    .map(({ label, value }) => (value === null ? label : `${label}: ${value}`));
  return labels.length > maxLabels ? [...labelTexts, `+${labels.length - maxLabels} more`] : labelTexts;
}
