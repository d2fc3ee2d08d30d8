import { setMaxListeners } from 'node:events';
import { resolve as toAbsolutePath } from 'node:path';
import packageJson from '../package.json' with { type: 'json' };
import type { ApiCall, SignInConnection } from './api/call.ts';
import type { Caller, Credentials } from './api/client.ts';
import { AdLibraryError } from './api/errors.ts';
import type { Fetch } from './api/http.ts';
import { operations } from './api/operations.ts';
import type { SearchFilters } from './api/search-filters.ts';
import { isLoopbackHost } from './config/setting-values.ts';
import type { Config } from './config/settings.ts';
import type { Meter } from './credits/meter.ts';
import { createLazyGetter } from './lazy-getter.ts';
import { createKeyMasker, maskPrefixedKeys } from './logging/key-masking.ts';
import { createCallLogger, escapeControlCharacters, type Logger, type OnCall } from './logging/log.ts';
import type { CallBackend } from './mcp/caller-context.ts';
import { type Catalog, createCatalog } from './mcp/catalog.ts';
import { type DescribedTool, describedTools } from './mcp/described-tools.ts';
import type { ResolveHost, ServedPictures } from './pictures/fetch-picture.ts';
import type { PictureServiceOptions } from './pictures/pictures.ts';
import type { AcceptedKeys } from './storage/call-state.ts';
import type { ExportTarget } from './storage/exports.ts';
import type { ReplicaState } from './storage/store/open-store.ts';

export const { version } = packageJson;

/** The settings of the server, and the dependencies that the caller passes in, e.g. the clocks and the network. */
export interface AppOptions {
  config: Config;
  /**
   * Problems in the settings. If the settings have problems, every call fails with an error that lists these problems.
   */
  problems?: readonly string[];
  log: Logger;
  /** Called after each tool call, e.g. to count the calls. By default, the call is written to the log. */
  onCall?: OnCall;
  now: () => number;
  /** Returns milliseconds from a clock that is never set back, unlike `Date.now()`. Use it to measure durations. */
  monotonicNow: () => number;
  random: () => number;
  /** Sends requests to the service. By default, the requests go over the network. */
  fetch?: Fetch | undefined;
  /** The base URL at which this server serves the pictures of demo ads. Undefined if no HTTP server runs. */
  demoPicturesUrl?: string | undefined;
  /** Looks up the IP addresses of a host before a picture is fetched from this host. By default, uses DNS. */
  resolveHost?: ResolveHost | undefined;
  /**
   * Stores the API keys that the service has accepted recently. The default is for a server with a single user, who has
   * only one key.
   */
  acceptedKeys?: AcceptedKeys | undefined;
  /** The state that all replicas (processes) of this server share, e.g. in Redis. Undefined for a single process. */
  replicaState?: ReplicaState | undefined;
  /** True if all processes with the same storage folder share one credit budget per day. */
  hasDailyBudget?: boolean | undefined;
  /** The folder for exported files if the settings define none. Without any folder, exported files stay in memory. */
  exportTarget?: ExportTarget | undefined;
}

/** Returns milliseconds from a clock that is never set back, unlike `Date.now()`. Use it to measure durations. */
export const monotonicNow = (): number => Math.round(performance.now());

/**
 * The base URL of demo pictures if no HTTP server runs. Every demo picture needs a URL, even if no server responds at
 * this URL.
 */
const placeholderPicturesUrl = 'https://media.demo.example/media';

/**
 * The service that receives the API calls: a real service, or the demo library, which implements the same API inside
 * this process.
 */
interface Service {
  /** The API key of a single-user server. Undefined if each caller sends an API key. */
  apiKey?: string | undefined;
  /**
   * Handles API requests inside this process. Set only for the demo library, because requests to a real service use the
   * network.
   */
  fetch: Fetch | undefined;
  baseUrl: string | undefined;
  searchFilters?(): Promise<SearchFilters | undefined>;
  servedPictures?: ServedPictures;
  notice?: string;
  close?(): Promise<void>;
}

/** A running server without a transport such as stdio or HTTP, so no client can reach it yet. */
export type App = Awaited<ReturnType<typeof openApp>>;

/**
 * Starts the server without a transport. The stdio and HTTP transports serve their clients with the returned object.
 */
