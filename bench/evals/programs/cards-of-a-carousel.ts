import type { Tools } from './tools.ts';

export async function answer(tools: Tools): Promise<number> {
  const filters = { countries: ['FR'], displayFormat: ['CAROUSEL'], sort: 'daysRunning' };
  const { items } = await tools.search_ads({ filters, limit: 1 });
  const [longest] = items;
  if (longest === undefined) throw new Error('There is none.');
  const { ad } = await tools.get_ad({ adId: longest.id });
  return (ad.cardViews?.length ?? 0) + (ad.moreCards ?? 0);
}
