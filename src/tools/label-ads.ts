import * as z from 'zod';
import { createInvalidRequestError } from '../api/errors.ts';
import { buildLabelRecordId, buildStoredLabel, maxLabelNameChars, maxLabelValueChars } from '../dataset/labels.ts';
import { type DatasetContents, normalizeAdId, pickAdsById } from '../storage/dataset.ts';
import { maxRecords } from '../storage/user-records.ts';
import { formatCount, formatNumber } from '../views/numbers.ts';
import { joinNames, normalizeLine, quoteUnlessWord } from '../views/safe-text.ts';
import { sanitizeId } from '../views/tokens.ts';
import { isShortId, shortIdRule } from './arguments.ts';
import { defineTool, type ToolContext } from './tool.ts';

/**
 * Creates a schema that checks the length of a text after normalization, because normalization can shorten the text.
 */
const createCleanTextSchema = (maxChars: number, minChars: number) =>
  z
    .string()
    .overwrite(normalizeLine)
    .refine((text) => text.length >= minChars, 'must have a character that can be seen')
    .refine((text) => [...text].length <= maxChars, `must be at most ${maxChars} characters`);

const adIdSchema = z.string().refine(isShortId, shortIdRule);
const labelSchema = createCleanTextSchema(maxLabelNameChars, 1);
const valueSchema = createCleanTextSchema(maxLabelValueChars, 0);

const maxUnknownIds = 100;

const LabelInput = z.strictObject({
  adId: adIdSchema.optional().describe('Id of a gathered ad.'),
  adIds: z
    .array(adIdSchema)
    .refine(({ length }) => length <= 1000, 'must be at most 1,000 ids')
    .optional()
    .describe('Several ad ids, instead of adId.'),
  label: labelSchema.describe('Name of the label, such as hook or format.'),
  value: valueSchema.optional().describe('Value of the label, such as question.'),
});

export const labelAds = defineTool({
  name: 'label_ads',
  title: 'Tag and classify ads',
  description:
    'Label, tag or classify ads with your own notes, such as format, hook or angle, one by one or with a rule in SQL. Tag the patterns of a hundred creatives in one call. Labels are never sent to the service. Setting a label again replaces its value. Labels last until the server ends, unless AD_LIBRARY_FILES or a shared state stores them.',
  usageHint: 'label_ads keeps what you see in them, so that it can be counted.',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  buildExampleArguments: ({ adIds }) => ({
    labels: adIds.slice(0, 2).flatMap((adId) => [
      { adId, label: 'hook', value: 'question' },
      { adId, label: 'worth a look' },
    ]),
  }),
  operations: [],
  storesUserData: true,
  isCpuIntensive: true,
  inputSchema: z.strictObject({
    labels: z.array(LabelInput).min(1).max(200).optional().describe('One entry for each label.'),
    sql: z.string().optional().describe('Instead of labels: a SELECT of id, label and value.'),
    remove: z.boolean().optional().describe('true removes these labels.'),
  }),
  createOutputSchema: () =>
    z.looseObject({
      labelled: z.number().describe('Number of labels that were written or removed.'),
      ads: z.number().describe('Number of ads whose labels changed.'),
      withoutValue: z.number().optional().describe('With sql: number of labels that were written without a value.'),
      unknown: z.array(z.string()).describe('Ids that are not in the dataset.'),
      moreUnknown: z.number().optional().describe('Number of further ids that are not in the dataset.'),
      note: z.string().optional().describe('Note on how long the labels are stored.'),
    }),
  async run({ labels, sql, remove = false }, context) {
    if ((labels === undefined) === (sql === undefined)) throw createInvalidRequestError('Pass either labels or sql.');
    const dataset = await context.openDataset();
    const { userRecords } = dataset;
    const contents = await dataset.readContents();
    const assignments =
      sql === undefined ? listLabelAssignments(labels ?? []) : await selectLabelAssignments(sql, contents, context);
    const assignmentsById = new Map(
      assignments.map((assignment) => [buildLabelRecordId(assignment.adId, assignment.label), assignment]),
    );
    const idsByAdKey = new Map(assignments.map(({ adId }) => [normalizeAdId(adId), adId]));
    const adsInDataset = pickAdsById(contents, new Set(idsByAdKey.keys()));
    const { labelled, withoutValue, changedAdIds } = await userRecords.update('label', (storedLabels) => {
      const assignmentsToChange = [...assignmentsById].filter(([id, { adId }]) =>
        remove ? storedLabels.has(id) : adsInDataset.has(normalizeAdId(adId)),
      );
      return {
        put: remove
          ? []
          : assignmentsToChange.map(([id, { value }]) => [id, buildStoredLabel(value || null, context.now)] as const),
        remove: remove ? assignmentsToChange.map(([id]) => id) : [],
        result: {
          labelled: assignmentsToChange.length,
          withoutValue: assignmentsToChange.filter(([, { value }]) => !value).length,
          changedAdIds: new Set(assignmentsToChange.map(([, { adId }]) => normalizeAdId(adId))),
        },
      };
    });
    // The dataset may have removed an ad whose labels remain. These labels can still be removed, so do not report such
    // an ad as unknown.
    const unknownIds = [...idsByAdKey].flatMap(([adKey, id]) =>
      adsInDataset.has(adKey) || changedAdIds.has(adKey) ? [] : [id],
    );
    const data = {
      labelled,
      ads: changedAdIds.size,
      ...(sql !== undefined && !remove && withoutValue > 0 && { withoutValue }),
      unknown: unknownIds.slice(0, maxUnknownIds).map(sanitizeId),
      ...(unknownIds.length > maxUnknownIds && { moreUnknown: unknownIds.length - maxUnknownIds }),
      ...(!userRecords.isPersistent && !remove && { note: inMemoryLabelsNote }),
    };
    return { data };
  },
  render({ labelled, ads, withoutValue, unknown, moreUnknown, note }, { remove }) {
    const summaryText = `${formatCount(labelled, 'label')} of ${formatCount(ads, 'ad')}`;
    const lines = [
      remove ? `Removed ${summaryText}.` : `Kept ${summaryText}.`,
      withoutValue !== undefined &&
        `Labels without a value: ${formatNumber(withoutValue)}. To keep only labels with a value, remove these and exclude their ads in WHERE.`,
      unknown.length > 0 &&
        `Not in the dataset: ${joinNames(unknown.map(quoteUnlessWord))}${moreUnknown ? ` and ${moreUnknown} more` : ''}. Searches and gather_ads bring ads into it.`,
      note,
    ];
    return lines.filter(Boolean).join('\n');
  },
});

