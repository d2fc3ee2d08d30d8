import { elapsed, openApp, toolNames } from './app.ts';
import { readConfig } from './config/read-config.ts';
import { createLog } from './logging/log.ts';

/** The part of `Transport` of `@modelcontextprotocol/sdk` that is used. */
export interface Transport {
  start(): Promise<void>;
  send(message: never): Promise<void>;
  close(): Promise<void>;
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: ((message: never) => void) | undefined;
}

export interface EmbeddedServer {
  /** Serves one more client, for revisions up to 2025-11-25, until its transport is closed. */
  connect(transport: Transport): Promise<void>;
  /** Aborts calls in progress and releases all resources. */
  close(): Promise<void>;
}

/**
 * Runs the server inside another program, on that program's transports. Settings are named like the environment
 * variables, as in `{ AD_LIBRARY_DEMO: 'true' }`; the environment itself is not read.
 * @param write receives the log line by line
 * @throws Error naming every invalid setting
 */
export async function openServer(
  settings: Readonly<Record<string, string | undefined>>,
  write: (line: string) => void = () => {},
): Promise<EmbeddedServer> {
  const config = readConfig({ ...settings }, {}, { tools: toolNames, command: 'stdio' });
  const log = createLog(config.logLevel, write);
  const app = await openApp({ config, log, now: Date.now, elapsed, random: Math.random });
  const { bindV1 } = await import('./mcp/sdk-v1.ts');
  return {
    connect: (transport) =>
      bindV1(app.catalog, app.credentials).connect(transport as Parameters<ReturnType<typeof bindV1>['connect']>[0]),
    close: app.close,
  };
}
