import * as z from 'zod';
import { PaymentNeededError } from '../api/call.ts';
import { createInvalidRequestError } from '../api/errors.ts';
import { buildAdView, formatAd, getAdViewSchema } from '../views/ad.ts';
import type { DetailLevel } from '../views/full-view.ts';
import { adIdSchema, detailSchema, freshSchema, seenSchema } from './arguments.ts';
import { getMaxItemTokens } from './pager.ts';
import { defineTool, readOnlyAnnotations } from './tool.ts';

const notListedText =
  'No list has shown this ad yet, so seen: true cannot return it for free. To read the ad from the service, which may cost credits, call get_ad again without seen.';

export const getAd = defineTool({
  name: 'get_ad',
  title: 'Details of one ad',
  description:
    'Get the full details of one ad (creative) by its ad id: the complete ad text, carousel cards, landing page, countries it targets, dates, and addresses of images and videos.',
  annotations: readOnlyAnnotations,
  buildExampleArguments: ({ adIds: [adId] }) => ({ adId }),
  operations: ['getAd'],
  inputSchema: z.strictObject({ adId: adIdSchema, detail: detailSchema, fresh: freshSchema, seen: seenSchema }),
  createOutputSchema: () =>
    z.looseObject({
      ad: getAdViewSchema().describe('The ad.'),
      seenIn: z.string().optional().describe('With seen true: the tool whose list showed this version of the ad.'),
    }),
  async run({ adId, detail = 'standard' as DetailLevel, fresh: ignoresCache, seen }, { api, getToolName, ...context }) {
    const { now } = context;
    const forbidsPaidRequests = seen && !ignoresCache;
    const { rawBody, listedBy } = await api
      .getAd({ path: { adId }, ignoresCache, acceptsListedAd: seen, forbidsPaidRequests })
      .catch((error) => {
        throw forbidsPaidRequests && error instanceof PaymentNeededError
          ? createInvalidRequestError(notListedText)
          : error;
      });
    const ad = buildAdView(rawBody as object, { detail, now, maxTokens: getMaxItemTokens(context) });
    return { data: { ad, ...(listedBy && { seenIn: getToolName(listedBy) }) } };
  },
  render: ({ ad, seenIn }, { detail }, context) => {
    const text = formatAd(ad, detail, getMaxItemTokens(context));
    return seenIn ? `Copy from ${seenIn}; get_ad without seen may show more.\n${text}` : text;
  },
});
