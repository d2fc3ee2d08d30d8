import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import {
  CallToolRequestSchema,
  ErrorCode,
  GetPromptRequestSchema,
  InitializeRequestSchema,
  JSONRPCRequestSchema,
  ListPromptsRequestSchema,
  ListToolsRequestSchema,
  McpError,
  PingRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import type { Credentials } from '../api/client.ts';
import type { Catalog } from './catalog.ts';
import type { RequestSchemas } from './check-request.ts';

/** The catalogue on the SDK line that speaks revisions up to 2025-11-25, for one client. */
export function bindV1(catalog: Catalog, credentials: Credentials): Server {
  const { serverInfo, capabilities, instructions } = catalog;
  const server = new Server(serverInfo, { capabilities, instructions, jsonSchemaValidator: unused });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: catalog.tools }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }, { signal }) =>
    catalog.callTool({ name: params.name, arguments: params.arguments, ...credentials, signal }),
  );
  server.setRequestHandler(ListPromptsRequestSchema, () => ({ prompts: catalog.prompts }));
  server.setRequestHandler(GetPromptRequestSchema, ({ params }) =>
    catalog.getPrompt(params, (problem) => new McpError(ErrorCode.InvalidParams, problem)),
  );
  return server;
}

/** It would check what a person typed into a form of ours, and we show none; without one, each server makes its own. */
const unused = {
  getValidator: () => {
    throw new Error('No answer of a client is validated here.');
  },
};

/** Requests as this line validates them, by method. */
export const requestsV1: RequestSchemas = {
  request: JSONRPCRequestSchema,
  initialize: InitializeRequestSchema,
  ping: PingRequestSchema,
  'tools/list': ListToolsRequestSchema,
  'tools/call': CallToolRequestSchema,
  'prompts/list': ListPromptsRequestSchema,
  'prompts/get': GetPromptRequestSchema,
};