export async function openApp(options: AppOptions) {
  const { config, problems = [], log, onCall = createCallLogger(log), now, monotonicNow } = options;
  const service = await (config.demo ? openDemo(options) : openService(options));
  const credentials: Credentials = { apiKey: service.apiKey, tenantId: 'own' };
  const drainController = new AbortController();
  const closeController = new AbortController();
  // Every call in progress listens to this signal. Without this line, Node would report a memory leak at more than ten
  // listeners.
  setMaxListeners(0, closeController.signal);
  const getCallBackend = createLazyGetter(() => openCallBackend(options, service));
  const { resultTokens, timeoutMs, cacheSeconds, confirmCredits, output } = config;
  const { notice, searchFilters: getSearchFilters } = service;
  const server = {
    tools: selectTools(config),
    now,
    monotonicNow,
    log,
    onCall,
    notice,
    maxTextTokens: resultTokens,
    timeoutMs,
    cacheLifetimeMs: cacheSeconds * 1000,
    maxUnconfirmedCredits: confirmCredits,
    output,
    drainSignal: drainController.signal,
    closeSignal: closeController.signal,
  };
  const catalog = createCatalog({
    server,
    version,
    openCallBackend: getCallBackend,
    getSearchFilters,
  });
  return {
    catalog: problems.length > 0 ? createRejectingCatalog(catalog, problems) : catalog,
    /** The credentials of calls without an API key: the key from the settings, or the key of the demo library. */
    credentials,
    /**
     * Asks the service whether it accepts an API key.
     * @throws AdLibraryError if the service rejects the key
     */
    checkKey: async (caller: Caller) => {
      const { validatedBody } = await (await getCallBackend()).whoami(caller);
      if (validatedBody.authenticated === false) throw new AdLibraryError({ kind: 'unauthorized', status: 200 });
    },
    /**
     * Extends how long the server remembers the credits that a sign-in connection has spent. Called when the connection
     * is renewed, so that earlier spending still counts against the connection's budget.
     */
    extendSpendingRetention: async (connection: SignInConnection) =>
      (await getCallBackend()).extendSpendingRetention(connection),
    findLinkedFile: async (link: string, fileName: string) => (await getCallBackend()).findLinkedFile(link, fileName),
    respondWithPicture: service.servedPictures?.respond,
    /**
     * Makes long tool calls stop early and return the data that they have read so far. Used before the process exits.
     */
    drain: () => drainController.abort(),
    /**
     * Ends all calls. Waits up to `drainMs` milliseconds for paid requests that were already sent, because the service
     * charges for them anyway.
     */
    close: async (drainMs = 0): Promise<void> => {
      closeController.abort();
      await (await getCallBackend.getIfCreated())?.close(drainMs);
      await service.close?.();
    },
  };
}

/**
 * The time limit in milliseconds for the request that asks the service to which account an API key belongs. A paid
 * response is stored under this account, so it may have to wait this long before it is stored.
 */
const whoamiTimeoutMs = 5000;

/**
 * Connects the API client, the cache, the credit meter and the storage. Imports their modules on the first call, so
 * that the server starts fast.
 */
