import type { AdLibraryError } from '../api/errors.ts';
import type { Prompt } from '../prompts/define-prompt.ts';
import { callTool, errorResult, type ServerContext, type ToolCall, type ToolResult } from './call-tool.ts';
import { getPrompt, type ListedPrompt, listPrompts, type PromptRequest, type PromptResult } from './get-prompt.ts';
import { instructions } from './instructions.ts';
import { type ListedTool, listTools } from './list-tools.ts';

/** Everything the SDK binders serve. Built once per process and the same for every caller. */
export interface Catalog {
  serverInfo: { name: string; title: string; version: string };
  capabilities: { tools: object; prompts: object };
  instructions: string;
  tools: ListedTool[];
  prompts: ListedPrompt[];
  callTool(call: ToolCall): Promise<ToolResult>;
  /** Whether the tool of that name reports progress. */
  reportsProgress(name: unknown): boolean;
  /** The result of a call that is rejected before it runs. */
  refuse(error: AdLibraryError): ToolResult;
  getPrompt(request: PromptRequest, invalid: (problem: string) => Error): PromptResult;
}

export interface CatalogOptions {
  server: ServerContext;
  prompts: readonly Prompt[];
  version: string;
  filterHints?: Readonly<Record<string, string>> | undefined;
}

export function createCatalog({ server, prompts, version, filterHints }: CatalogOptions): Catalog {
  return {
    serverInfo: { name: 'ad-library-mcp', title: 'Ad Library', version },
    // The lists never change, so `listChanged` is not announced.
    capabilities: { tools: {}, prompts: {} },
    instructions: [
      instructions({ offered: [...server.tools.values()], keepsAnswers: server.keepsAnswers }),
      server.notice,
    ]
      .filter(Boolean)
      .join('\n'),
    tools: listTools(server.tools.values(), { withOutput: server.output !== 'text', filterHints }),
    prompts: listPrompts(prompts),
    callTool: (call) => callTool(server, call),
    reportsProgress: (name) => typeof name === 'string' && server.tools.get(name)?.reportsProgress === true,
    refuse: (error) => errorResult(server, error).result,
    getPrompt: (request, invalid) => getPrompt(prompts, request, invalid),
  };
}
