import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import type { CallToolResult, ClientCapabilities } from '@modelcontextprotocol/sdk/types.js';
import type { Credentials } from '../../src/api/client.ts';
import { openApp } from '../../src/app.ts';
import { readConfig } from '../../src/config/read-config.ts';
import type { Config } from '../../src/config/settings.ts';
import { createLogger } from '../../src/logging/log.ts';
import { createSdkV1Server } from '../../src/mcp/sdk-v1.ts';
import type { ResolveHost } from '../../src/pictures/fetch-picture.ts';
import type { DatasetStore } from '../../src/storage/dataset.ts';
import { openMemoryState } from '../../src/storage/open.ts';
import type { ReplicaState } from '../../src/storage/store/open-store.ts';
import { mcpAppsCapabilities } from './capabilities.ts';
import { outputValidator } from './output-validator.ts';

/** A server in this process with a connected client. */
export type TestServer = Awaited<ReturnType<typeof startServer>>;

/** A client of a test server, which may share the server with clients that have other API keys. */
export type TestClient = Awaited<ReturnType<TestServer['connectAs']>>;

/** The fields of an ad, an advertiser page or a collection that tests read. */
export interface ResultItem {
  id: string;
  pageId: string;
  name: string;
  adCount: number;
  pageCount: number;
  body: string;
  [field: string]: unknown;
}

/** The structured data of any tool's result. A field that the tool does not return is undefined at run time. */
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

/** The result of a tool call, as `readResult` returns it. */
export type Result = ReturnType<typeof readResult>;

/** The settings of a test server, and fake clocks and other dependencies for it. */
export interface ServerOptions {
  config?: Partial<Config>;
  now?: () => number;
  /** The monotonic clock. By default, it follows `now`. */
  monotonicNow?: () => number;
  random?: () => number;
  resolve?: ResolveHost;
  /** Where the server stores datasets. By default, in the memory of the process. */
  datasets?: DatasetStore;
}

/** Returns an in-memory state that uses these datasets. */
const shareDatasets = (datasets: DatasetStore): Partial<ReplicaState> => ({
  state: (options) => ({ ...openMemoryState(options), datasets }),
});

/** Starts a server in this process and connects a client to it. Calls to the API go over the network. */
export async function startServer({
  config = {},
  now = Date.now,
  monotonicNow = now,
  random = () => 0,
  resolve: resolveHost,
  datasets,
}: ServerOptions) {
  const logLines: string[] = [];
  const log = createLogger('debug', (line) => logLines.push(line));
  const app = await openApp({
    config: { ...readConfig({}), ...config },
    log,
    now,
    monotonicNow,
    random,
    ...(resolveHost && { resolveHost }),
    ...(datasets && { replicaState: shareDatasets(datasets) as ReplicaState }),
  });
  const clients: Client[] = [];
  const connect = async (
    credentials: Credentials,
    name = 'test',
    capabilities: ClientCapabilities = mcpAppsCapabilities,
  ) => {
    const [serverTransport, clientTransport] = InMemoryTransport.createLinkedPair();
    await createSdkV1Server(app.catalog, credentials).connect(serverTransport);
    const client = new Client({ name, version: '1' }, { capabilities, jsonSchemaValidator: outputValidator });
    await client.connect(clientTransport);
    // After `listTools`, the client checks every result against the listed output schema.
    await client.listTools();
    clients.push(client);
    /** @param options `signal` cancels the call, like a host whose user stops waiting */
    const call = async (name: string, args: Record<string, unknown> = {}, options: { signal?: AbortSignal } = {}) =>
      readResult(await client.callTool({ name, arguments: args }, undefined, options));
    return {
      client,
      call,
      /** Runs an SQL statement with `query_ads` and returns its rows. */
      queryRows: async (sql: string) =>
        (await call('query_ads', { sql, limit: 1000, cell: 20_000 })).data.rows as unknown[][],
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
    /** Connects another client with another API key, as an HTTP server would. */
    connectAs: (key: string, clientName?: string, capabilities?: ClientCapabilities) =>
      connect({ apiKey: key, tenantId: key }, clientName, capabilities),
    logLines,
    /** Closes the app while its clients are still connected. */
    stopApp: () => app.close(),
    close: async () => {
      for (const client of clients) await client.close();
      await app.close();
    },
  };
}

/** Returns the text, the structured data and the error of a tool result, so that tests can check all of them. */
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
