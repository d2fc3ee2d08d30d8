import { setMaxListeners } from 'node:events';
import { uptime } from 'node:os';
import { operations } from './api/call.ts';
import type { Credentials } from './api/client.ts';
import { AdLibraryError } from './api/errors.ts';
import type { Fetch, undiciFetch } from './api/http.ts';
import type { SearchFilters } from './api/search-filters.ts';
import { isLoopback } from './config/setting-values.ts';
import type { Config } from './config/settings.ts';
import { logCalls, type OnCall, printable } from './log/log.ts';
import { type Catalog, createCatalog } from './mcp/catalog.ts';
import { type DescribedTool, describedTools } from './mcp/described-tools.ts';
import type { CallsOptions, OpenCalls, Upstream } from './send-chain.ts';
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

export interface AppOptions extends Omit<CallsOptions, 'upstream'> {
  /** What is wrong with the settings. If anything is, every call is answered with it. */
  problems?: readonly string[];
  /** Receives every call that has ended; by default they are logged. */
  onCall?: OnCall;
  /** Whether the service accepted a tenant's key lately; by default there is only one key. */
  isKnownKey?: (tenantId: string) => Promise<boolean>;
  /** The address at which `pictures` will be served, if any. */
  mediaUrl?: string | undefined;
  /** The way to the service; by default the network. */
  fetch?: Fetch | undefined;
}

/** What a machine has slept, of which `performance.now` knows nothing on most systems; less is inaccuracy. */
const minSleepMs = 5000;
const sleep = { ms: 0, lead: Number.NaN, comparedAt: Number.NEGATIVE_INFINITY };

/** Milliseconds of a clock that only goes on, whatever happens to the time of day. */
export function elapsed(): number {
  const awake = performance.now();
  if (awake - sleep.comparedAt > 1000) {
    sleep.comparedAt = awake;
    const lead = uptime() * 1000 - awake;
    if (Number.isNaN(sleep.lead)) sleep.lead = lead;
    if (lead - sleep.lead > sleep.ms + minSleepMs) sleep.ms = lead - sleep.lead;
  }
  return Math.round(awake + sleep.ms);
}

type DemoParts = Pick<AppOptions, 'now' | 'log' | 'mediaUrl'>;

/** Placeholder for picture addresses when no HTTP server runs. */
const mediaAddress = 'https://media.demo.example/media';

/** The service behind the tools, and what callers should know about it. */
interface UpstreamService extends Upstream {
  key: string | undefined;
  pictures?: App['pictures'];
  notice?: string;
  searchFilters?(): Promise<SearchFilters | undefined>;
  close(): Promise<void> | void;
}

