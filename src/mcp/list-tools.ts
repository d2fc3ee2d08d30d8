import { boardUri } from '../board/board-resource.ts';
import type { ToolDescription } from '../tools/define-tool.ts';
import type { DescribedTool, ObjectSchema } from './describe-tool.ts';
import type { ArgumentHints } from './filter-descriptions.ts';

/** A tool in `tools/list` (MCP specification, *Tools*), in the part that both SDKs share. */
export interface ListedTool {
  name: string;
  title: string;
  description: string;
  inputSchema: ObjectSchema;
  outputSchema?: ObjectSchema;
  annotations: ToolDescription['annotations'] & { title: string };
  _meta?: Record<string, unknown>;
}

export interface ListOptions {
  /** False where results have no structured content: then no output schemas are listed. */
  withOutput: boolean;
  /** By tool name, where the filter keys are known. */
  filterHints?: Readonly<Record<string, ArgumentHints>> | undefined;
}

export function listTools(tools: Iterable<DescribedTool>, { withOutput, filterHints = {} }: ListOptions): ListedTool[] {
  return [...tools].map((tool) => ({
    name: tool.name,
    title: tool.title,
    description: tool.description,
    inputSchema: withHints(tool.inputSchema, filterHints[tool.name]),
    ...(withOutput && { outputSchema: tool.outputSchema }),
    annotations: { title: tool.title, ...tool.annotations },
    ...listedBoard(tool),
  }));
}

/** What a list of tools says of the board, in the form of MCP Apps and in its older one. */
function listedBoard({ showsBoard, onlyForBoard }: ToolDescription): { _meta?: Record<string, unknown> } {
  if (onlyForBoard) return { _meta: { ui: { visibility: ['app'] } } };
  return showsBoard ? { _meta: { ui: { resourceUri: boardUri }, 'ui/resourceUri': boardUri } } : {};
}

function withHints(listed: ObjectSchema, hints: ArgumentHints = unknownFilters): ObjectSchema {
  const { filters, limit, ...others } = listed.properties as Record<string, object>;
  // Tools without pages of their own point to search_ads.
  if (filters === undefined || limit === undefined) return listed;
  const described = { ...filters, description: hints.filters };
  return { ...listed, properties: { filters: described, limit: { ...limit, ...limitHints(hints.limit) }, ...others } };
}

const unknownFilters: ArgumentHints = {
  filters:
    "Keys as in the service's documentation, sent unchanged. An unknown key may be refused, or ignored and charged.",
  limit: undefined,
};

const limitHints = (limit: ArgumentHints['limit']) => ({
  ...(limit?.default !== undefined && { description: `Items per page, default ${limit.default}` }),
  ...(limit?.maximum !== undefined && { maximum: limit.maximum }),
});
