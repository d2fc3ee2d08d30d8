import { canCostCredits } from '../../src/api/operations.ts';
import { tools } from '../../src/tools/catalog.ts';
import { ad, page } from './faulty-upstream.ts';

const exampleIds = { adIds: [ad.id], pageId: page.pageId, collectionId: '6a1f7e0c-0000-4000-8000-00000000c011' };

/** Example calls of all tools that make exactly one API call. Their ids match those in `respondAsDocumented`. */
export const singleCallTools = tools
  .filter(({ operations, makesSeveralApiCalls }) => operations.length === 1 && !makesSeveralApiCalls)
  .map((tool) => ({
    tool: tool.name,
    args: tool.buildExampleArguments(exampleIds),
    isGatedTool: canCostCredits(tool),
  }));

/** Returns the example arguments of a tool. */
export const getExampleArguments = (name: string) => singleCallTools.find(({ tool }) => tool === name)?.args ?? {};
