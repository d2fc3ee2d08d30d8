import * as z from 'zod';
import { PageView } from '../views/page.ts';
import { cursor, detail, filters, fresh, searchLimit } from './arguments.ts';
import { createPageViews, pagingFields, readFittingPage } from './pager.ts';
import { defineTool, readOnlyAnnotations } from './tool.ts';

export const searchPages = defineTool({
  name: 'search_pages',
  title: 'Search advertiser pages',
  description:
    'Search advertiser pages: find a brand, or discover and rank the competitors in an industry, with their number of ads, copies, likes, followers, countries and languages.',
  annotations: readOnlyAnnotations,
  buildExampleArguments: () => ({ filters: { countries: ['US'] }, limit: 2 }),
  operations: ['searchPages'],
  input: z.strictObject({ filters, limit: searchLimit, cursor, detail, fresh }),
  output: z.looseObject({ items: z.array(PageView).describe('The matching advertiser pages.'), ...pagingFields }),
  run: ({ filters: searchParams = {}, limit, cursor, detail = 'brief', fresh }, context) =>
    readFittingPage(
      {
        operation: 'searchPages',
        searchParams,
        limit,
        cursor,
        views: createPageViews(detail, context),
        fetchPage: (body, sizeOptions) => context.api.searchPages({ body, fresh, ...sizeOptions }),
      },
      context,
    ),
});
