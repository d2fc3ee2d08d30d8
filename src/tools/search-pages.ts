import * as z from 'zod';
import { PageView } from '../views/page.ts';
import { cursor, detail, filters, fresh, searchLimit } from './arguments.ts';
import { createPageViews, paginate, paging } from './pager.ts';
import { defineTool, readOnly } from './tool.ts';

export const searchPages = defineTool({
  name: 'search_pages',
  title: 'Search advertiser pages',
  description:
    'Search advertiser pages: find a brand, or discover and rank the competitors in an industry, with their number of ads, copies, likes, followers, countries and languages.',
  annotations: readOnly,
  example: () => ({ filters: { countries: ['US'] }, limit: 2 }),
  operations: ['searchPages'],
  input: z.strictObject({ filters, limit: searchLimit, cursor, detail, fresh }),
  output: z.looseObject({ items: z.array(PageView).describe('The matching advertiser pages.'), ...paging }),
  run: ({ filters: searchParams = {}, limit, cursor, detail = 'brief', fresh }, context) =>
    paginate(
      {
        list: 'searchPages',
        searchParams,
        limit,
        cursor,
        views: createPageViews(detail, context),
        fetch: (body, size) => context.api.searchPages({ body, fresh, ...size }),
      },
      context,
    ),
});
