import { readFileSync } from 'node:fs';

/**
 * A minimal stdio server that only lists tools, built with the official SDK for the requested protocol revision. A
 * benchmark compares its start time with the start time of our server. Run it with `node sdk-alone.ts <file with the
 * list> <revision>`.
 */
const [listFile = '', revision] = process.argv.slice(2);
const toolList = JSON.parse(readFileSync(listFile, 'utf8'));
const serverInfo = { name: 'sdk-alone', version: '1' };
const options = { capabilities: { tools: {} } };

if (revision === '2026-07-28') {
  const { Server } = await import('@modelcontextprotocol/server');
  const { serveStdio } = await import('@modelcontextprotocol/server/stdio');
  serveStdio(() => {
    const server = new Server(serverInfo, options);
    server.setRequestHandler('tools/list', () => toolList);
    return server;
  });
} else {
  const { Server } = await import('@modelcontextprotocol/sdk/server/index.js');
  const { StdioServerTransport } = await import('@modelcontextprotocol/sdk/server/stdio.js');
  const { ListToolsRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
  const server = new Server(serverInfo, options);
  server.setRequestHandler(ListToolsRequestSchema, () => toolList);
  await server.connect(new StdioServerTransport());
}
