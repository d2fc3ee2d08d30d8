import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { openApp } from '../../src/app.ts';
import { type Config, readConfig } from '../../src/config.ts';
import { createLog } from '../../src/log.ts';
import { bindV1 } from '../../src/mcp/bind-v1.ts';

/** A client of the real server, in this process, with the network behind it. */
export interface TestServer {
  client: Client;
  /** Everything logged, at every level. */
  logged: string[];
  call(name: string, args?: Record<string, unknown>): Promise<Result>;
  close(): Promise<void>;
}

export interface Result {
  text: string;
  data: Record<string, never>;
  isError: boolean;
  /** `_meta["ad-library/error"]`. */
  error: Record<string, unknown> | undefined;
  raw: CallToolResult;
}

export interface ServerOptions {
  config?: Partial<Config>;
  now?: () => number;
  random?: () => number;
}

export async function startServer({
  config = {},
  now = Date.now,
  random = () => 0,
}: ServerOptions): Promise<TestServer> {
  const logged: string[] = [];
  const log = createLog('debug', (line) => logged.push(line));
  const app = await openApp({ config: { ...readConfig({}), ...config }, log, now, random });
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  await bindV1(app.catalog, app.key).connect(ours);
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(theirs);
  return {
    client,
    logged,
    call: async (name, args = {}) => readResult(await client.callTool({ name, arguments: args })),
    close: async () => {
      await client.close();
      await app.close();
    },
  };
}

/** What both a reader of the text and a reader of the data see. */
export function readResult(result: unknown): Result {
  const raw = result as CallToolResult;
  return {
    text: raw.content.map((block) => (block.type === 'text' ? block.text : '')).join('\n'),
    data: (raw.structuredContent ?? {}) as Record<string, never>,
    isError: raw.isError === true,
    error: raw._meta?.['ad-library/error'] as Record<string, unknown> | undefined,
    raw,
  };
}
