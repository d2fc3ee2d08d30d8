import * as z from 'zod';
import { PageView } from '../present/page.ts';
import { defineTool, readOnly } from './define-tool.ts';
import { pageViews } from './item-views.ts';
import { pageOf } from './paginate.ts';
import { frameOf, paging } from './paging.ts';
import { cursor, detail, filters, fresh, searchLimit } from './params.ts';

export const searchPages = defineTool({
  name: 'search_pages',
  title: 'Search advertiser pages',
  description:
    'Search advertiser pages: name, number of ads, duplicates, likes, followers, countries, languages of each. Costs credits; the result says how many.',
  annotations: readOnly,
  input: z.strictObject({ filters, limit: searchLimit, cursor, detail, fresh }),
  output: z.looseObject({ items: z.array(PageView), ...paging }),
  run: ({ filters: question = {}, limit, cursor, detail = 'brief', fresh }, context) =>
    pageOf({
      asking: { list: 'searchPages', cursor, limit, question },
      context,
      views: pageViews(detail, context),
      fetch: (body) => context.api.searchPages({ body, fresh }),
    }),
  render: (output, { detail = 'brief' }, context) => pageViews(detail, context).text({ ...output, ...frameOf(output) }),
});
