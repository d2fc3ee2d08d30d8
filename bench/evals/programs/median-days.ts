import type { Tools } from './tools.ts';

export async function answer(tools: Tools): Promise<number> {
  await tools.gather_ads({ filters: { countries: ['DE'] }, maxCredits: 50 });
  const sql = "SELECT median(daysRunning) FROM ads WHERE displayFormat = 'VIDEO'";
  const { rows } = await tools.query_ads({ sql });
  return Number(rows[0]?.[0]);
}
