import * as z from 'zod';
import {
  buildCollectionView,
  type CollectionView,
  formatCollectionList,
  getCollectionViewSchema,
} from '../views/account.ts';
import { cursorSchema } from './arguments.ts';
import { createCursorMismatchError } from './cursors.ts';
import { createPagingFields, type ItemViews, readFittingPage } from './pager.ts';
import { defineTool, readOnlyAnnotations } from './tool.ts';

const views: ItemViews<CollectionView> = { buildItemView: buildCollectionView, formatList: formatCollectionList };

/**
 * Returns true if a collection probably accepts ads. The API document does not define which collections accept ads. A
 * collection of type `pages`, or one with pages but no ads, is assumed to accept only pages.
 */
const canContainAds = ({ type, defaultType, adCount, pageCount }: CollectionView): boolean =>
  ![type, defaultType].includes('pages') && !(adCount === 0 && (pageCount ?? 0) > 0);

/**
 * The tool that lists all collections. The API does not paginate this list, so a result has a cursor only if the list
 * was shortened to fit the token budget.
 */
export const listCollections = defineTool({
  name: 'list_collections',
  title: 'Collections',
  description: 'List the collections (boards, swipe files) of saved ads and pages, with ids and counts.',
  annotations: readOnlyAnnotations,
  buildExampleArguments: () => ({}),
  operations: ['listCollections'],
  buildBoardData: (data) => ({
    collections: (data as { items: CollectionView[] }).items
      .filter(canContainAds)
      .map(({ id, name, adCount }) => ({ id, ...(name && { name }), ...(adCount !== undefined && { ads: adCount }) })),
  }),
  inputSchema: z.strictObject({ cursor: cursorSchema }),
  createOutputSchema: () =>
    z.looseObject({ items: z.array(getCollectionViewSchema()).describe('The collections.'), ...createPagingFields() }),
  run: ({ cursor }, context) =>
    readFittingPage(
      {
        operation: 'listCollections',
        searchParams: {},
        cursor,
        views,
        fetchPage: async ({ cursor }) => {
          if (cursor !== undefined) throw createCursorMismatchError();
          const { rawBody } = await context.api.listCollections();
          return { validatedBody: { cursor: null, hasMore: false }, rawBody };
        },
      },
      context,
    ),
});
