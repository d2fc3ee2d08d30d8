import type { ImageContent, ResourceLink } from '../tools/define-tool.ts';

/** The part of MCP's CallToolResult that both SDKs share. */
export type ToolResult = {
  content: ({ type: 'text'; text: string } | ResourceLink | ImageContent)[];
  structuredContent?: Record<string, unknown>;
  isError?: true;
  _meta?: Record<string, unknown>;
};
