import { setMaxListeners } from 'node:events';
import { resolve as absolute } from 'node:path';
import about from '../package.json' with { type: 'json' };
import type { Call, Connection } from './api/call.ts';
import type { Caller, Credentials } from './api/client.ts';
import { AdLibraryError } from './api/errors.ts';
import type { Fetch } from './api/http.ts';
import { operations } from './api/operations.ts';
import type { SearchFilters } from './api/search-filters.ts';
import { isLoopback } from './config/setting-values.ts';
import type { Config } from './config/settings.ts';
import type { Meter } from './credits/meter.ts';
import { keyMasker } from './logging/key-masking.ts';
import { escapeControlCharacters, type Log, logCalls, type OnCall } from './logging/log.ts';
import type { OpenCalls } from './mcp/caller-context.ts';
import { type DescribedTool, describedTools } from './mcp/described-tools.ts';
import { type Catalog, createCatalog } from './mcp/served.ts';
import type { Resolve, ServedPictures } from './pictures/fetch-picture.ts';
import type { OpenPictures, PictureOptions } from './pictures/pictures.ts';
import type { AcceptedKeys } from './storage/call-state.ts';
import type { ExportTarget } from './storage/exports.ts';
import type { ReplicaState } from './storage/store/open-store.ts';

export const { version } = about;

export interface AppOptions {
  config: Config;
  /** What is wrong with the settings. If anything is, every call is answered with it. */
  problems?: readonly string[];
  log: Log;
  /** Receives every call that has ended; by default they are logged. */
  onCall?: OnCall;
  now: () => number;
  /** A monotonic clock, in milliseconds. */
  elapsed: () => number;
  random: () => number;
  /** The way to the service; by default the network. */
  fetch?: Fetch | undefined;
  /** The address at which `pictures` will be served, if any. */
  mediaUrl?: string | undefined;
  /** Finds the addresses of picture hosts; by default in the DNS. */
  resolve?: Resolve | undefined;
  /** The keys that the service accepted lately; by default there is only one key. */
  keys?: AcceptedKeys | undefined;
  /** What all replicas share, if anything. */
  shared?: ReplicaState | undefined;
  /** Whether the folder counts spending by day, for all processes that use it. */
  countsDays?: boolean | undefined;
  /** The folder for files if the settings name no folder. By default, files are in memory. */
  exportTarget?: ExportTarget | undefined;
}

/** A monotonic clock, in milliseconds. */
export const elapsed = (): number => Math.round(performance.now());

/** Placeholder for picture addresses when no HTTP server runs. */
const mediaAddress = 'https://media.demo.example/media';

/** The service that answers: the real one, or the local library with demo data inside this process. */
interface Upstream {
  /** The key of a user's own server. */
  key?: string | undefined;
  /** A way to the service other than the network. */
  fetch: Fetch | undefined;
  baseUrl: string | undefined;
  searchFilters?(): Promise<SearchFilters | undefined>;
  servedPictures?: ServedPictures;
  notice?: string;
  close?(): Promise<void>;
}

export type App = Awaited<ReturnType<typeof openApp>>;

/** What the process serves over any transport. */
export async function openApp(options: AppOptions) {
  const { config, problems = [], log, onCall = logCalls(log), now, elapsed } = options;
  const upstream = await (config.demo ? openDemo(options) : openService(options));
  const credentials: Credentials = { apiKey: upstream.key, tenantId: 'own' };
  const draining = new AbortController();
  const closing = new AbortController();
  // Every call in progress listens to it; Node warns of a leak from ten listeners on.
  setMaxListeners(0, closing.signal);
  let calls: Promise<OpenCalls> | undefined;
  const opened = () => {
    calls ??= openCalls(options, upstream);
    return calls;
  };
  const { resultTokens, timeoutMs, cacheSeconds, confirmCredits, output } = config;
  const { notice, searchFilters } = upstream;
  const server = {
    tools: chosenTools(config),
    now,
    elapsed,
    log,
    onCall,
    notice,
    resultTokens,
    timeoutMs,
    cacheMs: cacheSeconds * 1000,
    confirmCredits,
    output,
    draining: draining.signal,
    closing: closing.signal,
  };
  const catalog = createCatalog({ server, version, openCalls: opened, searchFilters });
  return {
    catalog: problems.length > 0 ? refusingCalls(catalog, problems) : catalog,
    /** The credentials of calls without a key of their own: the configured credentials, or the credentials of the demo. */
    credentials,
    /** Asks the service whether it accepts a key; rejects if it does not. */
    checkKey: async (caller: Caller) => {
      const { value } = await (await opened()).whoami(caller);
      if (value.authenticated === false) throw new AdLibraryError({ kind: 'unauthorized', status: 200 });
    },
    /** A connection was renewed: its spending counts for longer. */
    keepSpending: async (connection: Connection) => (await opened()).keepSpending(connection),
    findLinked: async (link: string, name: string) => (await opened()).findLinked(link, name),
    pictures: upstream.servedPictures?.answer,
    /** Makes long calls return the data that they have, because the process ends soon. */
    drain: () => draining.abort(),
    /** Ends all calls, but waits up to `drainMs` for paid calls that were sent, because they are charged anyway. */
    close: async (drainMs = 0): Promise<void> => {
      closing.abort();
      await (await calls)?.close(drainMs);
      await upstream.close?.();
    },
  };
}

