import * as z from 'zod';
import type { DetailLevel } from '../views/full-view.ts';
import { buildPageView, formatPage, getPageViewSchema } from '../views/page.ts';
import { detailSchema, freshSchema } from './arguments.ts';
import { getMaxItemTokens } from './pager.ts';
import { defineTool, readOnlyAnnotations } from './tool.ts';

export const getPage = defineTool({
  name: 'get_page',
  title: 'One advertiser page',
  description:
    'Get the profile of one advertiser page (brand): number of ads, likes, followers, reach, countries and languages.',
  annotations: readOnlyAnnotations,
  buildExampleArguments: ({ pageId }) => ({ pageId }),
  operations: ['getPage'],
  inputSchema: z.strictObject({
    pageId: z.string().describe('pageId from a search or an ad.'),
    detail: detailSchema,
    fresh: freshSchema,
  }),
  createOutputSchema: () => z.looseObject({ page: getPageViewSchema().describe('The advertiser page.') }),
  async run({ pageId, detail = 'standard' as DetailLevel, fresh: ignoresCache }, { api, ...context }) {
    const { rawBody } = await api.getPage({ path: { pageId }, ignoresCache });
    return { data: { page: buildPageView(rawBody as object, { detail, maxTokens: getMaxItemTokens(context) }) } };
  },
  render: ({ page }, { detail }, context) => formatPage(page, detail, getMaxItemTokens(context)),
});
