import * as z from 'zod';
import { gatheringText } from '../dataset/gathering-result.ts';
import { defineTool, readOnly } from './define-tool.ts';
import { gather } from './gather.ts';
import { adFilters, checkQuestion, collectionId, fresh, split } from './params.ts';

export const gatherAds = defineTool({
  name: 'gather_ads',
  title: 'Gather ads',
  description:
    'Read all ads that match, or a collection, into the dataset and summarize them. Call it again to continue; nothing is paid twice.',
  annotations: readOnly,
  operations: ['searchAds', 'listCollectionItems', 'listCollections'],
  severalCalls: true,
  showsBoard: true,
  forBoard: (data) => {
    const { gathering, estimate, read } = data as { gathering: string | null; estimate?: object; read: number };
    return { gathering, ...(estimate && { estimate: { ...estimate, read } }) };
  },
  reportsProgress: true,
  input: z.strictObject({
    filters: adFilters,
    split,
    collectionId: collectionId.optional(),
    maxAds: z.int().min(1).max(10_000).optional().describe('default 1000'),
    maxCredits: z.number().min(0).describe('0: estimate, by at most one search'),
    fresh: fresh.describe('true: read again and report changes'),
  }),
  output: z.looseObject({
    gathering: z.string().nullable(),
    found: z.number().nullable(),
    read: z.number(),
    complete: z.boolean(),
    stopped: z.string(),
    summary: z.string(),
  }),
  run({ filters, split, collectionId, maxAds = 1000, maxCredits, fresh = false }, context) {
    checkQuestion([filters, ...(split ?? [])], { collectionId, split });
    checkQuestion([], { collectionId, filters });
    return gather({ question: { filters, split, collectionId }, maxAds, maxCredits, fresh }, context);
  },
  render: gatheringText,
});
