import * as z from 'zod';
import type { ApiAnswer } from '../api/client.ts';
import type { AdView } from '../present/ad.ts';
import { CollectionView, collectionText, viewCollection } from '../present/collection.ts';
import type { PageView } from '../present/page.ts';
import { defineTool, readOnly } from './define-tool.ts';
import { adViews, type ItemViews, pageViews } from './item-views.ts';
import { pageOf } from './paginate.ts';
import { frameOf, type Paging, paging } from './paging.ts';
import { collectionId, cursor, detail, fresh, itemsLimit, itemType } from './params.ts';
import type { ToolContext } from './tool-context.ts';

const input = z.strictObject({ collectionId, itemType, limit: itemsLimit, cursor, detail, fresh });

/** Loaded with the first call, as everything is that reads answers. */
const reading = () => import('../api/read-items.ts');

export const listCollectionItems = defineTool({
  name: 'list_collection_items',
  title: 'Items of a collection',
  description: 'The ads or the pages of a collection. Costs credits; the result says how many.',
  annotations: readOnly,
  input,
  output: z.looseObject({
    collection: CollectionView.optional(),
    itemType: z.string(),
    items: z.array(z.looseObject({})),
    ...paging,
  }),
  run: (asked, context): Promise<CollectionPage> => {
    const { itemType, detail = 'brief' } = asked;
    return itemType === 'ads'
      ? itemsPage({
          asked,
          context,
          read: async (answer) => (await reading()).readAds(answer),
          views: adViews(detail, context),
        })
      : itemsPage({
          asked,
          context,
          read: async (answer) => (await reading()).readPages(answer),
          views: pageViews(detail, context),
        });
  },
  render: (output, { itemType, detail = 'brief' }, context) => {
    const { collection, items } = output;
    const frame = frameOf(output);
    const text =
      itemType === 'ads'
        ? adViews(detail, context).text({ items: items as AdView[], ...frame })
        : pageViews(detail, context).text({ items: items as PageView[], ...frame });
    return collection ? `Collection ${collectionText(collection)}\n${text}` : text;
  },
});

type CollectionPage = Paging & { collection?: CollectionView; itemType: string; items: (AdView | PageView)[] };

interface ItemsPage<View> {
  asked: z.output<typeof input>;
  context: ToolContext;
  /** Items are told apart by the type that was asked for. */
  read(answer: ApiAnswer<'listCollectionItems'>): Promise<object[]>;
  views: ItemViews<View>;
}

async function itemsPage<View extends object>({ asked, context, read, views }: ItemsPage<View>) {
  const { collectionId, itemType, fresh } = asked;
  let collection: CollectionView | undefined;
  const page = await pageOf({
    asking: {
      list: 'listCollectionItems',
      cursor: asked.cursor,
      limit: asked.limit,
      question: { collectionId, itemType },
    },
    context,
    views,
    fetch: async ({ limit, cursor }) => {
      const query = { itemType, ...(limit !== undefined && { limit }), ...(cursor !== undefined && { cursor }) };
      const answer = await context.api.listCollectionItems({ path: { collectionId }, query, fresh });
      const { value, raw } = answer;
      collection = value.collection && viewCollection(value.collection);
      return { value: { ...value, items: await read(answer) }, raw };
    },
  });
  // The text of this list says more than that of its items, so it is not the one kept for them.
  return { ...(collection && { collection }), itemType, ...page, items: [...page.items] };
}
