import * as z from 'zod';
import { ListedAd } from '../views/ad.ts';
import { cursor, detail, filters, fresh, searchLimit } from './arguments.ts';
import { createAdViews, dayOfAnswer, listForBoard, paginate, paging } from './pager.ts';
import { defineTool, readOnly } from './tool.ts';

export const searchAds = defineTool({
  name: 'search_ads',
  title: 'Search ads',
  description:
    'Search the ads of a brand, its competitors or a topic, by keywords, country, format, date or landing domain. Each hit shows the advertiser, the start of the ad text, hook, offer, call to action, format, dates, days running, copies, reach and landing page. Use count_ads to count, and gather_ads to read all ads that match.',
  annotations: readOnly,
  example: () => ({
    filters: { query: '"free shipping"', countries: ['US'], active: true, sort: 'daysRunning' },
    limit: 2,
  }),
  operations: ['searchAds'],
  showsBoard: true,
  forBoard: listForBoard,
  input: z.strictObject({ filters, limit: searchLimit, cursor, detail, fresh }),
  output: z.looseObject({ items: z.array(ListedAd).describe('The matching ads.'), ...paging, asOf: dayOfAnswer }),
  run: ({ filters: searchParams = {}, limit, cursor, detail = 'brief', fresh }, context) =>
    paginate(
      {
        list: 'searchAds',
        searchParams,
        limit,
        cursor,
        views: createAdViews(detail, context),
        fetch: (body, size) => context.api.searchAds({ body, fresh, ...size }),
      },
      context,
    ),
});
