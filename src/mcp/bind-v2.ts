import { ProtocolError, ProtocolErrorCode, Server } from '@modelcontextprotocol/server';
import type { Catalog } from './catalog.ts';

/** The catalogue on the SDK line that speaks revision 2026-07-28. One server serves one caller. */
export function bindV2(catalog: Catalog, key: string | undefined): Server {
  const { serverInfo, capabilities, instructions } = catalog;
  const server = new Server(serverInfo, { capabilities, instructions });
  server.setRequestHandler('tools/list', () => ({ tools: catalog.tools }));
  server.setRequestHandler('tools/call', ({ params }, { mcpReq }) =>
    catalog.callTool({ name: params.name, arguments: params.arguments, key, signal: mcpReq.signal }),
  );
  server.setRequestHandler('prompts/list', () => ({ prompts: catalog.prompts }));
  server.setRequestHandler('prompts/get', ({ params }) =>
    catalog.getPrompt(params, (problem) => new ProtocolError(ProtocolErrorCode.InvalidParams, problem)),
  );
  return server;
}
