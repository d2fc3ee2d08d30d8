import {
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  Server,
  specTypeSchemas,
} from '@modelcontextprotocol/server';
import type { Credentials } from '../api/client.ts';
import type { Catalog } from './catalog.ts';
import type { RequestSchemas } from './check-request.ts';
import { progressReporter } from './progress.ts';

/** The lists are the same for every caller and never change while the process runs. */
const listHint = { ttlMs: 3_600_000, cacheScope: 'public' } as const;
const cacheHints = { 'tools/list': listHint, 'prompts/list': listHint, 'server/discover': listHint };

/** Serves the catalogue to one client with the SDK that speaks revision 2026-07-28. */
export function bindV2(catalog: Catalog, credentials: Credentials): Server {
  const { serverInfo, capabilities, instructions } = catalog;
  const server = new Server(serverInfo, { capabilities, instructions, cacheHints });
  server.setRequestHandler('tools/list', async () => ({ tools: await catalog.tools() }));
  server.setRequestHandler('tools/call', ({ params }, { mcpReq }) => {
    const { signal, _meta } = mcpReq;
    const reporter = progressReporter(_meta?.progressToken, (progress) =>
      mcpReq.notify({ method: 'notifications/progress', params: { ...progress } }),
    );
    const { name, arguments: args } = params;
    const call = { name, arguments: args, ...credentials, signal, onProgress: reporter?.report };
    return catalog.callTool(call).finally(() => reporter?.end());
  });
  server.setRequestHandler('prompts/list', () => ({ prompts: catalog.prompts }));
  server.setRequestHandler('prompts/get', ({ params }) =>
    catalog.getPrompt(params, (problem) => new ProtocolError(ProtocolErrorCode.InvalidParams, problem)),
  );
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [] }));
  server.setRequestHandler('resources/list', async () => ({
    resources: await catalog.listResources(credentials.tenantId),
  }));
  server.setRequestHandler('resources/read', ({ params }) =>
    catalog.readResource(credentials.tenantId, params.uri, (problem) => new ResourceNotFoundError(params.uri, problem)),
  );
  return server;
}

/** The request schemas of this SDK, by method. */
export const requestsV2: RequestSchemas = {
  request: specTypeSchemas.JSONRPCRequest,
  'tools/list': specTypeSchemas.ListToolsRequest,
  'tools/call': specTypeSchemas.CallToolRequest,
  'prompts/list': specTypeSchemas.ListPromptsRequest,
  'prompts/get': specTypeSchemas.GetPromptRequest,
  'resources/list': specTypeSchemas.ListResourcesRequest,
  'resources/templates/list': specTypeSchemas.ListResourceTemplatesRequest,
  'resources/read': specTypeSchemas.ReadResourceRequest,
};
