import { readFileSync } from 'node:fs';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';

/** The least server that the official SDK makes of a list of tools, over stdio. `node sdk-alone.ts <file with the list>`. */
const listed = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8'));
const server = new Server({ name: 'sdk-alone', version: '1' }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => listed);
await server.connect(new StdioServerTransport());