export async function openCallBackend(options: AppOptions, apiService: Service): Promise<CallBackend> {
  const { config, log, now, monotonicNow, random, replicaState } = options;
  const { baseUrl } = apiService;
  const filesFolder = config.files === undefined ? undefined : toAbsolutePath(config.files);
  const { cacheSeconds, timeoutMs, creditBudget: budget, callsPerKey, callsAtOnce } = config;
  const {
    createApi,
    createCallerFunctions,
    createHttpSender,
    createMemoryLedger,
    createSingleUserAcceptedKeys,
    createUndiciFetch,
    createMeter,
    getExportsFolder,
    openCallCache,
    openState,
    wrapWithKeyRecording,
  } = await import('./call-modules.ts');
  const state = openState({
    ttlMs: cacheSeconds * 1000,
    baseUrl,
    apiKey: apiService.apiKey,
    hasDailyBudget: options.hasDailyBudget,
    replicaState,
    now,
    monotonicNow,
    // Demo data stays in memory, so the folder contains only files that the user exports.
    folder: config.demo ? undefined : filesFolder,
    exportTarget: filesFolder === undefined ? options.exportTarget : { folder: getExportsFolder(filesFolder) },
    fetchUserId: async (caller) => {
      const { validatedBody } = await whoami({ ...caller, signal: AbortSignal.timeout(whoamiTimeoutMs) });
      return validatedBody.user?.userId;
    },
    warn: log.warn,
  });
  const { ledger, reachedUsageLimits } = state;
  const { acceptedKeys = createSingleUserAcceptedKeys() } = options;
  const keys: AcceptedKeys = {
    ...acceptedKeys,
    remove: async (tenantId) => {
      // Find out whether calls with the rejected key may still be in progress. Every call first checks its key, so such
      // calls exist only if the service has accepted the key recently.
      const wasAccepted = await acceptedKeys.has(tenantId);
      await acceptedKeys.remove(tenantId);
      await state.exports.links?.disable(tenantId, wasAccepted);
    },
  };
  const createCallLedger = () => createMemoryLedger({ monotonicNow });
  const onResponseLost = (call: ApiCall) => void logLostCall(log, meter, call);
  const onDatasetError = (error: unknown) => {
    // If the shared store is unreachable, the log already says so. The response is added to the dataset (the stored
    // ads) when the store can be reached again.
    if (replicaState && error instanceof AdLibraryError && error.failure.kind === 'unavailable') return;
    log.error('an answer was not added to the dataset', { error: String(error) });
  };
  const networkClient = createUndiciFetch();
  const { fetch = networkClient.fetch } = apiService;
  const meterOptions = { ledger, reachedUsageLimits, budget, createCallLedger, timeoutMs, monotonicNow };
  const { datasets, responseCache } = state;
  const cacheOptions = { datasets, responseCache, cacheMs: cacheSeconds * 1000, acceptedKeys: keys };
  const inFlightLimits = {
    maxCallsPerTenant: Math.max(256, 2 * callsPerKey),
    maxCalls: Math.max(1024, 2 * callsAtOnce),
    timeoutMs,
  };

  // Every API call passes through the cache (`callCache`), then the credit meter, then HTTP. Without a base URL, the
  // API client rejects the call before the cache.
  const sendOverHttp = wrapWithKeyRecording(
    createHttpSender({ fetch, baseUrl: baseUrl ?? '', userAgent, random, createKeyMasker }),
    keys,
  );
  const meter = createMeter(sendOverHttp, meterOptions);
  const callCache = openCallCache(meter, {
    ...cacheOptions,
    ...inFlightLimits,
    now,
    onResponseLost,
    onDatasetError,
  });
  const createCallerApi = createApi(callCache.send, baseUrl);
  const whoami = (caller: Caller) => createCallerApi(caller).whoami();

  const pictureOpener = createPictureOpener(options, apiService);
  const sharedResources = createCallerFunctions({
    createCallerApi,
    callCache,
    acceptedKeys: keys,
    meter,
    state,
    openPictures: pictureOpener.open,
    baseUrl,
    version,
    now,
  });
  return {
    ...sharedResources,
    whoami,
    close: async (drainMs) => {
      await callCache.close(drainMs);
      await Promise.all([state.datasets.close(), sharedResources.close(), pictureOpener.close()]);
      // Close the network last, because closing a dataset (stored ads) whose owner is unknown sends one more request,
      // which asks for the owner.
      await networkClient.close();
    },
  };
}

async function logLostCall(log: Logger, meter: Meter, { request, owner }: ApiCall): Promise<void> {
  if (!request.operation.requiresCredits) return;
  const { computeRequestPriceBounds, isExactPrice } = await import('./credits/prices.ts');
  const bounds = computeRequestPriceBounds(await meter.readPrices(owner.tenantId), request);
  const fields = {
    operation: request.operation.name,
    credits: isExactPrice(bounds) ? bounds.atMost : `${bounds.atLeast} or more`,
  };
  log.warn('the server closed before the cost of a paid call was stored', fields);
}

const userAgent = `ad-library-mcp/${version}`;

function createPictureOpener(
  { config, monotonicNow, random, resolveHost }: AppOptions,
  { baseUrl, servedPictures }: Service,
) {
  const open = createLazyGetter(async () => {
    const hosts = allowLibraryHost(config.mediaHosts, baseUrl);
    const { openPictureService } = await import('./pictures/pictures.ts');
    return openPictureService({ hosts, servedPictures, userAgent, getTime: monotonicNow, random, resolveHost });
  });
  return { open, close: async () => (await open.getIfCreated())?.close() };
}

/**
 * Opens the fetcher of pictures for a local library (an API server on the user's machine). The fetcher connects only to
 * hosts that `AD_LIBRARY_MEDIA_HOSTS` allows.
 */
export async function openPictureFetcher({ hosts, getTime }: Pick<PictureServiceOptions, 'hosts' | 'getTime'>) {
  const pictureSource = (await import('./pictures/pictures.ts')).openPictureService({
    hosts,
    userAgent,
    getTime,
    random: () => 0,
  });
  const pictures = pictureSource.forTenant('library');
  return { fetch: pictures.fetchOriginal, close: pictureSource.close };
}

/**
 * Allows the host of a local library (an API server on this machine) as a picture host, because the library serves the
 * pictures of its ads itself.
 */
