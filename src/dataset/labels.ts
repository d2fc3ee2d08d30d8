import * as z from 'zod';
import { normalizeAdId } from '../storage/dataset.ts';
import type { RecordsById } from '../storage/user-records.ts';
import { groupBy } from '../views/lists.ts';
import { sanitizeLine } from '../views/safe-text.ts';
import { formatIsoTime } from './tables.ts';

export interface Label {
  label: string;
  value: string | null;
}

interface AdLabel extends Label {
  /** As `normalizeAdId` writes it. */
  adId: string;
  labelledAt: string;
}

export const maxLabelChars = 40;
export const maxLabelValueChars = 200;

/** A label without invisible characters, on one line, and equal for texts that look the same. */
export const normalizeLabel = (text: string): string => sanitizeLine(text).normalize('NFC');

/** A label as it is kept: one for each ad and name. A name has no line break. */
export const buildLabelId = (adId: string, label: string): string => `${normalizeAdId(adId)}\n${label}`;
const StoredLabel = z.object({ value: z.string().nullable(), at: z.number().min(0).max(8.64e15) });
export const buildStoredLabel = (value: string | null, at: number): z.output<typeof StoredLabel> => ({ value, at });

export function groupLabelsByAd(
  { labels }: { labels: RecordsById },
  wanted?: ReadonlySet<string>,
): Map<string, AdLabel[]> {
  const found = [...labels].flatMap(([id, kept]) => {
    const [adId = '', label = ''] = id.split('\n');
    const stored = wanted === undefined || wanted.has(adId) ? StoredLabel.safeParse(kept).data : undefined;
    return stored ? [{ adId, label, value: stored.value, labelledAt: formatIsoTime(stored.at) }] : [];
  });
  return groupBy(found, ({ adId }) => adId);
}

/** `hook: question`. Of too many labels, the first ones and how many more there are. */
export function formatLabels(labels: readonly Label[] = [], max = 12): string[] {
  const texts = labels.slice(0, max).map(({ label, value }) => (value === null ? label : `${label}: ${value}`));
  return labels.length > max ? [...texts, `+${labels.length - max} more`] : texts;
}
