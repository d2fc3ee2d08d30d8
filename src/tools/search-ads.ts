import * as z from 'zod';
import { getListedAdSchema } from '../views/ad.ts';
import { searchInputSchema } from './arguments.ts';
import {
  buildListBoardData,
  createAdViews,
  createPagingFields,
  createResponseDaySchema,
  readFittingPage,
} from './pager.ts';
import { defineTool, readOnlyAnnotations } from './tool.ts';

export const searchAds = defineTool({
  name: 'search_ads',
  title: 'Search ads',
  description:
    'Search the ads of a brand, its competitors or a topic, by keywords, country, format, date or landing domain. Each hit shows the advertiser, the start of the ad text, hook, offer, call to action, format, dates, days running, copies, reach and landing page. Use count_ads to count, and gather_ads to read all ads that match.',
  annotations: readOnlyAnnotations,
  buildExampleArguments: () => ({
    filters: { query: '"free shipping"', countries: ['US'], active: true, sort: 'daysRunning' },
    limit: 2,
  }),
  operations: ['searchAds'],
  showsBoard: true,
  buildBoardData: buildListBoardData,
  inputSchema: searchInputSchema,
  createOutputSchema: () =>
    z.looseObject({
      items: z.array(getListedAdSchema()).describe('The matching ads.'),
      ...createPagingFields(),
      asOf: createResponseDaySchema(),
    }),
  run: ({ filters: searchParams = {}, limit, cursor, detail = 'brief', fresh: ignoresCache }, context) =>
    readFittingPage(
      {
        operation: 'searchAds',
        searchParams,
        limit,
        cursor,
        views: createAdViews(detail, context),
        fetchPage: (body, sizeOptions) => context.api.searchAds({ body, ignoresCache, ...sizeOptions }),
      },
      context,
    ),
});
