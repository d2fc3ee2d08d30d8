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

/** The settings, clocks and shared state that a server needs. */
export interface AppOptions {
  config: Config;
  /** The problems of the settings. If there are any, every call returns an error that lists them. */
  problems?: readonly string[];
  log: Log;
  /** Called after each finished tool call. By default, each call is logged. */
  onCall?: OnCall;
  now: () => number;
  /** A monotonic clock, in milliseconds. */
  elapsed: () => number;
  random: () => number;
  /** Sends requests to the service. By default, over the network. */
  fetch?: Fetch | undefined;
  /** The URL under which `pictures` will be served. Undefined if no HTTP server runs. */
  mediaUrl?: string | undefined;
  /** Resolves the IP addresses of picture hosts. By default, with DNS. */
  resolve?: Resolve | undefined;
  /** The API keys that the service has recently accepted. By default, there is only one key. */
  keys?: AcceptedKeys | undefined;
  /** The state that all replicas share. Undefined for a single process. */
  shared?: ReplicaState | undefined;
  /** True if all processes that use the folder share one credit budget per day. */
  countsDays?: boolean | undefined;
  /** The folder for exported files, used if the settings name no folder. By default, exported files stay in memory. */
  exportTarget?: ExportTarget | undefined;
}

/** A monotonic clock, in milliseconds. */
export const elapsed = (): number => Math.round(performance.now());

/** A placeholder for the base URL of demo pictures, used when no HTTP server runs. */
const placeholderMediaUrl = 'https://media.demo.example/media';

/** The service that the server calls: a real service, or the demo library in this process. */
interface Service {
  /** The API key of a single-user server. */
  apiKey?: string | undefined;
  /** Sends requests to the service without using the network. */
  fetch: Fetch | undefined;
  baseUrl: string | undefined;
  searchFilters?(): Promise<SearchFilters | undefined>;
  servedPictures?: ServedPictures;
  notice?: string;
  close?(): Promise<void>;
}

/** A running server, without a transport. */
export type App = Awaited<ReturnType<typeof openApp>>;

