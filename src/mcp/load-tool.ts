import { addCollectionItem } from '../tools/add-collection-item.ts';
import { getAccount } from '../tools/get-account.ts';
import { getAd } from '../tools/get-ad.ts';
import { getCredits } from '../tools/get-credits.ts';
import { getPage } from '../tools/get-page.ts';
import { listCollectionItems } from '../tools/list-collection-items.ts';
import { listCollections } from '../tools/list-collections.ts';
import { searchAds } from '../tools/search-ads.ts';
import { searchPages } from '../tools/search-pages.ts';
import type { Tool } from '../tools/tool.ts';
import { whoami } from '../tools/whoami.ts';
import { describedTools } from './described-tools.ts';

/** The tools that call a single API operation each. Their code is loaded together with this module. */
const operationTools: readonly Tool[] = [
  searchAds,
  getAd,
  searchPages,
  getPage,
  listCollections,
  listCollectionItems,
  addCollectionItem,
  getCredits,
  getAccount,
  whoami,
];

/**
 * Returns the tool with the given name, or undefined. Loads the tools for research and for the board (the interactive
 * view of ads) only on demand. They contain most of the code, and many sessions only search.
 */
export async function loadTool(name: string): Promise<Tool | undefined> {
  const operationTool = operationTools.find((tool) => tool.name === name);
  if (operationTool) return operationTool;
  const { allTools } = await import('../board/board.ts');
  return allTools.find((tool) => tool.name === name);
}

/**
 * Returns the name of the tool that calls an API operation, e.g. `search_ads` for `searchAds`. Used in texts for
 * models, which know the tools but not the API operations.
 */
export const getToolName = (operation: string): string =>
  describedTools.find(
    ({ makesSeveralApiCalls, operations: [calledOperation] }) => !makesSeveralApiCalls && calledOperation === operation,
  )?.name ?? operation;
