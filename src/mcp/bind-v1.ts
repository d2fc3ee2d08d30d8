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
import { progressReporter } from './progress.ts';

/** Serves the catalogue to one client with the SDK that speaks revisions up to 2025-11-25. */
export function bindV1(catalog: Catalog, credentials: Credentials): Server {
  const { serverInfo, capabilities, instructions } = catalog;
  const server = new Server(serverInfo, { capabilities, instructions, jsonSchemaValidator: noValidator });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: catalog.tools }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }, { signal, _meta, sendNotification }) => {
    const reporter = progressReporter(_meta?.progressToken, (progress) =>
      sendNotification({ method: 'notifications/progress', params: { ...progress } }),
    );
    const { name, arguments: args } = params;
    const call = { name, arguments: args, ...credentials, signal, onProgress: reporter?.report };
    return catalog.callTool(call).finally(() => reporter?.end());
  });
  server.setRequestHandler(ListPromptsRequestSchema, () => ({ prompts: catalog.prompts }));
  server.setRequestHandler(GetPromptRequestSchema, ({ params }) =>
    catalog.getPrompt(params, (problem) => new McpError(ErrorCode.InvalidParams, problem)),
  );
  return server;
}

/** Validates forms that a user fills in, and this server shows none. Without one, each server would build its own. */
const noValidator = {
  getValidator: () => {
    throw new Error('This server validates no client responses.');
  },
};

/** The request schemas of this SDK, by method. */
export const requestsV1: RequestSchemas = {
  request: JSONRPCRequestSchema,
  initialize: InitializeRequestSchema,
  ping: PingRequestSchema,
  'tools/list': ListToolsRequestSchema,
  'tools/call': CallToolRequestSchema,
  'prompts/list': ListPromptsRequestSchema,
  'prompts/get': GetPromptRequestSchema,
};