/** Opens the server. Every transport uses the same returned object. */
export async function openApp(options: AppOptions) {
  const { config, problems = [], log, onCall = logCalls(log), now, elapsed } = options;
  const upstream = await (config.demo ? openDemo(options) : openService(options));
  const credentials: Credentials = { apiKey: upstream.apiKey, tenantId: 'own' };
  const draining = new AbortController();
  const closing = new AbortController();
  // Every call in progress listens to this signal. Node would warn of a memory leak at more than ten listeners.
  setMaxListeners(0, closing.signal);
  let calls: Promise<OpenCalls> | undefined;
  const getCalls = () => {
    calls ??= openCalls(options, upstream);
    return calls;
  };
  const { resultTokens, timeoutMs, cacheSeconds, confirmCredits, output } = config;
  const { notice, searchFilters } = upstream;
  const server = {
    tools: selectTools(config),
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
  const catalog = createCatalog({ server, version, openCalls: getCalls, searchFilters });
  return {
    catalog: problems.length > 0 ? rejectAllCalls(catalog, problems) : catalog,
    /** The credentials for calls that carry no API key: the configured key, or the key of the demo library. */
    credentials,
    /**
     * Asks the service whether it accepts an API key.
     * @throws AdLibraryError if the service rejects the key
     */
    checkKey: async (caller: Caller) => {
      const { value } = await (await getCalls()).whoami(caller);
      if (value.authenticated === false) throw new AdLibraryError({ kind: 'unauthorized', status: 200 });
    },
    /** Keeps the recorded spending of a connection for longer. Called when a connection is renewed. */
    keepSpending: async (connection: Connection) => (await getCalls()).keepSpending(connection),
    findLinked: async (link: string, name: string) => (await getCalls()).findLinked(link, name),
    pictures: upstream.servedPictures?.answer,
    /** Makes long calls return the data that they already have, because the process ends soon. */
    drain: () => draining.abort(),
    /**
     * Ends all calls. Waits up to `drainMs` for paid requests that were already sent, because the service charges for
     * them anyway.
     */
    close: async (drainMs = 0): Promise<void> => {
      closing.abort();
      await (await calls)?.close(drainMs);
      await upstream.close?.();
    },
  };
}

/**
 * The time limit of the request that finds out which account a key belongs to, in milliseconds. A paid response waits
 * at most this long before it is stored.
 */
const maxWhoamiMs = 5000;

/**
 * Connects the API client, the cache, the credit meter and the storage. They are loaded with the first call, so that a
 * server starts fast.
 */
export async function openCalls(options: AppOptions, upstream: Service): Promise<OpenCalls> {
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
    apiKey: upstream.apiKey,
    countsDays: options.countsDays,
    shared,
    now,
    monotonicNow: elapsed,
    // Demo data is not stored. Files that the user explicitly asks for are.
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
      // Each call first makes sure that the service has recently accepted its key. Without such a record, the key has
      // no calls in progress.
      const wasAccepted = await accepted.has(tenantId);
      await accepted.remove(tenantId);
      await state.exports.links?.end(tenantId, wasAccepted);
    },
  };
  const openLedger = () => createMemoryLedger({ now: elapsed });
  const onLost = (call: Call) => void logLostCall(log, meter, call);
  const onError = (error: unknown) => {
    // The response is added once the store is reachable again, and the log already says that the store is unreachable.
    if (shared && error instanceof AdLibraryError && error.failure.kind === 'unavailable') return;
    log.error('an answer was not added to the dataset', { error: String(error) });
  };
  const network = undiciFetch();
  const { fetch = network.fetch } = upstream;
  const spending = { ledger, windows, budget, openLedger, timeoutMs, now: elapsed };
  const { datasets, answers: cache } = state;
  const storedAnswers = { datasets, cache, isCached: cacheSeconds > 0, keys };
  const bounds = { maxCallsEach: Math.max(256, 2 * callsPerKey), maxCalls: Math.max(1024, 2 * callsAtOnce), timeoutMs };

  // Every API call passes through these steps: the cache (`answers`), then the credit meter, then HTTP. Without a base
  // URL, the API client rejects the call before the first step.
  const http = recordAcceptedKeys(
    createHttpService({ fetch, baseUrl: baseUrl ?? '', userAgent, random, keyMasker }),
    keys,
  );
  const meter = openMeter(http, spending);
  const answers = openAnswers(meter, { ...storedAnswers, ...bounds, now, onLost, onError });
  const createCallerApi = createApi(answers.send, baseUrl);
  const whoami = (caller: Caller) => createCallerApi(caller).whoami();

  const pictures = createPictureOpener(options, upstream);
  const { open } = pictures;
  const contexts = openCallerContexts({
    apiOf: createCallerApi,
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
      // Close the network last: closing a dataset with an unknown owner sends one more request to identify the owner.
      await network.close();
    },
  };
}

