import type { Tools } from './tools.ts';

export async function answer(tools: Tools): Promise<number> {
  const split = [{ displayFormat: ['VIDEO'] }];
  const { total, counts } = await tools.count_ads({ filters: { countries: ['DE'] }, split });
  return Math.round((100 * (counts?.[0]?.total ?? 0)) / (total ?? 1));
}
