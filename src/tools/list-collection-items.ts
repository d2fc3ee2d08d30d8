import * as z from 'zod';
import { defaultCollectionPageSize } from '../api/operations.ts';
import { createLazyGetter } from '../lazy-getter.ts';
import {
  buildCollectionView,
  type CollectionView,
  formatCollection,
  getCollectionViewSchema,
} from '../views/account.ts';
import { type AdView, type getAdViewSchema, getListedAdSchema } from '../views/ad.ts';
import { moveMismatchesToOtherTypes } from '../views/full-view.ts';
import { getPageViewSchema, type PageView } from '../views/page.ts';
import {
  collectionIdSchema,
  cursorSchema,
  detailSchema,
  freshSchema,
  itemsLimitSchema,
  itemTypeSchema,
} from './arguments.ts';
import {
  buildListBoardData,
  createAdViews,
  createPageViews,
  createPagingFields,
  type ItemViews,
  readFittingPage,
} from './pager.ts';
import { defineTool, readOnlyAnnotations, type ToolContext } from './tool.ts';

/**
 * The schema of a collection item, which is an ad or an advertiser page. The schema has the fields of both. A field
 * that occurs in both is described as a field of an ad.
 */
const getAdOrPageSchema = createLazyGetter(
  () =>
    getPageViewSchema()
      .extend(getListedAdSchema().shape)
      .partial()
      .meta({ title: 'Ad or Page' }) as unknown as z.ZodObject<Partial<AdViewShape & PageViewShape>>,
);
type AdViewShape = ReturnType<typeof getAdViewSchema>['shape'];
type PageViewShape = ReturnType<typeof getPageViewSchema>['shape'];

function getItemViews(itemType: string, detail: 'brief' | 'full', context: ToolContext): ItemViews<AdView | PageView> {
  const views = itemType === 'ads' ? createAdViews(detail, context) : createPageViews(detail, context);
  return detail === 'full'
    ? {
        ...views,
        buildItemView: (item) => moveMismatchesToOtherTypes(views.buildItemView(item), getAdOrPageSchema()) as AdView,
      }
    : views;
}

export const listCollectionItems = defineTool({
  name: 'list_collection_items',
  title: 'Items of a collection',
  description: 'List the ads or pages saved in a collection (board, swipe file).',
  annotations: readOnlyAnnotations,
  buildExampleArguments: ({ collectionId }) => ({ collectionId, itemType: 'ads', limit: 2 }),
  operations: ['listCollectionItems'],
  showsBoard: true,
  buildBoardData: buildListBoardData,
  inputSchema: z.strictObject({
    collectionId: collectionIdSchema,
    itemType: itemTypeSchema,
    limit: itemsLimitSchema,
    cursor: cursorSchema,
    detail: detailSchema,
    fresh: freshSchema,
  }),
  createOutputSchema: () =>
    z.looseObject({
      collection: getCollectionViewSchema().optional(),
      itemType: z.string().describe('ads or pages.'),
      items: z.array(getAdOrPageSchema()).describe('Items as in search_ads or search_pages, depending on itemType.'),
      ...createPagingFields(),
    }),
  run: ({ collectionId, itemType, limit, cursor, detail = 'brief', fresh: ignoresCache }, context) =>
    readFittingPage<AdView | PageView, { itemType: string; collection?: CollectionView }>(
      {
        operation: 'listCollectionItems',
        searchParams: { collectionId, itemType },
        // Send the default page size, so that a call without `limit` and a call with its default share a cached response.
        // Do not send it with a cursor, because the cursor may belong to another page size.
        limit: limit ?? (cursor === undefined ? defaultCollectionPageSize : undefined),
        cursor,
        views: getItemViews(itemType, detail, context),
        fetchPage: async ({ limit, cursor }) => {
          const query = {
            itemType,
            ...(limit !== undefined && { limit }),
            ...(cursor !== undefined && { cursor }),
          };
          const response = await context.api.listCollectionItems({
            path: { collectionId },
            query,
            ignoresCache,
          });
          // Import the API client on first use, so that the process starts faster.
          const { parseAds, parsePages } = await import('../api/client.ts');
          (itemType === 'ads' ? parseAds : parsePages)(response);
          const collection =
            response.validatedBody.collection && buildCollectionView(response.validatedBody.collection);
          const text = collection && `Collection ${formatCollection(collection)}`;
          return { ...response, heading: { data: { ...(collection && { collection }), itemType }, text } };
        },
      },
      context,
    ),
});
