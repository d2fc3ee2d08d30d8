import type { Tools } from './tools.ts';

export async function answer(tools: Tools): Promise<number> {
  await tools.gather_ads({ filters: { countries: ['IE'] }, maxCredits: 50 });
  const { rows } = await tools.query_ads({ sql: 'SELECT id, ctaType FROM ads', limit: 1000 });
  const labels = rows.map(([id, action]) => ({ adId: String(id), label: 'action', value: String(action) }));
  for (let start = 0; start < labels.length; start += 200)
    await tools.label_ads({ labels: labels.slice(start, start + 200) });
  const sql = "SELECT count(*) FROM labels WHERE label = 'action' AND value = 'LEARN_MORE'";
  return Number((await tools.query_ads({ sql })).rows[0]?.[0]);
}