/** The time limit for the request that identifies the account of a key, in milliseconds. A paid answer waits this long before it is written to files. */
const maxWhoamiMs = 5000;

export async function openCalls(options: AppOptions, upstream: Upstream): Promise<OpenCalls> {
  const { config, log, now, elapsed, random, shared } = options;
  const { baseUrl } = upstream;
  const files = config.files === undefined ? undefined : absolute(config.files);
  const { cacheSeconds, timeoutMs, creditBudget: budget, callsPerKey, callsAtOnce } = config;
  const { createHttpService, undiciFetch } = await import('./api/http.ts');
  const { createApi } = await import('./api/client.ts');
  const { openMeter } = await import('./credits/meter.ts');
  const { openAnswers } = await import('./cache/answers.ts');
  const { recordAcceptedKeys } = await import('./cache/accepted-keys.ts');
  const { createSingleUserKeys } = await import('./storage/keys.ts');
  const { openState } = await import('./storage/open.ts');
  const { getExportsFolder } = await import('./storage/exports.ts');
  const { createMemoryLedger } = await import('./storage/in-memory.ts');
  const { openCallerContexts } = await import('./mcp/caller-context.ts');
  const state = openState({
    ttlMs: cacheSeconds * 1000,
    baseUrl,
    apiKey: upstream.key,
    countsDays: options.countsDays,
    shared,
    now,
    monotonicNow: elapsed,
    // Data that the demo makes up are not stored. What a person asks to have written is.
    folder: config.demo ? undefined : files,
    exportTarget: files === undefined ? options.exportTarget : { folder: getExportsFolder(files) },
    userIdOf: async (caller) => {
      const { value } = await whoami({ ...caller, signal: AbortSignal.timeout(maxWhoamiMs) });
      return value.user?.userId;
    },
    warn: log.warn,
  });
  const { ledger, windows } = state;
  const { keys: accepted = createSingleUserKeys() } = options;
  const keys: AcceptedKeys = {
    ...accepted,
    remove: async (tenantId) => {
      // Each call makes sure that its key was accepted lately, so a key that was not has no calls in progress.
      const wasAccepted = await accepted.has(tenantId);
      await accepted.remove(tenantId);
      await state.exports.links?.end(tenantId, wasAccepted);
    },
  };
  const openLedger = () => createMemoryLedger({ now: elapsed });
  const onLost = (call: Call) => void logLost(log, meter, call);
  const onError = (error: unknown) => {
    // It is added once the store is back, and the log has that it is away.
    if (shared && error instanceof AdLibraryError && error.failure.kind === 'unavailable') return;
    log.error('an answer was not added to the dataset', { error: String(error) });
  };
  const network = undiciFetch();
  const { fetch = network.fetch } = upstream;
  const spending = { ledger, windows, budget, openLedger, timeoutMs, now: elapsed };
  const { datasets, answers: cache } = state;
  const storedAnswers = { datasets, cache, isCached: cacheSeconds > 0, keys };
  const bounds = { maxCallsEach: Math.max(256, 2 * callsPerKey), maxCalls: Math.max(1024, 2 * callsAtOnce), timeoutMs };

  // Every call of the API passes through these three steps, from the last line to the first. Without a base address, a
  // call is refused before it reaches them.
  const http = recordAcceptedKeys(
    createHttpService({ fetch, baseUrl: baseUrl ?? '', userAgent, random, keyMasker }),
    keys,
  );
  const meter = openMeter(http, spending);
  const answers = openAnswers(meter, { ...storedAnswers, ...bounds, now, onLost, onError });
  const apiOf = createApi(answers.send, baseUrl);
  const whoami = (caller: Caller) => apiOf(caller).whoami();

  const pictures = picturesOf(options, upstream);
  const { open } = pictures;
  const contexts = openCallerContexts({
    apiOf,
    answers,
    keys,
    meter,
    state,
    pictures: open,
    baseUrl,
    version,
    now,
  });
  return {
    ...contexts,
    whoami,
    close: async (ms) => {
      await answers.close(ms);
      await Promise.all([state.datasets.close(), contexts.close(), pictures.close()]);
      // A dataset without a known owner requests the owner of its key once more, so the network is closed last.
      await network.close();
    },
  };
}

