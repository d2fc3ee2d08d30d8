import type { Tools } from './tools.ts';

export async function answer(tools: Tools): Promise<number> {
  const filters = { countries: ['DE'], displayFormat: ['VIDEO'] };
  await tools.watch_ads({ name: 'Videos in Germany', filters, maxCredits: 20 });
  const { watches } = await tools.check_watches({ maxCredits: 20 });
  return watches[0]?.read ?? 0;
}