function allowLibraryHost(hosts: Config['mediaHosts'], baseUrl: string | undefined): Config['mediaHosts'] {
  const allowsNoHosts = !hosts.allowsPublicHosts && hosts.listedHosts.length === 0;
  const { hostname, port, protocol } = new URL(baseUrl ?? 'https://none.invalid');
  if (allowsNoHosts || !isLoopbackHost(hostname)) return hosts;
  const libraryHost = { host: hostname, port: Number(port || (protocol === 'https:' ? 443 : 80)) };
  return { ...hosts, listedHosts: [...hosts.listedHosts, libraryHost] };
}

/**
 * Returns a copy of the tool catalog in which every call fails with an error that lists the problems in the settings.
 */
function createRejectingCatalog(catalog: Catalog, problems: readonly string[]): Catalog {
  const problem = problems.map((text) => maskPrefixedKeys(escapeControlCharacters(text))).join('\n');
  const error = new AdLibraryError({ kind: 'no_api_key', hasInvalidSettings: true, problem, wasSent: false });
  return { ...catalog, callTool: async () => catalog.buildRejectedResult(error) };
}

function openService({ config, fetch }: AppOptions): Service {
  const { baseUrl, apiKey, searchFilters } = config;
  const service: Service = { fetch, baseUrl, apiKey };
  if (searchFilters) return { ...service, searchFilters: async () => searchFilters };
  if (baseUrl === undefined || !isLoopbackHost(new URL(baseUrl).hostname)) return service;
  const getServedFilters = createLazyGetter(() => fetchLibraryFilters(baseUrl, fetch));
  // The local library may start later than this server. Until then, each call of `getServedFilters` tries again.
  return { ...service, searchFilters: () => getServedFilters().catch(() => undefined) };
}

/**
 * Fetches the filter keys of a service on this machine from `/filters.json`. Such a service is often a local library,
 * i.e. an API server that the user runs.
 */
async function fetchLibraryFilters(baseUrl: string, fetch: Fetch | undefined): Promise<SearchFilters | undefined> {
  const [{ fetchServedFilters }, { libraryFilters }] = await Promise.all([
    import('./mcp/served-filters.ts'),
    import('./library/open.ts'),
  ]);
  return fetchServedFilters({ baseUrl, userAgent, fetch, builtInFilters: libraryFilters });
}

async function openDemo({ now, log, demoPicturesUrl = placeholderPicturesUrl }: AppOptions): Promise<Service> {
  const { createDemoLibrary, libraryFilters } = await import('./library/open.ts');
  const { apiKey, fetch, callApi, close } = createDemoLibrary({
    now,
    baseUrls: { media: demoPicturesUrl, app: 'https://app.demo.example' },
    onError: (error) => log.error('the demo library failed', { error: String(error) }),
  });
  return {
    fetch: async (url, { method, headers, body, onSent }) => {
      onSent();
      const response = await callApi({
        method,
        url,
        headers: createCaseInsensitiveHeaders(headers),
        body: body === undefined ? null : [Buffer.from(body)],
      });
      return {
        status: response.status,
        headers: createCaseInsensitiveHeaders(response.headers),
        text: async () => response.body,
      };
    },
    baseUrl: 'http://demo.invalid',
    apiKey,
    servedPictures: { urlPrefix: `${demoPicturesUrl}/`, respond: fetch },
    notice: 'DEMO DATA: every advertiser and ad is generated and fictional; no real credits are spent.',
    searchFilters: async () => libraryFilters,
    close,
  };
}

/**
 * Creates an object whose `get` method ignores the case of header names, like the `Headers` object of the web standard.
 */
function createCaseInsensitiveHeaders(headers: Record<string, string>) {
  const valuesByName = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  return { get: (name: string) => valuesByName.get(name.toLowerCase()) ?? null };
}

const publicTools = describedTools.filter(({ isOnlyForBoard }) => !isOnlyForBoard);

/** The names of all tools that a user can enable with `AD_LIBRARY_TOOLS`, e.g. `search_ads`. */
export const toolNames = publicTools.map(({ name }) => name);

/** The names of all tools, including the tools that only the board calls. */
export const allToolNames = describedTools.map(({ name }) => name);

/**
 * Selects the enabled tools. If one of them shows the board (the interactive view of ads), adds the tools that the
 * board calls.
 */
function selectTools({ tools: enabledNames, readOnly }: Config): ReadonlyMap<string, DescribedTool> {
  const enabledTools = publicTools
    .filter((tool) => enabledNames?.includes(tool.name) ?? true)
    .filter((tool) => !readOnly || !tool.operations.some((name) => operations[name].changesData));
  const listedTools = enabledTools.some((tool) => tool.showsBoard)
    ? [...enabledTools, ...describedTools.filter(({ isOnlyForBoard }) => isOnlyForBoard)]
    : enabledTools;
  return new Map(listedTools.map((tool) => [tool.name, tool]));
}
