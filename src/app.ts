import { setMaxListeners } from 'node:events';
import type { Credentials } from './api/client.ts';
import { undiciFetch } from './api/undici-fetch.ts';
import type { Config } from './config/settings.ts';
import { logCalls, type OnCall } from './log/call-event.ts';
import type { Log } from './log/log.ts';
import { type Catalog, createCatalog } from './mcp/catalog.ts';
import { filterHints } from './mcp/filter-hints.ts';
import { prompts } from './prompts/catalog.ts';
import type { OpenCalls, Upstream } from './send-chain.ts';
import { tools } from './tools/catalog.ts';
import type { Tool } from './tools/define-tool.ts';
import { version } from './version.ts';

/** What the process serves, whichever way it is reached. */
export interface App {
  catalog: Catalog;
  /** Who pays where no key comes with a call: the person over stdio; in demo mode everybody has the demo's key. */
  credentials: Credentials;
  /** Answers requests for the demo's pictures. */
  pictures?: ((request: Request) => Promise<Response>) | undefined;
  /**
   * Ends all calls, then lets go of everything the app holds. Paid calls that were sent already are waited for, up to
   * so many milliseconds, since they are charged for all the same.
   */
  close(drainMs?: number): Promise<void>;
}

export interface AppOptions {
  config: Config;
  log: Log;
  /** Takes every call that has ended; without it they are logged. */
  onCall?: OnCall;
  now: () => number;
  random: () => number;
  /** Where `pictures` will be served; where they are not, the demo's media addresses lead nowhere. */
  mediaUrl?: string | undefined;
}

type DemoParts = Pick<AppOptions, 'now' | 'log' | 'mediaUrl'>;

/** Of the demo's pictures where nobody serves them. */
const mediaAddress = 'https://media.demo.example/media';

/** What answers the API's calls, and what is said of it to callers. */
interface UpstreamService extends Upstream {
  key: string | undefined;
  pictures?: App['pictures'];
  notice?: string;
  filterHints?: Readonly<Record<string, string>> | undefined;
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
  const closing = new AbortController();
  // Every call under way listens for it; Node takes more than ten for a leak and says so.
  setMaxListeners(0, closing.signal);
  // What calls need is loaded with the first one: most sessions begin with a list of tools, and some end there.
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
    closing: closing.signal,
  };
  return {
    catalog: createCatalog({ server, prompts, version, filterHints: upstream.filterHints }),
    credentials: { apiKey: upstream.key, tenantId: 'own' },
    pictures: upstream.pictures,
    close: async (drainMs = 0) => {
      closing.abort();
      await (await calls)?.close(drainMs);
      await upstream.close();
    },
  };
}

function openService({ baseUrl, apiKey, searchFilters }: Config): UpstreamService {
  return { ...undiciFetch(), baseUrl, key: apiKey, filterHints: searchFilters && filterHints(searchFilters) };
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
    notice: 'DEMO DATA: generated, every advertiser and ad is fictional, no real credits are spent.',
    filterHints: filterHints(libraryFilters),
    close: () => library.close(),
  };
}

/** The names that the setting for a subset of tools may hold. */
export const toolNames = tools.map(({ name }) => name);

function chosenTools({ tools: names, readOnly }: Config): ReadonlyMap<string, Tool> {
  const chosen = tools
    .filter((tool) => names?.includes(tool.name) ?? true)
    .filter((tool) => tool.annotations.readOnlyHint || !readOnly);
  return new Map(chosen.map((tool) => [tool.name, tool]));
}
