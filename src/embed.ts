import { monotonicNow, openApp, toolNames } from './app.ts';
import { findUnknownVariables, readConfig, SettingsError } from './config/read-config.ts';
import type { Config } from './config/settings.ts';
import { createLogger } from './logging/log.ts';

/** The part of `Transport` in `@modelcontextprotocol/sdk` that the server uses. */
export interface Transport {
  start(): Promise<void>;
  send(message: never): Promise<void>;
  close(): Promise<void>;
  onclose?: (() => void) | undefined;
  onerror?: ((error: Error) => void) | undefined;
  onmessage?: ((message: never) => void) | undefined;
}

/**
 * A server that runs inside another program. The program provides the transports (connections to MCP clients), e.g. an
 * in-process transport.
 */
export interface EmbeddedServer {
  /**
   * Serves an MCP client until its transport closes. Several clients can be connected. Supports MCP protocol revisions
   * up to 2025-11-25.
   */
  connect(transport: Transport): Promise<void>;
  /** Aborts the calls in progress and releases all resources. */
  close(): Promise<void>;
}

/**
 * Starts a server inside another program, which provides the transports.
 * @param settings the settings by the names of their environment variables, e.g. `{ AD_LIBRARY_DEMO: 'true' }`; the
 * server does not read the environment itself
 * @param writeLine receives each log line
 * @throws Error that names every invalid setting and every unknown name that starts with `AD_LIBRARY_`
 */
export async function openServer(
  settings: Readonly<Record<string, string | undefined>>,
  writeLine: (line: string) => void = () => {},
): Promise<EmbeddedServer> {
  const config = readSettings({ ...settings });
  const log = createLogger(config.logLevel, writeLine, { format: config.logFormat, now: Date.now });
  const app = await openApp({ config, log, now: Date.now, monotonicNow, random: Math.random });
  const { createSdkV1Server } = await import('./mcp/sdk-v1.ts');
  return {
    connect: (transport) =>
      createSdkV1Server(app.catalog, app.credentials).connect(
        transport as Parameters<ReturnType<typeof createSdkV1Server>['connect']>[0],
      ),
    close: app.close,
  };
}

/**
 * Reads the settings. Rejects unknown names, because a program with a misspelled credit budget would spend without a
 * limit. The command line only warns about unknown environment variables, because other programs may use them.
 */
function readSettings(settings: Record<string, string | undefined>): Config {
  const unknownNames = findUnknownVariables(settings);
  try {
    const config = readConfig(settings, {}, { toolNames, commandName: 'stdio' });
    if (unknownNames.length === 0) return config;
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    throw new SettingsError([...error.problems, ...unknownNames]);
  }
  throw new SettingsError(unknownNames);
}
