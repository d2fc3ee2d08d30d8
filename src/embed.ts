import { openApp, toolNames } from './app.ts';
import { readConfig } from './config/read-config.ts';
import { createLog } from './log/log.ts';

/** What `@modelcontextprotocol/sdk` calls a transport, in the part of it that is used. */
export interface Transport {
  start(): Promise<void>;
  send(message: never): Promise<void>;
  close(): Promise<void>;
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: ((message: never) => void) | undefined;
}

export interface EmbeddedServer {
  /** Serves one more client, for revisions up to 2025-11-25. Closing its transport ends that. */
  connect(transport: Transport): Promise<void>;
  /** Aborts calls in flight and lets go of everything. */
  close(): Promise<void>;
}

/**
 * For programs: the server inside their own process, on transports of theirs. The settings are the command's, by the
 * names of their variables, as in `{ AD_LIBRARY_DEMO: 'true' }`; the process's own environment is not looked at.
 * @param write takes the log, a line at a time
 * @throws Error that names every setting that is wrong
 */
export async function openServer(
  settings: Readonly<Record<string, string | undefined>>,
  write: (line: string) => void = () => {},
): Promise<EmbeddedServer> {
  const config = readConfig({ ...settings }, {}, { tools: toolNames });
  const log = createLog(config.logLevel, write);
  const app = await openApp({ config, log, now: Date.now, random: Math.random });
  const { bindV1 } = await import('./mcp/bind-v1.ts');
  return {
    connect: (transport) =>
      bindV1(app.catalog, app.credentials).connect(transport as Parameters<ReturnType<typeof bindV1>['connect']>[0]),
    close: app.close,
  };
}