async function logLost(log: Log, meter: Meter, { request, owner }: Call): Promise<void> {
  if (!request.operation.gated) return;
  const { computeRequestBounds, isExactPrice } = await import('./credits/prices.ts');
  const bounds = computeRequestBounds(await meter.prices(owner.tenantId), request);
  const fields = {
    operation: request.operation.name,
    credits: isExactPrice(bounds) ? bounds.atMost : `${bounds.atLeast} or more`,
  };
  log.warn('a paid call was lost: the server closed before its answer arrived', fields);
}

const userAgent = `ad-library-mcp/${version}`;

function picturesOf({ config, elapsed, random, resolve }: AppOptions, { baseUrl, servedPictures }: Upstream) {
  let opened: Promise<OpenPictures> | undefined;
  const open = () => {
    const hosts = withLoopback(config.mediaHosts, baseUrl);
    opened ??= import('./pictures/pictures.ts').then(({ openPictures }) =>
      openPictures({ hosts, servedPictures, userAgent, now: elapsed, random, resolve }),
    );
    return opened;
  };
  return { open, close: async () => (await opened)?.close() };
}

/** Fetches pictures for a local library under the rule of `AD_LIBRARY_MEDIA_HOSTS`. */
export async function openPictureFetch({ hosts, now }: Pick<PictureOptions, 'hosts' | 'now'>) {
  const opened = (await import('./pictures/pictures.ts')).openPictures({ hosts, userAgent, now, random: () => 0 });
  const pictures = opened.forTenant('library');
  return { fetch: pictures.original, close: opened.close };
}

/** A local library serves the pictures of its ads itself. */
function withLoopback(hosts: Config['mediaHosts'], baseUrl: string | undefined): Config['mediaHosts'] {
  const isNone = !hosts.public && hosts.listed.length === 0;
  const { hostname, port, protocol } = new URL(baseUrl ?? 'https://none.invalid');
  if (isNone || !isLoopback(hostname)) return hosts;
  const libraryHost = { host: hostname, port: Number(port || (protocol === 'https:' ? 443 : 80)) };
  return { ...hosts, listed: [...hosts.listed, libraryHost] };
}

function refusingCalls(catalog: Catalog, problems: readonly string[]): Catalog {
  const problem = problems.map(escapeControlCharacters).join('\n');
  const error = new AdLibraryError({ kind: 'no_api_key', wrongSettings: true, problem, sent: false });
  return { ...catalog, callTool: async () => catalog.refuse(error) };
}

function openService({ config, fetch }: AppOptions): Upstream {
  const { baseUrl, apiKey, searchFilters } = config;
  const service = { fetch, baseUrl, key: apiKey };
  if (searchFilters) return { ...service, searchFilters: async () => searchFilters };
  if (baseUrl === undefined || !isLoopback(new URL(baseUrl).hostname)) return service;
  let served: Promise<SearchFilters | undefined> | undefined;
  const fetchOnce = () => {
    served ??= fetchFilters(baseUrl, fetch).catch(() => {
      // The library may start later than this server, so the next list asks again.
      served = undefined;
      return undefined;
    });
    return served;
  };
  return { ...service, searchFilters: fetchOnce };
}

/** A loopback address may be a local library's, which describes its filters. */
async function fetchFilters(baseUrl: string, fetch: Fetch | undefined): Promise<SearchFilters | undefined> {
  const [{ fetchServedFilters }, { libraryFilters }] = await Promise.all([
    import('./mcp/served-filters.ts'),
    import('./library/open.ts'),
  ]);
  return fetchServedFilters({ baseUrl, userAgent, fetch, ownFilters: libraryFilters });
}

async function openDemo({ now, log, mediaUrl = mediaAddress }: AppOptions): Promise<Upstream> {
  const { createDemoLibrary: demoLibrary, libraryFilters } = await import('./library/open.ts');
  const { apiKey, fetch, close } = demoLibrary({
    now,
    baseUrls: { media: mediaUrl, app: 'https://app.demo.example' },
    onError: (error) => log.error('the demo library failed', { error: String(error) }),
  });
  return {
    fetch: (url, { onSent, ...init }) => {
      onSent();
      return fetch(new Request(url, init));
    },
    baseUrl: 'http://demo.invalid',
    key: apiKey,
    servedPictures: { urlPrefix: `${mediaUrl}/`, answer: fetch },
    notice: 'DEMO DATA: every advertiser and ad is generated and fictional; no real credits are spent.',
    searchFilters: async () => libraryFilters,
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
