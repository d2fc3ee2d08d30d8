import { z } from 'zod';
import { AdView, viewAd } from '../present/ad.ts';
import { adText } from '../present/ad-text.ts';
import type { Detail } from '../present/view.ts';
import { defineTool, readOnly } from './define-tool.ts';
import { itemTokens, sourceFor } from './item-views.ts';
import { detail, fresh } from './params.ts';

export const getAd = defineTool({
  name: 'get_ad',
  title: 'One ad',
  description: 'One ad with its whole copy, cards, landing address and media. Costs credits; the result says how many.',
  annotations: readOnly,
  input: z.strictObject({ adId: z.string().describe('id of an ad from a search or a collection'), detail, fresh }),
  output: z.looseObject({ ad: AdView }),
  async run({ adId, detail = 'standard' as Detail, fresh }, { api, now, resultTokens }) {
    const { value, raw } = await api.getAd({ path: { adId }, fresh });
    return { ad: viewAd(sourceFor(detail, value, raw), { detail, now, budget: itemTokens(resultTokens) }) };
  },
  render: ({ ad }, { detail }) => adText(ad, detail),
});