const inMemoryLabelsNote = 'Labels are in memory: they end with the process of this server.';

interface LabelAssignment {
  adId: string;
  label: string;
  value?: string | null | undefined;
}

const listLabelAssignments = (labels: readonly z.output<typeof LabelInput>[]): LabelAssignment[] =>
  labels.flatMap(({ adId, adIds, label, value }, index) => {
    if ((adId === undefined) === (adIds === undefined))
      throw createInvalidRequestError(`labels.${index}: pass either adId or adIds.`);
    return (adIds ?? [adId ?? '']).map((adId) => ({ adId, label, value }));
  });

const LabelRow = z.object({ id: adIdSchema, label: labelSchema, value: valueSchema.nullable() });

function selectLabelAssignments(
  sql: string,
  contents: DatasetContents,
  { getDatasetSql, signal }: ToolContext,
): Promise<LabelAssignment[]> {
  return getDatasetSql().exportRows(contents, { sql, signal }, async ({ columns, rows }) => {
    const columnIndexes = ['id', 'label', 'value'].map((name) => columns.indexOf(name));
    if (columnIndexes.some((index) => index < 0))
      throw createInvalidRequestError("sql must select columns named id, label and value, such as 'hook' AS label.");
    const assignments: LabelAssignment[] = [];
    for await (const batch of rows) {
      for (const row of batch) {
        const [id, label, value] = columnIndexes.map((index) => row[index]?.toString() ?? null);
        const { data, error } = LabelRow.safeParse({ id, label, value });
        const [issue] = error?.issues ?? [];
        if (issue)
          throw createInvalidRequestError(
            `Row ${assignments.length + 1} of sql: ${issue.path.join()} ${issue.message}.`,
          );
        if (data) assignments.push({ ...data, adId: data.id });
      }
      if (assignments.length > maxRecords.label)
        throw createInvalidRequestError(
          `sql gives more than ${maxRecords.label.toLocaleString('en-US')} rows. Select fewer.`,
        );
    }
    return assignments;
  });
}
