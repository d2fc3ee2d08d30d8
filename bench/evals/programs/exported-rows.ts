import type { Tools } from './tools.ts';

export async function answer(tools: Tools): Promise<number> {
  await tools.gather_ads({ filters: { countries: ['GB'] }, maxCredits: 200 });
  const { rows } = await tools.export_ads({ format: 'jsonl', name: 'great-britain' });
  return rows;
}
