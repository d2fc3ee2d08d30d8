import * as z from 'zod';
import { CollectionView, collectionText, viewCollection } from '../present/account.ts';
import type { AdView } from '../present/ad.ts';
import type { PageView } from '../present/page.ts';
import { collectionId, cursor, detail, fresh, itemsLimit, itemType } from './arguments.ts';
import { adViews, listForBoard, pageViews, paginate, paging } from './pager.ts';
import { defineListTool, type FieldMeanings, readOnly } from './tool.ts';

export const listCollectionItems = defineListTool({
  name: 'list_collection_items',
  title: 'Items of a collection',
  description: 'List the ads or pages in a collection.',
  annotations: readOnly,
  example: ({ collectionId }) => ({ collectionId, itemType: 'ads', limit: 2 }),
  operations: ['listCollectionItems'],
  showsBoard: true,
  forBoard: listForBoard,
  input: z.strictObject({ collectionId, itemType, limit: itemsLimit, cursor, detail, fresh }),
  output: z.looseObject({
    collection: CollectionView.optional(),
    itemType: z.string(),
    items: z.array(z.looseObject({})),
    ...paging,
  }),
  run: ({ collectionId, itemType, limit, cursor, detail = 'brief', fresh }, context) =>
    paginate<AdView | PageView>(
      {
        list: 'listCollectionItems',
        searchParams: { collectionId, itemType },
        limit,
        cursor,
        views: itemType === 'ads' ? adViews(detail, context) : pageViews(detail, context),
        fetch: async ({ limit, cursor }, size) => {
          const query = { itemType, ...(limit !== undefined && { limit }), ...(cursor !== undefined && { cursor }) };
          const answer = await context.api.listCollectionItems({ path: { collectionId }, query, fresh, ...size });
          // Loaded with the first call, like everything that reads answers.
          const { readAds, readPages } = await import('../api/client.ts');
          (itemType === 'ads' ? readAds : readPages)(answer);
          const collection = answer.value.collection && viewCollection(answer.value.collection);
          const text = collection && `Collection ${collectionText(collection)}`;
          return { ...answer, heading: { data: { ...(collection && { collection }), itemType }, text } };
        },
      },
      context,
    ),
});

/** For docs alone: see `FieldMeanings`. */
export const resultFields = {
  collection: 'Collection: the collection',
  itemType: 'string: `ads` or `pages`',
  items: 'object[]: [ads](#ad) or [pages](#page)',
} satisfies FieldMeanings;
