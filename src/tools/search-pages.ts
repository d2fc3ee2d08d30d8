import * as z from 'zod';
import { getPageViewSchema } from '../views/page.ts';
import { searchInputSchema } from './arguments.ts';
import { createPageViews, createPagingFields, readFittingPage } from './pager.ts';
import { defineTool, readOnlyAnnotations } from './tool.ts';

export const searchPages = defineTool({
  name: 'search_pages',
  title: 'Search advertiser pages',
  description:
    'Search advertiser pages: find a brand by name, or rank pages by number of ads, copies, likes or followers. For the competitors in an industry, count its ads by advertiser.',
  annotations: readOnlyAnnotations,
  buildExampleArguments: () => ({ filters: { countries: ['US'] }, limit: 2 }),
  operations: ['searchPages'],
  inputSchema: searchInputSchema,
  createOutputSchema: () =>
    z.looseObject({
      items: z.array(getPageViewSchema()).describe('The matching advertiser pages.'),
      ...createPagingFields(),
    }),
  run: ({ filters: searchParams = {}, limit, cursor, detail = 'brief', fresh: ignoresCache }, context) =>
    readFittingPage(
      {
        operation: 'searchPages',
        searchParams,
        limit,
        cursor,
        views: createPageViews(detail, context),
        fetchPage: (body, sizeOptions) => context.api.searchPages({ body, ignoresCache, ...sizeOptions }),
      },
      context,
    ),
});
