import { AdLibraryError } from '../api/errors.ts';
import { wholeNumber } from '../dataset/ad-list.ts';
import type { GatherOutput } from '../dataset/gathering-text.ts';
import type { GatheringQuestion } from '../dataset/gatherings.ts';
import { count, creditsText } from '../present/list-text.ts';
import { maxPageSize } from './filter-values.ts';
import type { ToolContext } from './tool-context.ts';

/** How many ads there are, and what reading all of them may cost: by one search of one ad, or the list of collections. */
export async function estimate(question: GatheringQuestion, context: ToolContext): Promise<GatherOutput> {
  const { collectionId, split } = question;
  const ads = await (collectionId === undefined ? countSearch(question, context) : countItems(collectionId, context));
  const operation = collectionId === undefined ? 'searchAds' : 'listCollectionItems';
  const size = collectionId === undefined ? maxPageSize(context.adFilters) : 100;
  const pages = ads === null ? null : Math.ceil(ads / size);
  // Opened only now, because the search has shown a price.
  const allowance = await context.allowance(0);
  const cost = ads === null ? undefined : await allowance.costOf({ operation, items: ads, size });
  const credits = cost && cost.least === cost.most ? cost.most : null;
  const price = cost ? `${cost.most === 0 ? '' : 'for '}${creditsText(cost)}` : 'at a price that is not known yet';
  const scope = split
    ? ' It is about filters alone: the parts of split may match fewer ads, or the same ones twice.'
    : '';
  const summary =
    ads === null
      ? 'The service does not say how many ads there are.'
      : `Estimate: ${count(ads, 'ad')} in ${count(pages ?? 0, 'page')}, ${price}.${scope}`;
  return {
    ...{ gathering: null, found: ads, read: 0, added: 0, updated: 0, gone: null, complete: false },
    ...{ stopped: 'estimate', estimate: { ads, pages, credits }, summary },
  };
}

async function countSearch({ filters }: GatheringQuestion, { api }: ToolContext): Promise<number | null> {
  const { value } = await api.searchAds({ body: { ...filters, limit: 1 } });
  return wholeNumber(value.totalHits) ?? null;
}

async function countItems(collectionId: string, { api }: ToolContext): Promise<number | null> {
  const { value, raw } = await api.listCollections();
  const collection = value.items.find(({ id }) => id?.toLowerCase() === collectionId);
  // The document knows no further pages of this list.
  const { hasMore, cursor } = raw as { hasMore?: unknown; cursor?: unknown };
  if (collection === undefined && !hasMore && !cursor) throw noCollection();
  return wholeNumber(collection?.adCount) ?? null;
}

const noCollection = () =>
  new AdLibraryError({ kind: 'not_found', problem: 'There is no collection with this id in the list of collections.' });
