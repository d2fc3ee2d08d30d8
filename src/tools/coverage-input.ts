import { type CoverageInput, maxListedGatherings, selectIncompleteGatherings } from '../dataset/coverage.ts';
import { getAdQuery } from '../dataset/gatherings.ts';
import type { DatasetContents } from '../storage/dataset.ts';
import { estimateRemainingAds } from './gather-ads.ts';
import type { ToolContext } from './tool.ts';

/**
 * Collects the data for computing coverage. The coverage of a query result says which ads the result is based on and
 * which ads are missing. Does not call the service.
 */
export async function readCoverageInput(
  contents: DatasetContents,
  context: ToolContext,
): Promise<Pick<CoverageInput, 'contents' | 'adFacts' | 'listingOrders' | 'remainingPrices'>> {
  const rowReader = context.getAdRowReader();
  const incompleteGatherings = selectIncompleteGatherings(contents).slice(0, maxListedGatherings);
  if (incompleteGatherings.length === 0) return { contents, adFacts: await rowReader.readFacts(contents) };
  const prices = await Promise.all(
    incompleteGatherings.map(async (gathering) => {
      const price = gathering.hasReadLastPage
        ? undefined
        : await estimateRemainingAds(getAdQuery(gathering), contents, false, context);
      return [gathering.id, price] as const;
    }),
  );
  return {
    contents,
    adFacts: await rowReader.readFacts(contents),
    listingOrders: await rowReader.readListingOrders(contents),
    remainingPrices: new Map(prices),
  };
}
