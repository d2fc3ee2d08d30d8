import * as z from 'zod';
import { createInvalidRequestError } from '../api/errors.ts';
import { removeDuplicateParts } from '../dataset/gatherings.ts';
import { dataTokensPerTextToken } from '../views/full-view.ts';
import { joinLines, normalizeLine } from '../views/safe-text.ts';
import { pickAdQuery, storeWatch } from '../watches/stored-watches.ts';
import { adFiltersSchema, checkAdQueryArguments, collectionIdSchema, splitSchema } from './arguments.ts';
import { buildWatchViews, formatWatch, inMemoryNoteSchema, inMemoryWatchesNote, WatchView } from './list-watches.ts';
import { defineTool } from './tool.ts';

const maxNameChars = 80;
const maxQueryChars = 20_000;

export const watchAds = defineTool({
  name: 'watch_ads',
  title: 'Monitor a competitor or topic',
  description:
    'Monitor a competitor or track a topic: store a question under a name for check_watches. Nothing is sent to the service. The same name replaces the watch. Watches last until the server ends, unless AD_LIBRARY_FILES or a shared state stores them.',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  buildExampleArguments: () => ({
    name: 'Videos in Germany',
    filters: { countries: ['DE'], displayFormat: ['VIDEO'] },
    maxCredits: 10,
  }),
  operations: [],
  storesUserData: true,
  inputSchema: z.strictObject({
    name: z.string().describe('Name of the watch.'),
    filters: adFiltersSchema,
    split: splitSchema,
    collectionId: collectionIdSchema.optional(),
    maxAds: z.int().min(1).max(10_000).optional().describe('Most ads that a check reads. Default 1000.'),
    maxCredits: z.number().min(0).describe('Most credits that a check may spend.'),
  }),
  createOutputSchema: () =>
    z.looseObject({ watch: WatchView.describe('The watch as it is stored.'), note: inMemoryNoteSchema }),
  async run({ name: requestedName, maxAds, maxCredits, ...adQuery }, { openDataset, maxTextTokens }) {
    const { userRecords } = await openDataset();
    checkAdQueryArguments(adQuery);
    if (maxCredits === 0)
      throw createInvalidRequestError('maxCredits must be above 0: the most that one check may cost.');
    if (JSON.stringify(adQuery).length > maxQueryChars)
      throw createInvalidRequestError(`filters and split may have at most ${maxQueryChars} characters together.`);
    const name = normalizeLine(requestedName);
    if (name === '' || name.length > maxNameChars)
      throw createInvalidRequestError(`name must have 1 to ${maxNameChars} characters that can be seen.`);
    const newWatch = { ...pickAdQuery(removeDuplicateParts(adQuery)), name, maxAds, maxCredits };
    const storedWatch = await storeWatch(userRecords, newWatch);
    const [watch] = buildWatchViews([storedWatch], dataTokensPerTextToken * maxTextTokens) as [WatchView];
    return { data: { watch, ...(!userRecords.isPersistent && { note: inMemoryWatchesNote }) } };
  },
  render: ({ watch, note }) => joinLines([`Stored ${formatWatch(watch)}`, note]),
});
