import * as z from 'zod';
import { CollectionView, collectionListText, viewCollection } from '../present/collection.ts';
import { defineListTool, readOnly } from './define-tool.ts';
import type { ItemViews } from './item-views.ts';
import { paginate } from './paginate.ts';
import { paging } from './paging.ts';
import { cursor } from './params.ts';
import { foreignCursor } from './read-cursor.ts';

const views: ItemViews<CollectionView> = {
  name: 'collections',
  view: viewCollection,
  text: collectionListText,
};

/** The document's list of collections has no pages; a cursor comes only with a result that was cut to fit. */
export const listCollections = defineListTool({
  name: 'list_collections',
  title: 'Collections',
  description: 'The collections of ads and pages, with their ids and counts.',
  annotations: readOnly,
  operations: ['listCollections'],
  input: z.strictObject({ cursor }),
  output: z.looseObject({ items: z.array(CollectionView), ...paging }),
  run: ({ cursor }, context) =>
    paginate(
      {
        list: 'listCollections',
        searchParams: {},
        cursor,
        views,
        fetch: async ({ cursor }) => {
          if (cursor !== undefined) throw foreignCursor();
          const { raw } = await context.api.listCollections();
          return { value: { cursor: null, hasMore: false }, raw };
        },
      },
      context,
    ),
});
