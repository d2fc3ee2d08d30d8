import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { Protocol } from '@modelcontextprotocol/sdk/shared/protocol.js';
import {
  CallToolRequestSchema,
  ErrorCode,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListToolsRequestSchema,
  McpError,
} from '@modelcontextprotocol/sdk/types.js';
import type { Credentials } from '../api/client.ts';
import type { Catalog } from './catalog.ts';
import { credentialsOf } from './credentials-of.ts';

/**
 * The catalogue on the SDK line that speaks revisions up to 2025-11-25. A server speaks with one client at a
 * time, for the given payer or, over HTTP, for the one that comes with each message.
 */
export function bindV1(catalog: Catalog, bound?: Credentials): Server {
  const { serverInfo, capabilities, instructions } = catalog;
  const server = new Server(serverInfo, { capabilities, instructions });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: catalog.tools }));
  // The server's own method would look at every call and every result once more than it takes to hand them on.
  Protocol.prototype.setRequestHandler.call(server, CallToolRequestSchema, ({ params }, { signal, authInfo }) =>
    catalog.callTool({ name: params.name, arguments: params.arguments, ...credentialsOf(authInfo, bound), signal }),
  );
  server.setRequestHandler(ListPromptsRequestSchema, () => ({ prompts: catalog.prompts }));
  server.setRequestHandler(GetPromptRequestSchema, ({ params }) =>
    catalog.getPrompt(params, (problem) => new McpError(ErrorCode.InvalidParams, problem)),
  );
  return server;
}
