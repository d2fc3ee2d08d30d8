import { isGated } from '../../src/api/operations.ts';
import { tools } from '../../src/tools/catalog.ts';
import { ad, page } from './faulty-upstream.ts';

const exampleIds = { adIds: [ad.id], pageId: page.pageId, collectionId: '6a1f7e0c-0000-4000-8000-00000000c011' };

/** The example of every tool that makes exactly one call of the API, for the upstream that answers as documented. */
export const singleCallTools = tools
  .filter(({ operations, severalCalls }) => operations.length === 1 && !severalCalls)
  .map((tool) => ({ tool: tool.name, args: tool.example(exampleIds), isGatedTool: isGated(tool) }));

export const argsOf = (name: string) => singleCallTools.find(({ tool }) => tool === name)?.args ?? {};
