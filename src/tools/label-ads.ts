import * as z from 'zod';
import { cleanLabel, labelId, maxLabel, maxValue, storedLabel } from '../dataset/labels.ts';
import { count } from '../present/lists.ts';
import { listed, word } from '../present/safe-text.ts';
import { idKey } from '../state/dataset.ts';
import { isShort, mustBeShort } from './arguments.ts';
import { defineTool } from './tool.ts';

/** A text of one line that is cleaned before it is measured. */
const cleanText = (max: number, least: number) =>
  z
    .string()
    .overwrite(cleanLabel)
    .refine((text) => text.length >= least, 'must have a character that can be seen')
    .refine((text) => [...text].length <= max, `must be at most ${max} characters`);

export const labelAds = defineTool({
  name: 'label_ads',
  title: 'Tag and classify ads',
  description:
    'Classify or tag ads: your own notes on them (format, hook, angle …), never sent to the service. The same label again replaces its value. They end with the server unless AD_LIBRARY_FILES or a shared state keeps them.',
  guide: 'label_ads keeps what you see in them, so that it can be counted.',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  example: ({ adIds }) => ({
    labels: adIds.slice(0, 2).flatMap((adId) => [
      { adId, label: 'hook', value: 'question' },
      { adId, label: 'worth a look' },
    ]),
  }),
  operations: [],
  keepsRecords: true,
  isHeavy: true,
  input: z.strictObject({
    labels: z
      .array(
        z.strictObject({
          adId: z.string().refine(isShort, mustBeShort).describe('of a gathered ad'),
          label: cleanText(maxLabel, 1).describe('what is noted: hook, format …'),
          value: cleanText(maxValue, 0).optional().describe('such as question'),
        }),
      )
      .min(1)
      .max(200)
      .describe('one for each ad and label'),
    remove: z.boolean().optional().describe('true: remove these labels'),
  }),
  output: z.looseObject({
    labelled: z.number().describe('labels that were written, or removed'),
    ads: z.number().describe('ads whose labels changed'),
    unknown: z.array(z.string()).describe('ids that are not in the dataset'),
    note: z.string().optional(),
  }),
  async run({ labels, remove = false }, { dataset, now }) {
    const { own, item } = await dataset();
    const ids = [...new Set(labels.map(({ adId }) => adId))];
    const found = await Promise.all(ids.map(async (id) => ((await item('ads', id)) ? [idKey(id)] : [])));
    const known = new Set(found.flat());
    const wanted = new Map(labels.map((one) => [labelId(one.adId, one.label), one]));
    const { labelled, changed } = await own.update('label', (kept) => {
      const chosen = [...wanted].filter(([id, { adId }]) => (remove ? kept.has(id) : known.has(idKey(adId))));
      return {
        put: remove ? [] : chosen.map(([id, { value }]) => [id, storedLabel(value || null, now)] as const),
        removed: remove ? chosen.map(([id]) => id) : [],
        result: { labelled: chosen.length, changed: new Set(chosen.map(([, { adId }]) => idKey(adId))) },
      };
    });
    // A label whose ad was evicted can still be removed.
    const isUnknown = (adId: string) => !known.has(idKey(adId)) && !changed.has(idKey(adId));
    return {
      labelled,
      ads: changed.size,
      unknown: ids.filter(isUnknown),
      ...(!own.isLasting && !remove && { note: endsWithProcess }),
    };
  },
  render({ labelled, ads, unknown, note }, { remove }) {
    const what = `${count(labelled, 'label')} of ${count(ads, 'ad')}`;
    const lines = [remove ? `Removed ${what}.` : `Kept ${what}.`];
    if (unknown.length > 0)
      lines.push(`Not in the dataset: ${listed(unknown.map(word))}. Searches and gather_ads bring ads into it.`);
    if (note) lines.push(note);
    return lines.join('\n');
  },
});

const endsWithProcess = 'Labels are in memory: they end with the process of this server.';