async function logLostCall(log: Log, meter: Meter, { request, owner }: Call): Promise<void> {
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

function createPictureOpener({ config, elapsed, random, resolve }: AppOptions, { baseUrl, servedPictures }: Service) {
  let opened: Promise<OpenPictures> | undefined;
  const open = () => {
    const hosts = allowLibraryHost(config.mediaHosts, baseUrl);
    opened ??= import('./pictures/pictures.ts').then(({ openPictures }) =>
      openPictures({ hosts, servedPictures, userAgent, now: elapsed, random, resolve }),
    );
    return opened;
  };
  return { open, close: async () => (await opened)?.close() };
}

/** Opens a function that fetches pictures for a local library from the hosts that `AD_LIBRARY_MEDIA_HOSTS` allows. */
export async function openPictureFetch({ hosts, now }: Pick<PictureOptions, 'hosts' | 'now'>) {
  const opened = (await import('./pictures/pictures.ts')).openPictures({ hosts, userAgent, now, random: () => 0 });
  const pictures = opened.forTenant('library');
  return { fetch: pictures.original, close: opened.close };
}

/** Adds the local library to the allowed picture hosts, because it serves the pictures of its ads itself. */
function allowLibraryHost(hosts: Config['mediaHosts'], baseUrl: string | undefined): Config['mediaHosts'] {
  const isNone = !hosts.public && hosts.listed.length === 0;
  const { hostname, port, protocol } = new URL(baseUrl ?? 'https://none.invalid');
  if (isNone || !isLoopback(hostname)) return hosts;
  const libraryHost = { host: hostname, port: Number(port || (protocol === 'https:' ? 443 : 80)) };
  return { ...hosts, listed: [...hosts.listed, libraryHost] };
}

/** Returns a catalog that rejects every call, because the settings are invalid. */
function rejectAllCalls(catalog: Catalog, problems: readonly string[]): Catalog {
  const problem = problems.map(escapeControlCharacters).join('\n');
  const error = new AdLibraryError({ kind: 'no_api_key', wrongSettings: true, problem, sent: false });
  return { ...catalog, callTool: async () => catalog.refuse(error) };
}

function openService({ config, fetch }: AppOptions): Service {
  const { baseUrl, apiKey, searchFilters } = config;
  const service: Service = { fetch, baseUrl, apiKey };
  if (searchFilters) return { ...service, searchFilters: async () => searchFilters };
  if (baseUrl === undefined || !isLoopback(new URL(baseUrl).hostname)) return service;
  let filters: Promise<SearchFilters | undefined> | undefined;
  const fetchFiltersOnce = () => {
    filters ??= fetchLibraryFilters(baseUrl, fetch).catch(() => {
      // The library may start later than this server, so the next call tries again.
      filters = undefined;
      return undefined;
    });
    return filters;
  };
  return { ...service, searchFilters: fetchFiltersOnce };
}

/**
 * Fetches the filter keys of a service on this machine. Such a service is often a local library, which publishes its
 * filter keys at `/filters.json`.
 */
async function fetchLibraryFilters(baseUrl: string, fetch: Fetch | undefined): Promise<SearchFilters | undefined> {
  const [{ fetchServedFilters }, { libraryFilters }] = await Promise.all([
    import('./mcp/served-filters.ts'),
    import('./library/open.ts'),
  ]);
  return fetchServedFilters({ baseUrl, userAgent, fetch, ownFilters: libraryFilters });
}

async function openDemo({ now, log, mediaUrl = placeholderMediaUrl }: AppOptions): Promise<Service> {
  const { createDemoLibrary: demoLibrary, libraryFilters } = await import('./library/open.ts');
  const { apiKey, fetch, callApi, close } = demoLibrary({
    now,
    baseUrls: { media: mediaUrl, app: 'https://app.demo.example' },
    onError: (error) => log.error('the demo library failed', { error: String(error) }),
  });
  return {
    fetch: async (url, { method, headers, body, onSent }) => {
      onSent();
      const response = await callApi({
        method,
        url,
        headers: createHeaderReader(headers),
        body: body === undefined ? null : [Buffer.from(body)],
      });
      return {
        status: response.status,
        headers: createHeaderReader(response.headers),
        text: async () => response.body,
      };
    },
    baseUrl: 'http://demo.invalid',
    apiKey,
    servedPictures: { urlPrefix: `${mediaUrl}/`, answer: fetch },
    notice: 'DEMO DATA: every advertiser and ad is generated and fictional; no real credits are spent.',
    searchFilters: async () => libraryFilters,
    close,
  };
}

/** Returns the headers in the form in which a web-standard request or response offers them. */
function createHeaderReader(headers: Record<string, string>) {
  const values = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  return { get: (name: string) => values.get(name.toLowerCase()) ?? null };
}

const publicTools = describedTools.filter(({ onlyForBoard }) => !onlyForBoard);

/** The names of all tools that a user can enable. */
export const toolNames = publicTools.map(({ name }) => name);

/** Selects the enabled tools. The tools of the board's page are added if any enabled tool shows the board. */
function selectTools({ tools: names, readOnly }: Config): ReadonlyMap<string, DescribedTool> {
  const enabledTools = publicTools
    .filter((tool) => names?.includes(tool.name) ?? true)
    .filter((tool) => !readOnly || !tool.operations.some((name) => operations[name].writes));
  const listedTools = enabledTools.some((tool) => tool.showsBoard)
    ? [...enabledTools, ...describedTools.filter(({ onlyForBoard }) => onlyForBoard)]
    : enabledTools;
  return new Map(listedTools.map((tool) => [tool.name, tool]));
}