export async function openApp({
  config,
  problems = [],
  log,
  onCall = logCalls(log),
  isKnownKey,
  now,
  elapsed,
  random,
  resolve,
  mediaUrl,
  fetch,
  shared,
}: AppOptions): Promise<App> {
  const upstream = await (config.demo ? openDemo({ now, log, mediaUrl }) : openService(config, fetch));
  const draining = new AbortController();
  const closing = new AbortController();
  // Every call in progress listens to it; Node warns of a leak from ten listeners on.
  setMaxListeners(0, closing.signal);
  // Loaded with the first call: every session starts with a list of tools, and some end there.
  let calls: Promise<OpenCalls> | undefined;
  const open = () => {
    calls ??= import('./send-chain.ts').then(({ openCalls }) =>
      openCalls({ config, upstream, log, now, elapsed, random, resolve, shared }),
    );
    return calls;
  };
  let filters: Promise<SearchFilters | undefined> | undefined;
  const searchFilters = async () => {
    filters ??= upstream.searchFilters?.();
    return filters;
  };
  const server = {
    tools: chosenTools(config),
    calls: () => open().then(({ callsOf }) => callsOf),
    exports: (tenantId: string) => open().then(({ exportsOf }) => exportsOf(tenantId)),
    isKnownKey,
    now,
    elapsed,
    log,
    onCall,
    resultTokens: config.resultTokens,
    timeoutMs: config.timeoutMs,
    keepsAnswers: config.cacheSeconds > 0,
    output: config.output,
    notice: upstream.notice,
    adFilters: async () => (await searchFilters())?.ads ?? [],
    draining: draining.signal,
    closing: closing.signal,
  };
  const catalog = createCatalog({ server, version, searchFilters });
  return {
    catalog: problems.length > 0 ? refusingCalls(catalog, problems) : catalog,
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

function refusingCalls(catalog: Catalog, problems: readonly string[]): Catalog {
  const problem = problems.map(printable).join('\n');
  const error = new AdLibraryError({ kind: 'no_api_key', wrongSettings: true, problem, sent: false });
  return { ...catalog, callTool: async () => catalog.refuse(error) };
}

function openService({ baseUrl, apiKey, searchFilters }: Config, fetch: Fetch | undefined): UpstreamService {
  const network = fetch ? { fetch, close: () => {} } : openNetwork();
  const service = { ...network, baseUrl, key: apiKey };
  if (searchFilters) return { ...service, searchFilters: async () => searchFilters };
  if (baseUrl === undefined || !isLoopback(new URL(baseUrl).hostname)) return service;
  return { ...service, searchFilters: () => libraryFilters(network.fetch, baseUrl) };
}

/** Loaded with the first call. */
function openNetwork(): { fetch: Fetch; close(): Promise<void> } {
  let opened: Promise<ReturnType<typeof undiciFetch>> | undefined;
  const fetch: Fetch = async (url, request) => {
    opened ??= import('./api/http.ts').then((http) => http.undiciFetch());
    return (await opened).fetch(url, request);
  };
  return { fetch, close: async () => (await opened)?.close() };
}

/** A loopback address may be a local library's, which describes its filters. */
async function libraryFilters(fetch: Fetch, baseUrl: string): Promise<SearchFilters | undefined> {
  const [{ askForFilters }, { withNotes }] = await Promise.all([
    import('./mcp/served-filters.ts'),
    import('./library/open.ts'),
  ]);
  const served = await askForFilters({ fetch, baseUrl, userAgent: `ad-library-mcp/${version}` });
  return served && withNotes(served);
}

async function openDemo({ now, log, mediaUrl = mediaAddress }: DemoParts): Promise<UpstreamService> {
  const { demoLibrary, describedFilters } = await import('./library/open.ts');
  const { apiKey, fetch, close } = demoLibrary({
    now,
    mediaUrl,
    appUrl: 'https://app.demo.example',
    onError: (error) => log.error('the demo library failed', { error: String(error) }),
  });
  return {
    fetch: (url, { onSent, ...init }) => {
      onSent();
      return fetch(new Request(url, init));
    },
    baseUrl: 'http://demo.invalid',
    key: apiKey,
    pictures: fetch,
    ownPictures: { address: `${mediaUrl}/`, answer: fetch },
    notice: 'DEMO DATA: every advertiser and ad is generated and fictional; no real credits are spent.',
    searchFilters: async () => describedFilters(),
    close,
  };
}

const tools = describedTools.filter(({ onlyForBoard }) => !onlyForBoard);

export const toolNames = tools.map(({ name }) => name);

function chosenTools({ tools: names, readOnly }: Config): ReadonlyMap<string, DescribedTool> {
  const chosen = tools
    .filter((tool) => names?.includes(tool.name) ?? true)
    .filter((tool) => !readOnly || !tool.operations.some((name) => operations[name].writes));
  const shown = chosen.some((tool) => tool.showsBoard)
    ? [...chosen, ...describedTools.filter(({ onlyForBoard }) => onlyForBoard)]
    : chosen;
  return new Map(shown.map((tool) => [tool.name, tool]));
}
