import type { AdLibraryError } from '../api/errors.ts';
import type { Prompt } from '../prompts/define-prompt.ts';
import { callTool, refusal, type Service, type ToolCall, type ToolResult } from './call-tool.ts';
import { getPrompt, type ListedPrompt, listPrompts, type PromptRequest, type PromptResult } from './get-prompt.ts';
import { instructions } from './instructions.ts';
import { type ListedTool, listTools } from './list-tools.ts';

/** Everything a binder puts on the wire, made once per process and the same for every caller. */
export interface Catalog {
  serverInfo: { name: string; title: string; version: string };
  capabilities: { tools: object; prompts: object };
  instructions: string;
  tools: ListedTool[];
  prompts: ListedPrompt[];
  callTool(call: ToolCall): Promise<ToolResult>;
  /** The result of a call that there is no place for. */
  refuse(error: AdLibraryError): ToolResult;
  getPrompt(request: PromptRequest, invalid: (problem: string) => Error): PromptResult;
}

export interface CatalogOptions {
  service: Service;
  prompts: readonly Prompt[];
  version: string;
  filterHints?: Readonly<Record<string, string>> | undefined;
}

export function createCatalog({ service, prompts, version, filterHints }: CatalogOptions): Catalog {
  return {
    serverInfo: { name: 'ad-library-mcp', title: 'Ad Library', version },
    // The lists never change while the process runs, so none announces changes.
    capabilities: { tools: {}, prompts: {} },
    instructions: [
      instructions({ offered: [...service.tools.values()], keepsAnswers: service.keepsAnswers }),
      service.notice,
    ]
      .filter(Boolean)
      .join('\n'),
    tools: listTools(service.tools.values(), { withOutput: service.output !== 'text', filterHints }),
    prompts: listPrompts(prompts),
    callTool: (call) => callTool(service, call),
    refuse: (error) => refusal(service, error).result,
    getPrompt: (request, invalid) => getPrompt(prompts, request, invalid),
  };
}
