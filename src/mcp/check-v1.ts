import {
  CallToolRequestSchema,
  GetPromptRequestSchema,
  InitializeRequestSchema,
  JSONRPCMessageSchema,
  ListPromptsRequestSchema,
  ListToolsRequestSchema,
  PingRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';

const schemas = {
  initialize: InitializeRequestSchema,
  ping: PingRequestSchema,
  'tools/list': ListToolsRequestSchema,
  'tools/call': CallToolRequestSchema,
  'prompts/list': ListPromptsRequestSchema,
  'prompts/get': GetPromptRequestSchema,
};

export interface ProtocolProblem {
  code: number;
  message: string;
}

/** What is wrong with a message, in a line. The SDK answers with a dump of its validation, or not at all. */
export function checkV1(message: { method?: string }): ProtocolProblem | undefined {
  if (!JSONRPCMessageSchema.safeParse(message).success)
    return { code: -32_600, message: 'Invalid request: not a JSON-RPC 2.0 message as MCP has it.' };
  const method = message.method ?? '';
  const schema = Object.hasOwn(schemas, method) ? schemas[method as keyof typeof schemas] : undefined;
  const issue = schema?.safeParse(message).error?.issues[0];
  if (issue === undefined) return undefined;
  const path = issue.path.join('.').slice(0, 100);
  return { code: -32_602, message: `Invalid params: ${path}: ${issue.message}.` };
}
