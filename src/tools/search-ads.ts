import * as z from 'zod';
import { ListedAd } from '../views/ad.ts';
import { cursor, detail, filters, fresh, searchLimit } from './arguments.ts';
import { adViews, listForBoard, paginate, paging } from './pager.ts';
import { defineListTool, readOnly } from './tool.ts';

export const searchAds = defineListTool({
  name: 'search_ads',
  title: 'Search ads',
  description:
    'Search ads of a brand, of competitors or on a topic: advertiser, start of the copy, call to action, format, dates, days running, copies, reach, landing domain. To count use count_ads, for all that match gather_ads.',
  annotations: readOnly,
  example: () => ({
    filters: { query: '"free shipping"', countries: ['US'], active: true, sort: 'daysRunning' },
    limit: 2,
  }),
  operations: ['searchAds'],
  showsBoard: true,
  forBoard: listForBoard,
  input: z.strictObject({ filters, limit: searchLimit, cursor, detail, fresh }),
  output: z.looseObject({ items: z.array(ListedAd), ...paging }),
  run: ({ filters: searchParams = {}, limit, cursor, detail = 'brief', fresh }, context) =>
    paginate(
      {
        list: 'searchAds',
        searchParams,
        limit,
        cursor,
        views: adViews(detail, context),
        fetch: (body, size) => context.api.searchAds({ body, fresh, ...size }),
      },
      context,
    ),
});
