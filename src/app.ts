import { setMaxListeners } from 'node:events';
import type { Credentials } from './api/client.ts';
import type { SearchFilters } from './api/search-filters.ts';
import { undiciFetch } from './api/undici-fetch.ts';
import type { Config } from './config/settings.ts';
import type { Log } from './log/log.ts';
import { logCalls, type OnCall } from './log/log.ts';
import { type Catalog, createCatalog } from './mcp/catalog.ts';
import { filterHints } from './mcp/filter-hints.ts';
import { prompts } from './prompts/catalog.ts';
import type { OpenCalls, Upstream } from './send-chain.ts';
import { tools } from './tools/catalog.ts';
import type { Tool } from './tools/define-tool.ts';
import { version } from './version.ts';

/** What the process serves over any transport. */
export interface App {
  catalog: Catalog;
  /** The credentials of calls that bring no key: the configured ones, or those of the demo. */
  credentials: Credentials;
  /** Answers requests for the demo's pictures. */
  pictures?: ((request: Request) => Promise<Response>) | undefined;
  /**
   * Ends all calls, then releases all resources. Waits up to `drainMs` for paid calls that were sent, because they are
   * charged anyway.
   */
  close(drainMs?: number): Promise<void>;
  /** Has long calls return what they have, because the process is to end soon. */
  drain(): void;
}

export interface AppOptions {
  config: Config;
  log: Log;
  /** Receives every call that has ended; by default they are logged. */
  onCall?: OnCall;
  now: () => number;
  random: () => number;
  /** The address at which `pictures` will be served, if any. */
  mediaUrl?: string | undefined;
}

type DemoParts = Pick<AppOptions, 'now' | 'log' | 'mediaUrl'>;

/** Placeholder for picture addresses when no HTTP server runs. */
const mediaAddress = 'https://media.demo.example/media';

/** The service behind the tools, and what callers should know about it. */
interface UpstreamService extends Upstream {
  key: string | undefined;
  pictures?: App['pictures'];
  notice?: string;
  filters?: SearchFilters | undefined;
  close(): Promise<void> | void;
}

export async function openApp({
  config,
  log,
  onCall = logCalls(log),
  now,
  random,
  mediaUrl,
}: AppOptions): Promise<App> {
  const upstream = await (config.demo ? openDemo({ now, log, mediaUrl }) : openService(config));
  const draining = new AbortController();
  const closing = new AbortController();
  // Every call in progress listens to it; Node warns of a leak from ten listeners on.
  setMaxListeners(0, closing.signal);
  // Loaded with the first call: every session starts with a list of tools, and some end there.
  let calls: Promise<OpenCalls> | undefined;
  const server = {
    tools: chosenTools(config),
    calls: () => {
      calls ??= import('./send-chain.ts').then(({ openCalls }) => openCalls({ config, upstream, log, now, random }));
      return calls.then(({ callsOf }) => callsOf);
    },
    now,
    log,
    onCall,
    resultTokens: config.resultTokens,
    timeoutMs: config.timeoutMs,
    keepsAnswers: config.cacheSeconds > 0,
    output: config.output,
    notice: upstream.notice,
    adFilters: upstream.filters?.ads ?? [],
    draining: draining.signal,
    closing: closing.signal,
  };
  return {
    catalog: createCatalog({
      server,
      prompts,
      version,
      filterHints: upstream.filters && filterHints(upstream.filters),
    }),
    credentials: { apiKey: upstream.key, tenantId: 'own' },
    pictures: upstream.pictures,
    drain: () => draining.abort(),
    close: async (drainMs = 0) => {
      closing.abort();
      await (await calls)?.close(drainMs);
      await upstream.close();
    },
  };
}

function openService({ baseUrl, apiKey, searchFilters }: Config): UpstreamService {
  return { ...undiciFetch(), baseUrl, key: apiKey, filters: searchFilters };
}

async function openDemo({ now, log, mediaUrl = mediaAddress }: DemoParts): Promise<UpstreamService> {
  const [{ openDemoLibrary }, { libraryFilters }] = await Promise.all([
    import('./library/demo.ts'),
    import('./library/filters.ts'),
  ]);
  const { library, apiKey } = await openDemoLibrary({
    now,
    mediaUrl,
    appUrl: 'https://app.demo.example',
    onError: (error) => log.error('the demo library failed', { error: String(error) }),
  });
  return {
    fetch: (url, { onSent, ...init }) => {
      onSent();
      return library.fetch(new Request(url, init));
    },
    baseUrl: 'http://demo.invalid',
    key: apiKey,
    pictures: (request) => library.fetch(request),
    notice: 'DEMO DATA: every advertiser and ad is generated and fictional; no real credits are spent.',
    filters: libraryFilters,
    close: () => library.close(),
  };
}

export const toolNames = tools.map(({ name }) => name);

function chosenTools({ tools: names, readOnly }: Config): ReadonlyMap<string, Tool> {
  const chosen = tools
    .filter((tool) => names?.includes(tool.name) ?? true)
    .filter((tool) => tool.annotations.readOnlyHint || !readOnly);
  return new Map(chosen.map((tool) => [tool.name, tool]));
}
