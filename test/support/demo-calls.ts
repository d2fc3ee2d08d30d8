import { tools } from '../../src/tools/catalog.ts';
import type { Result } from './server.ts';

/** The example call of one tool, with its result on demo data. */
export interface DemoCall {
  name: string;
  args: Record<string, unknown>;
  result: Result;
}

type CallTool = (name: string, args?: Record<string, unknown>) => Promise<Result>;

/** Calls each tool with its example arguments on demo data, in the order of the tool list. */
export async function makeDemoCalls(call: CallTool): Promise<DemoCall[]> {
  const demoCalls: DemoCall[] = [];
  const exampleIds = { adIds: [''], pageId: '', collectionId: '' };
  for (const { name, buildExampleArguments } of tools) {
    const args = buildExampleArguments(exampleIds);
    const result = await call(name, args);
    demoCalls.push({ name, args, result });
    const { ad, items = [] } = result.data;
    if (name === 'search_ads') exampleIds.adIds = items.map(({ id }) => id);
    if (name === 'get_ad') exampleIds.pageId = ad.pageId;
    if (name === 'list_collections') exampleIds.collectionId = items.find(({ adCount }) => adCount > 0)?.id ?? '';
  }
  return demoCalls;
}
