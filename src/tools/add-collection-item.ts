import * as z from 'zod';
import { addedText, CollectionView, viewCollection } from '../present/account.ts';
import { isUuid, word } from '../present/safe-text.ts';
import { collectionId, isShort, itemType, mustBeAdId, mustBeShort } from './arguments.ts';
import { defineTool } from './tool.ts';

/** After a repeat, `added: false` no longer proves that the item was there before (document, *Endpoints*, rule 1). */
const unknownIfAdded =
  'The item is in the collection. The first request got no clear answer and was sent again, so it is unknown whether this call added it or it was there before.';

export const addCollectionItem = defineTool({
  name: 'add_collection_item',
  title: 'Save to a collection',
  description:
    'Bookmark an ad or page: save it to a collection, such as a swipe file. Saving it again changes nothing.',
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: true },
  example: ({ adIds: [itemId], collectionId }) => ({ collectionId, itemType: 'ads', itemId }),
  operations: ['addCollectionItem'],
  forBoard: (data) => ({ added: (data as { added: boolean }).added }),
  input: z
    .strictObject({
      collectionId,
      itemType,
      itemId: z.string().min(1).refine(isShort, mustBeShort).describe('ad id for ads, pageId for pages'),
    })
    .refine(({ itemType, itemId }) => itemType === 'pages' || isUuid(itemId), { path: ['itemId'], error: mustBeAdId }),
  output: z.looseObject({
    collection: CollectionView.optional(),
    itemType: z.string().describe('ads or pages'),
    itemId: z.string(),
    added: z.boolean().describe('false where it was there already'),
    note: z.string().optional(),
  }),
  async run({ collectionId, itemType, itemId: id }, { api }) {
    const itemId = itemType === 'ads' ? id.toLowerCase() : id;
    const { value, repeated } = await api.addCollectionItem({ path: { collectionId }, body: { itemType, itemId } });
    const { collection, added } = value;
    return {
      ...(collection && { collection: viewCollection(collection) }),
      itemType,
      itemId,
      added,
      ...(repeated && !added && { note: unknownIfAdded }),
    };
  },
  render: (output) => {
    const { note, itemType, itemId } = output;
    return note ? `${itemType === 'ads' ? 'Ad' : 'Page'} ${word(itemId)}: ${note}` : addedText(output);
  },
});
