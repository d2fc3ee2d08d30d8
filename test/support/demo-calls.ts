import { tools } from '../../src/tools/catalog.ts';
import type { Result } from './server.ts';

export interface DemoCall {
  name: string;
  args: Record<string, unknown>;
  result: Result;
}

type Call = (name: string, args?: Record<string, unknown>) => Promise<Result>;

/** Makes the example of each tool on demo data, in the order hosts list them. */
export async function makeDemoCalls(call: Call): Promise<DemoCall[]> {
  const called: DemoCall[] = [];
  const found = { adIds: [''], pageId: '', collectionId: '' };
  for (const { name, example } of tools) {
    const args = example(found);
    const result = await call(name, args);
    called.push({ name, args, result });
    const { ad, items = [] } = result.data;
    if (name === 'search_ads') found.adIds = items.map(({ id }) => id);
    if (name === 'get_ad') found.pageId = ad.pageId;
    if (name === 'list_collections') found.collectionId = items.find(({ adCount }) => adCount > 0)?.id ?? '';
  }
  return called;
}
