import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import type { CallToolResult, ClientCapabilities } from '@modelcontextprotocol/sdk/types.js';
import type { Credentials } from '../../src/api/client.ts';
import { openApp } from '../../src/app.ts';
import { readConfig } from '../../src/config/read-config.ts';
import type { Config } from '../../src/config/settings.ts';
import { createLog } from '../../src/logging/log.ts';
import { bindV1 } from '../../src/mcp/sdk-v1.ts';
import type { Resolve } from '../../src/pictures/fetch-picture.ts';
import type { Datasets } from '../../src/storage/dataset.ts';
import { openMemoryState } from '../../src/storage/open.ts';
import type { ReplicaState } from '../../src/storage/store/open-store.ts';
import { mcpAppsCapabilities } from './capabilities.ts';

export type TestServer = Awaited<ReturnType<typeof startServer>>;

/** An ad, a page or a collection, as far as tests read it. */
export interface ResultItem {
  id: string;
  pageId: string;
  name: string;
  adCount: number;
  pageCount: number;
  body: string;
  [field: string]: unknown;
}

/** The structured result of any tool. A test that reads a field its tool does not give reads undefined, and fails. */
export interface ResultData {
  items: ResultItem[];
  cursor: string | null;
  hasMore: boolean;
  shown?: { from: number; to: number; of: number };
  ad: ResultItem;
  thisServer: { charged: number; uncertain?: number; prices: object; rules: object };
  receipt: { charged: number; remaining: number };
  [field: string]: unknown;
}

export type Result = ReturnType<typeof readResult>;

export interface ServerOptions {
  config?: Partial<Config>;
  now?: () => number;
  /** By default it goes with the clock. */
  elapsed?: () => number;
  random?: () => number;
  resolve?: Resolve;
  /** Where ads are held, in place of the memory of the process. */
  datasets?: Datasets;
}

/** What is shared by a server alone. */
const shareDatasets = (datasets: Datasets): Partial<ReplicaState> => ({
  state: (options) => ({ ...openMemoryState(options), datasets }),
});

/** A client of the real server, in this process, with the network behind it. */
export async function startServer({
  config = {},
  now = Date.now,
  elapsed = now,
  random = () => 0,
  resolve,
  datasets,
}: ServerOptions) {
  const logLines: string[] = [];
  const log = createLog('debug', (line) => logLines.push(line));
  const app = await openApp({
    config: { ...readConfig({}), ...config },
    log,
    now,
    elapsed,
    random,
    ...(resolve && { resolve }),
    ...(datasets && { shared: shareDatasets(datasets) as ReplicaState }),
  });
  const clients: Client[] = [];
  const connect = async (payer: Credentials, name = 'test', capabilities: ClientCapabilities = mcpAppsCapabilities) => {
    const [ours, theirs] = InMemoryTransport.createLinkedPair();
    await bindV1(app.catalog, payer).connect(ours);
    const client = new Client({ name, version: '1' }, { capabilities });
    await client.connect(theirs);
    // From then on the client checks every result against the schema that was listed.
    await client.listTools();
    clients.push(client);
    /** @param options with a signal that cancels the call, as a host does whose person lost patience */
    const call = async (name: string, args: Record<string, unknown> = {}, options: { signal?: AbortSignal } = {}) =>
      readResult(await client.callTool({ name, arguments: args }, undefined, options));
    return {
      client,
      call,
      /** The rows of a statement. */
      queryRows: async (sql: string) =>
        (await call('query_ads', { sql, limit: 1000, cell: 20_000 })).data.rows as unknown[][],
      /** What a resource holds. */
      readResource: async (uri: unknown) =>
        (await client.readResource({ uri: String(uri) })).contents[0] as {
          text: string;
          blob?: string;
          mimeType: string;
        },
    };
  };
  return {
    ...(await connect(app.credentials)),
    /** The same server, as another key's owner sees it over HTTP. */
    connectAs: (key: string, clientName?: string, capabilities?: ClientCapabilities) =>
      connect({ apiKey: key, tenantId: key }, clientName, capabilities),
    logged: logLines,
    /** Closes the app while its clients are still there. */
    stopApp: () => app.close(),
    close: async () => {
      for (const client of clients) await client.close();
      await app.close();
    },
  };
}

/** What both a reader of the text and a reader of the data see. */
export function readResult(result: unknown) {
  const raw = result as CallToolResult;
  return {
    text: raw.content.map((block) => (block.type === 'text' ? block.text : '')).join('\n'),
    data: (raw.structuredContent ?? {}) as ResultData,
    isError: raw.isError === true,
    error: raw._meta?.['ad-library/error'] as Record<string, unknown> | undefined,
    raw,
  };
}
