import * as z from 'zod';
import type { ItemType } from '../api/schemas.ts';
import { classifyFailure, type StopInfo } from '../dataset/stops.ts';
import {
  buildCollectionView,
  type CollectionView,
  formatCollection,
  getCollectionViewSchema,
} from '../views/account.ts';
import type { DataOf } from '../views/fields.ts';
import { isUuid, joinLines, joinNames, quoteUnlessWord } from '../views/safe-text.ts';
import { adIdRule, collectionIdSchema, isShortId, itemTypeSchema, shortIdRule } from './arguments.ts';
import { defineTool, type ToolContext } from './tool.ts';

/**
 * The note for an item whose request was sent twice because the first response was unclear. The second response may
 * then say `added: false` although the first request added the item (API document, *Endpoints*, rule 1).
 */
const unknownOutcomeNote =
  'The item is in the collection. The first request got no clear answer and was sent again, so it is unknown whether this call added it or it was there before.';

const itemIdSchema = z.string().min(1).refine(isShortId, shortIdRule);

const SavedItemView = z
  .looseObject({
    itemId: z.string().describe('Id of the item.'),
    added: z.boolean().describe('false if the item was already in the collection, or if there is a problem.'),
    problem: z.string().optional().describe('Why the item was not added, or why this is unknown.'),
  })
  .meta({ title: 'Saved' });
type SavedItemView = DataOf<typeof SavedItemView>;

export const addCollectionItem = defineTool({
  name: 'add_collection_item',
  title: 'Save to a collection',
  description:
    'Save (bookmark) ads or pages to a collection, such as a swipe file. Saving an item again changes nothing.',
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: true },
  buildExampleArguments: ({ adIds: [itemId], collectionId }) => ({ collectionId, itemType: 'ads', itemId }),
  operations: ['addCollectionItem'],
  buildBoardData: (data) => ({ added: (data as { added?: boolean }).added === true }),
  inputSchema: z
    .strictObject({
      collectionId: collectionIdSchema,
      itemType: itemTypeSchema,
      itemId: itemIdSchema.optional().describe('Ad id for ads, pageId for pages.'),
      itemIds: z.array(itemIdSchema).max(50).optional().describe('Several item ids, instead of itemId.'),
    })
    .refine(({ itemId, itemIds }) => (itemId === undefined) !== ((itemIds ?? []).length === 0), {
      path: ['itemId'],
      error: 'pass either itemId or itemIds',
    })
    .superRefine(({ itemType, itemId, itemIds = [] }, { addIssue }) => {
      if (itemType === 'pages') return;
      if (itemId !== undefined && !isUuid(itemId)) addIssue({ code: 'custom', path: ['itemId'], message: adIdRule });
      for (const [index, id] of itemIds.entries())
        if (!isUuid(id)) addIssue({ code: 'custom', path: ['itemIds', index], message: adIdRule });
    }),
  createOutputSchema: () =>
    z.looseObject({
      collection: getCollectionViewSchema().optional(),
      itemType: z.string().describe('ads or pages.'),
      itemId: z.string().optional().describe('Id of the item.'),
      added: z.boolean().optional().describe('false if the item was already in the collection.'),
      items: z.array(SavedItemView).optional().describe('Outcome for each id of itemIds.'),
      stopped: z.string().optional().describe('Why the remaining items were not tried, as in gather_ads.'),
      note: z.string().optional().describe('Why it is unknown whether this call added the item.'),
    }),
  async run({ collectionId, itemType, itemId, itemIds = [] }, context) {
    const outcome = await addItems(collectionId, itemType, itemId === undefined ? itemIds : [itemId], context);
    const [savedItem] = outcome.items;
    if (itemId === undefined || savedItem === undefined) return { data: { itemType, ...outcome } };
    const { collection } = outcome;
    const { problem: note, ...outcomeFields } = savedItem;
    return { data: { itemType, ...(collection && { collection }), ...outcomeFields, ...(note && { note }) } };
  },
  render({ note, itemType, itemId, added, items = [], collection }) {
    const collectionText = `the collection${collection ? ` ${formatCollection(collection)}` : ''}`;
    if (itemId === undefined) return formatSeveralItems(items, collectionText);
    const item = `${itemType === 'ads' ? 'Ad' : 'Page'} ${quoteUnlessWord(itemId)}`;
    return note ? `${item}: ${note}` : `${item} ${added ? 'added to' : 'was already in'} ${collectionText}`;
  },
});

const notTriedProblem = 'not tried';

/**
 * Adds items to a collection one after another. If the service rejects an item, continues with the next item. After any
 * other failure, reports the remaining items as not tried.
 */
async function addItems(collectionId: string, itemType: ItemType, itemIds: readonly string[], context: ToolContext) {
  const uniqueIds = [...new Set(itemIds.map((id) => (itemType === 'ads' ? id.toLowerCase() : id)))];
  const items: SavedItemView[] = [];
  let collection: CollectionView | undefined;
  let stopInfo: StopInfo | undefined;
  let firstError: unknown;
  let hasSavedItem = false;
  for (const itemId of uniqueIds) {
    if (stopInfo) {
      items.push({ itemId, added: false, problem: notTriedProblem });
      continue;
    }
    try {
      const { validatedBody, wasRepeated } = await context.api.addCollectionItem({
        path: { collectionId },
        body: { itemType, itemId },
      });
      const { added } = validatedBody;
      hasSavedItem = true;
      if (validatedBody.collection) collection = buildCollectionView(validatedBody.collection);
      items.push({ itemId, added, ...(wasRepeated && !added && { problem: unknownOutcomeNote }) });
    } catch (error) {
      firstError ??= error;
      const failureStop = classifyFailure(error, context);
      if (!itemErrorKinds.includes(failureStop.error?.failure.kind ?? '')) stopInfo = failureStop;
      items.push({ itemId, added: false, problem: context.explainError(error).text });
    }
  }
  if (firstError !== undefined && !hasSavedItem) throw firstError;
  return { ...(collection && { collection }), items, ...(stopInfo && { stopped: stopInfo.reason }) };
}

/** The kinds of errors that concern only one item. After any other error, the remaining items would fail, too. */
const itemErrorKinds: readonly string[] = ['invalid_request', 'not_found'];

function formatSeveralItems(items: readonly SavedItemView[], collectionText: string): string {
  const listQuotedIds = (matchesItem: (item: SavedItemView) => boolean) =>
    items.filter(matchesItem).map(({ itemId }) => quoteUnlessWord(itemId));
  const [addedIds, existingIds] = [
    listQuotedIds((item) => item.added),
    listQuotedIds((item) => !item.added && !item.problem),
  ];
  const untriedIds = listQuotedIds(({ problem }) => problem === notTriedProblem);
  return joinLines([
    `Into ${collectionText}: ${addedIds.length} added, ${existingIds.length} already there.`,
    ...items.flatMap(({ itemId, problem }) =>
      problem && problem !== notTriedProblem ? `${quoteUnlessWord(itemId)}: ${problem}` : [],
    ),
    untriedIds.length > 0 && `Not tried: ${joinNames(untriedIds)}. Call again with these.`,
  ]);
}
