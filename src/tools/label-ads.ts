import * as z from 'zod';
import { invalidRequest } from '../api/errors.ts';
import {
  buildLabelId,
  buildStoredLabel,
  maxLabelChars,
  maxLabelValueChars,
  normalizeLabel,
} from '../dataset/labels.ts';
import { type DatasetContents, normalizeAdId, pickAdsById } from '../storage/dataset.ts';
import { maxRecords } from '../storage/user-records.ts';
import { formatCount } from '../views/numbers.ts';
import { joinNames, quoteUnlessWord } from '../views/safe-text.ts';
import { sanitizeId } from '../views/tokens.ts';
import { isShortId, shortIdRule } from './arguments.ts';
import { defineTool, type ToolContext } from './tool.ts';

/**
 * Creates a schema that normalizes a text first and then checks its length, because normalizing can shorten the text.
 */
const createCleanTextSchema = (max: number, min: number) =>
  z
    .string()
    .overwrite(normalizeLabel)
    .refine((text) => text.length >= min, 'must have a character that can be seen')
    .refine((text) => [...text].length <= max, `must be at most ${max} characters`);

const adId = z.string().refine(isShortId, shortIdRule);
const label = createCleanTextSchema(maxLabelChars, 1);
const value = createCleanTextSchema(maxLabelValueChars, 0);

const maxUnknown = 100;

const LabelInput = z.strictObject({
  adId: adId.optional().describe('Id of a gathered ad.'),
  adIds: z
    .array(adId)
    .refine(({ length }) => length <= 1000, 'must be at most 1,000 ids')
    .optional()
    .describe('Several ad ids, instead of adId.'),
  label: label.describe('Name of the label, such as hook or format.'),
  value: value.optional().describe('Value of the label, such as question.'),
});

export const labelAds = defineTool({
  name: 'label_ads',
  title: 'Tag and classify ads',
  description:
    'Label, tag or classify ads with your own notes, such as format, hook or angle, one by one or with a rule in SQL. Tag the patterns of a hundred creatives in one call. Labels are never sent to the service. Setting a label again replaces its value. Labels last until the server ends, unless AD_LIBRARY_FILES or a shared state stores them.',
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
    labels: z.array(LabelInput).min(1).max(200).optional().describe('One entry for each label.'),
    sql: z.string().optional().describe('Instead of labels: a SELECT of id, label and value.'),
    remove: z.boolean().optional().describe('true removes these labels.'),
  }),
  output: z.looseObject({
    labelled: z.number().describe('Number of labels that were written or removed.'),
    ads: z.number().describe('Number of ads whose labels changed.'),
    unknown: z.array(z.string()).describe('Ids that are not in the dataset.'),
    moreUnknown: z.number().optional().describe('Number of further ids that are not in the dataset.'),
    note: z.string().optional().describe('Note on how long the labels are stored.'),
  }),
  async run({ labels, sql, remove = false }, context) {
    if ((labels === undefined) === (sql === undefined)) throw invalidRequest('Pass either labels or sql.');
    const dataset = await context.dataset();
    const { userRecords } = dataset;
    const contents = await dataset.readContents();
    const notes = sql === undefined ? listNotes(labels ?? []) : await selectNotes(sql, contents, context);
    const notesById = new Map(notes.map((note) => [buildLabelId(note.adId, note.label), note]));
    const ids = new Map(notes.map(({ adId }) => [normalizeAdId(adId), adId]));
    const adsInDataset = pickAdsById(contents, new Set(ids.keys()));
    const { labelled, changed } = await userRecords.update('label', (storedLabels) => {
      const notesToChange = [...notesById].filter(([id, { adId }]) =>
        remove ? storedLabels.has(id) : adsInDataset.has(normalizeAdId(adId)),
      );
      return {
        put: remove
          ? []
          : notesToChange.map(([id, { value }]) => [id, buildStoredLabel(value || null, context.now)] as const),
        remove: remove ? notesToChange.map(([id]) => id) : [],
        result: {
          labelled: notesToChange.length,
          changed: new Set(notesToChange.map(([, { adId }]) => normalizeAdId(adId))),
        },
      };
    });
    // Labels of evicted ads can still be removed. An id whose label changed is therefore not reported as unknown.
    const unknownIds = [...ids].flatMap(([key, id]) => (adsInDataset.has(key) || changed.has(key) ? [] : [id]));
    const data = {
      labelled,
      ads: changed.size,
      unknown: unknownIds.slice(0, maxUnknown).map(sanitizeId),
      ...(unknownIds.length > maxUnknown && { moreUnknown: unknownIds.length - maxUnknown }),
      ...(!userRecords.isLasting && !remove && { note: endsWithProcess }),
    };
    return { data };
  },
  render({ labelled, ads, unknown, moreUnknown, note }, { remove }) {
    const summaryText = `${formatCount(labelled, 'label')} of ${formatCount(ads, 'ad')}`;
    const lines = [
      remove ? `Removed ${summaryText}.` : `Kept ${summaryText}.`,
      unknown.length > 0 &&
        `Not in the dataset: ${joinNames(unknown.map(quoteUnlessWord))}${moreUnknown ? ` and ${moreUnknown} more` : ''}. Searches and gather_ads bring ads into it.`,
      note,
    ];
    return lines.filter(Boolean).join('\n');
  },
});

const endsWithProcess = 'Labels are in memory: they end with the process of this server.';

interface Note {
  adId: string;
  label: string;
  value?: string | null | undefined;
}

const listNotes = (labels: readonly z.output<typeof LabelInput>[]): Note[] =>
  labels.flatMap(({ adId, adIds, label, value }, index) => {
    if ((adId === undefined) === (adIds === undefined))
      throw invalidRequest(`labels.${index}: pass either adId or adIds.`);
    return (adIds ?? [adId ?? '']).map((adId) => ({ adId, label, value }));
  });

const SelectedNote = z.object({ id: adId, label, value: value.nullable() });

function selectNotes(sql: string, contents: DatasetContents, { sql: engine, signal }: ToolContext): Promise<Note[]> {
  return engine().export(contents, { sql, signal }, async ({ columns, rows }) => {
    const columnIndexes = ['id', 'label', 'value'].map((name) => columns.indexOf(name));
    if (columnIndexes.some((index) => index < 0))
      throw invalidRequest('sql must select the columns id, label and value.');
    const notes: Note[] = [];
    for await (const batch of rows) {
      for (const row of batch) {
        const [id, label, value] = columnIndexes.map((index) => row[index]?.toString() ?? null);
        const { data, error } = SelectedNote.safeParse({ id, label, value });
        const [issue] = error?.issues ?? [];
        if (issue) throw invalidRequest(`Row ${notes.length + 1} of sql: ${issue.path.join()} ${issue.message}.`);
        if (data) notes.push({ ...data, adId: data.id });
      }
      if (notes.length > maxRecords.label)
        throw invalidRequest(`sql gives more than ${maxRecords.label.toLocaleString('en-US')} rows. Select fewer.`);
    }
    return notes;
  });
}
