import type { Result } from './server.ts';

export interface DemoCall {
  name: string;
  args: Record<string, unknown>;
  result: Result;
}

type Call = (name: string, args?: Record<string, unknown>) => Promise<Result>;

/** Calls each tool once on demo data, with arguments that earlier results gave, in the order hosts list them. */
export async function makeDemoCalls(call: Call): Promise<DemoCall[]> {
  const called: DemoCall[] = [];
  const next = async (name: string, args: Record<string, unknown> = {}) => {
    const result = await call(name, args);
    called.push({ name, args, result });
    return result.data;
  };
  const { items: ads } = await next('search_ads', {
    filters: { query: '"free shipping"', countries: ['US'], active: true, sort: 'daysRunning' },
    limit: 2,
  });
  const { ad } = await next('get_ad', { adId: ads[0]?.id });
  await next('search_pages', { filters: { countries: ['US'] }, limit: 2 });
  await next('get_page', { pageId: ad.pageId });
  const filters = { countries: ['DE'] };
  await next('count_ads', { filters, split: [{ displayFormat: ['VIDEO'] }, { displayFormat: ['IMAGE'] }] });
  await next('gather_ads', { filters, maxAds: 50, maxCredits: 10 });
  const sql = 'SELECT ctaType, count(*) AS ads, median(daysRunning) AS medianDays FROM ads GROUP BY 1 ORDER BY 2 DESC';
  await next('query_ads', { sql });
  await next('view_ads', { adIds: ads.map(({ id }) => id) });
  await next('export_ads', { name: 'ads' });
  const { items: collections } = await next('list_collections');
  const collection = { collectionId: collections.find(({ adCount }) => adCount > 0)?.id, itemType: 'ads' };
  await next('list_collection_items', { ...collection, limit: 2 });
  await next('add_collection_item', { ...collection, itemId: ads[0]?.id });
  await next('get_credits');
  await next('get_account');
  await next('whoami');
  return called;
}
