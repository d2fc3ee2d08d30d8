import { boardUri } from '../board/board-resource.ts';
import { boardKey } from '../board/payload.ts';
import type { Rendered, Tool, ToolDescription } from '../tools/define-tool.ts';
import type { ReceiptView } from './receipts.ts';
import type { ToolResult } from './tool-result.ts';

/** What a list of tools says of the board, in the form of MCP Apps and in its older one. */
export function listedBoard({ showsBoard, onlyForBoard }: ToolDescription): { _meta?: Record<string, unknown> } {
  if (onlyForBoard) return { _meta: { ui: { visibility: ['app'] } } };
  return showsBoard ? { _meta: { ui: { resourceUri: boardUri }, 'ui/resourceUri': boardUri } } : {};
}

interface ToolOutcome {
  tool: Tool;
  rendered: Rendered;
  receipt: ReceiptView;
  notice: string | undefined;
}

/** Adds what the board reads, which is the same in every output mode and reaches no model. */
export function withBoardMeta(
  result: ToolResult,
  { tool, rendered: { data, text }, receipt, notice }: ToolOutcome,
): ToolResult {
  const marked = notice && { notice };
  if (tool.onlyForBoard)
    return {
      content: [{ type: 'text', text }],
      ...(result.structuredContent && { structuredContent: { receipt, ...marked } }),
      _meta: { [boardKey]: { ...data, ...marked } },
    };
  if (tool.forBoard === undefined) return result;
  return { ...result, _meta: { [boardKey]: { tool: tool.name, ...tool.forBoard(data), receipt, ...marked } } };
}
