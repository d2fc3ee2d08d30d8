import type { AdLibraryError } from '../api/errors.ts';
import type { SearchFilters } from '../api/search-filters.ts';
import { boardResource, boardUri, readBoard } from '../board/board-resource.ts';
import type { Prompt } from '../prompts/prompts.ts';
import type { ServerContext, ToolCall } from './call-tool.ts';
import { filterHints } from './filter-descriptions.ts';
import { getPrompt, type ListedPrompt, listPrompts, type PromptRequest, type PromptResult } from './get-prompt.ts';
import { instructions } from './instructions.ts';
import { type ListedTool, listTools } from './list-tools.ts';
import { type ListedResource, listResources, type ResourceContents, readResource } from './resources.ts';
import type { ToolResult } from './tool-result.ts';

/** Everything the SDK binders serve. Built once per process and the same for every caller. */
export interface Catalog {
  serverInfo: { name: string; title: string; version: string };
  capabilities: { tools: object; prompts: object; resources: object };
  instructions: string;
  hasTool(name: string): boolean;
  /** The same at every call. */
  tools(): Promise<ListedTool[]>;
  prompts: ListedPrompt[];
  /** A call's whole time in milliseconds, waiting for its turn included. */
  timeoutMs: number;
  callTool(call: ToolCall): Promise<ToolResult>;
  /** Whether the tool of that name reports progress. */
  reportsProgress(name: unknown): boolean;
  /** The result of a call that is rejected before it runs. */
  refuse(error: AdLibraryError): Promise<ToolResult>;
  getPrompt(request: PromptRequest, invalid: (problem: string) => Error): PromptResult;
  listResources(tenantId: string): Promise<ListedResource[]>;
  readResource(tenantId: string, uri: string, notFound: (problem: string) => Error): Promise<ResourceContents>;
}

export interface CatalogOptions {
  server: ServerContext;
  prompts: readonly Prompt[];
  version: string;
  /** Finds out, once, which filters the searches take. */
  searchFilters?: (() => Promise<SearchFilters | undefined>) | undefined;
}

export function createCatalog({
  server,
  prompts,
  version,
  searchFilters = async () => undefined,
}: CatalogOptions): Catalog {
  const list = async () => {
    const filters = await searchFilters();
    const withOutput = server.output !== 'text';
    return listTools(server.tools.values(), { withOutput, filterHints: filters && filterHints(filters) });
  };
  const showsBoard = [...server.tools.values()].some((tool) => tool.showsBoard);
  let tools: Promise<ListedTool[]> | undefined;
  // Loaded with the first call: every session starts with a list of tools, and some end there.
  let loaded: Promise<typeof import('./call-tool.ts')> | undefined;
  const calling = () => {
    loaded ??= import('./call-tool.ts');
    return loaded;
  };
  return {
    serverInfo: { name: 'ad-library-mcp', title: 'Ad Library', version },
    // The lists never change, so `listChanged` is not announced.
    capabilities: { tools: {}, prompts: {}, resources: {} },
    instructions: [
      instructions({ offered: [...server.tools.values()], keepsAnswers: server.keepsAnswers }),
      server.notice,
    ]
      .filter(Boolean)
      .join('\n'),
    hasTool: (name) => server.tools.has(name),
    tools: () => {
      tools ??= list();
      return tools;
    },
    prompts: listPrompts(prompts),
    timeoutMs: server.timeoutMs,
    callTool: async (call) => (await calling()).callTool(server, call),
    reportsProgress: (name) => typeof name === 'string' && server.tools.get(name)?.reportsProgress === true,
    refuse: async (error) => (await calling()).errorResult(server, error).result,
    getPrompt: (request, invalid) => getPrompt(prompts, request, invalid),
    listResources: async (tenantId) => [
      ...(showsBoard ? [boardResource] : []),
      ...(await listResources(await server.exports(tenantId))),
    ],
    readResource: async (tenantId, uri, notFound) =>
      showsBoard && uri === boardUri ? readBoard() : readResource(await server.exports(tenantId), uri, notFound),
  };
}
