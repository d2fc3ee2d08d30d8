import { z } from 'zod';
import { addedText, CollectionView, viewCollection } from '../present/collection.ts';
import { defineTool } from './define-tool.ts';
import { collectionId, itemType } from './params.ts';

export const addCollectionItem = defineTool({
  name: 'add_collection_item',
  title: 'Save to a collection',
  description: 'Save an ad or a page to a collection. Saving it twice keeps one. Not gated by credits.',
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: true },
  input: z.strictObject({
    collectionId,
    itemType,
    itemId: z.string().min(1).describe('ad id for ads, pageId for pages'),
  }),
  output: z.looseObject({
    collection: CollectionView.optional(),
    itemType: z.string(),
    itemId: z.string(),
    added: z.boolean(),
  }),
  async run({ collectionId, itemType, itemId }, { api }) {
    const { value } = await api.addCollectionItem({ path: { collectionId }, body: { itemType, itemId } });
    const { collection, added } = value;
    return { ...(collection && { collection: viewCollection(collection) }), itemType, itemId, added };
  },
  render: addedText,
});
