import * as z from 'zod';
import { CollectionView, collectionListText, viewCollection } from '../present/collection.ts';
import { foreignCursor } from './cursor.ts';
import { defineTool, readOnly } from './define-tool.ts';
import type { ItemViews } from './item-views.ts';
import { pageOf } from './paginate.ts';
import { frameOf, paging } from './paging.ts';
import { cursor } from './params.ts';

const views: ItemViews<CollectionView> = {
  name: 'collections',
  view: viewCollection,
  text: collectionListText,
};

/** The document's list of collections has no pages; a cursor comes only with a result that was cut to fit. */
export const listCollections = defineTool({
  name: 'list_collections',
  title: 'Collections',
  description: 'The collections of ads and pages, with their ids and counts. Not gated by credits.',
  annotations: readOnly,
  input: z.strictObject({ cursor }),
  output: z.looseObject({ items: z.array(CollectionView), ...paging }),
  run: (asked, context) =>
    pageOf({
      asking: { list: 'listCollections', cursor: asked.cursor, limit: undefined, question: {} },
      context,
      views,
      fetch: async ({ cursor }) => {
        if (cursor !== undefined) throw foreignCursor();
        const { value, raw } = await context.api.listCollections();
        return { value: { items: value.items, cursor: null, hasMore: false }, raw };
      },
    }),
  render: (output) => collectionListText({ ...output, ...frameOf(output) }),
});
