import { createServer } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { createMcpHandler, McpServer as ModernServer } from '@modelcontextprotocol/server';
import * as z from 'zod';
import { fetchAndCondense } from './fetch-and-condense.ts';

/**
 * A server for comparison, built with `McpServer` and `registerTool` as the documentation of the official SDK
 * describes. It uses stdio, or a new stateless transport for each HTTP request. Its tools only fetch and shorten ads.
 * Run it with `node sdk-server.ts <revision> <url>`, or with `stdio` instead of a revision.
 */
const [revision, serviceUrl = ''] = process.argv.slice(2);
const serverInfo = { name: 'sdk-server', version: '1' };
const tools = {
  search_ads: { description: 'Searches ads.', inputSchema: z.object({ limit: z.number().int().optional() }) },
  whoami: { description: 'Says whose key it is.', inputSchema: z.object({}) },
};
type ToolName = keyof typeof tools;
const toolNames = Object.keys(tools) as ToolName[];

function createLegacyServer(): McpServer {
  const server = new McpServer(serverInfo);
  for (const name of toolNames)
    server.registerTool(name, tools[name], (args, { requestInfo }) =>
      fetchAndCondense(serviceUrl, name, args, String(requestInfo?.headers.authorization)),
    );
  return server;
}

function createModernServer(): ModernServer {
  const server = new ModernServer(serverInfo);
  for (const name of toolNames)
    server.registerTool(name, tools[name], (args, { http }) =>
      fetchAndCondense(serviceUrl, name, args, http?.req?.headers.get('authorization') ?? ''),
    );
  return server;
}

const serveModern = () => {
  const { fetch } = createMcpHandler(createModernServer);
  return createServer(getRequestListener((request) => fetch(request)));
};

const serveLegacy = () =>
  createServer(async (request, response) => {
    const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
    response.on('close', () => void transport.close());
    await createLegacyServer().connect(transport as Parameters<McpServer['connect']>[0]);
    await transport.handleRequest(request, response);
  });

if (revision === 'stdio') await createLegacyServer().connect(new StdioServerTransport());
else {
  const server = revision === '2026-07-28' ? serveModern() : serveLegacy();
  server.listen(0, '127.0.0.1', () => process.send?.(server.address()));
}
