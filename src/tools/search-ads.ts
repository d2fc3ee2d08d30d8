import * as z from 'zod';
import { AdView } from '../present/ad.ts';
import { defineTool, readOnly } from './define-tool.ts';
import { adViews } from './item-views.ts';
import { pageOf } from './paginate.ts';
import { frameOf, paging } from './paging.ts';
import { cursor, detail, filters, fresh, searchLimit } from './params.ts';

export const searchAds = defineTool({
  name: 'search_ads',
  title: 'Search ads',
  description:
    'Search ads: advertiser, opening of the copy, call to action, format, dates, days running, duplicates, reach, landing domain of each. Costs credits; the result says how many.',
  annotations: readOnly,
  input: z.strictObject({ filters, limit: searchLimit, cursor, detail, fresh }),
  output: z.looseObject({ items: z.array(AdView), ...paging }),
  run: ({ filters: question = {}, limit, cursor, detail = 'brief', fresh }, context) =>
    pageOf({
      asking: { list: 'searchAds', cursor, limit, question },
      context,
      views: adViews(detail, context),
      fetch: (body) => context.api.searchAds({ body, fresh }),
    }),
  render: (output, { detail = 'brief' }, context) => adViews(detail, context).text({ ...output, ...frameOf(output) }),
});
