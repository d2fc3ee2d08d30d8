import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import type { ServiceRequest } from '../api/call.ts';
import { type Api, type ApiResponse, type Caller, type Credentials, getApiKeyOrThrow } from '../api/client.ts';
import { operations } from '../api/operations.ts';
import type { CallCache } from '../cache/call-cache.ts';
import type { Meter } from '../credits/meter.ts';
import { computePriceBounds, computeRequestPriceBounds } from '../credits/prices.ts';
import { createAdRowReaderFactory } from '../dataset/ad-rows.ts';
import { createDatasetSql } from '../dataset/snapshot.ts';
import type { PictureService } from '../pictures/pictures.ts';
import type { AcceptedKeys } from '../storage/call-state.ts';
import type { FileLinks, TenantExports } from '../storage/exports.ts';
import type { ServerState } from '../storage/open.ts';
import { signCursor } from '../tools/cursors.ts';
import type { CallerContext } from '../tools/tool.ts';
import { Semaphore } from '../workers/semaphore.ts';

interface CallerFunctionsOptions {
  createCallerApi(caller: Caller): Api;
  callCache: CallCache;
  acceptedKeys: AcceptedKeys;
  meter: Meter;
  state: ServerState;
  openPictures(): Promise<PictureService>;
  baseUrl: string | undefined;
  version: string;
  /** Returns the current time, in milliseconds since 1970. */
  now: () => number;
}

/**
 * The time limit, in milliseconds, for asking the service whether it accepts a caller's API key. The caller can read
 * files only if the service accepts the key.
 */
const keyCheckTimeoutMs = 5000;

/** The functions that run API calls and store data for all tool calls of this process. Created on the first call. */
export type CallBackend = Omit<ReturnType<typeof createCallerFunctions>, 'close'> & {
  /** Asks the service which account the caller's API key belongs to. */
  whoami(caller: Caller): Promise<ApiResponse<'whoami'>>;
  /**
   * Closes the resources. Waits up to `drainMs` milliseconds for paid requests that have already been sent, and aborts
   * all other requests immediately.
   */
  close(drainMs: number): Promise<void>;
};

/**
 * Creates the functions that use the cache, the credit meter and the storage on behalf of one caller.
 */
export function createCallerFunctions(options: CallerFunctionsOptions) {
  const { createCallerApi, callCache, acceptedKeys, meter, state, baseUrl, version: serverVersion, now } = options;
  const adRows = createAdRowReaderFactory(now);
  const datasetSql = createDatasetSql(adRows);
  const cpuIntensiveCallSlots = new Semaphore({
    maxRunningCalls: 16,
    maxRunningCallsPerKey: 1,
    workName: 'reports and batches of labels',
  });
  return {
    /** Returns the part of the tool context that depends on the caller, e.g. the API client with the caller's key. */
    createContext(caller: Caller): CallerContext {
      const { tenantId, connection, signal } = caller;
      const startedAt = now();
      return {
        api: createCallerApi(caller),
        openDataset: async () => {
          const dataset = await callCache.openDataset({ tenantId, apiKey: getApiKeyOrThrow(caller, baseUrl) }, signal);
          if (dataset.isOwnerUnconfirmed) caller.onOwnerUnconfirmed?.();
          return dataset;
        },
        getAdRowReader: () => adRows.forTenant(tenantId),
        getDatasetSql: () => datasetSql.forTenant(tenantId),
        serverVersion,
        getExports: () => state.exports.forTenant(tenantId, startedAt),
        readSpending: () => meter.readSpending({ tenantId, connection }),
        getPagePrice: async (listOperation, itemCount) => {
          const operation = operations[listOperation];
          const priceBounds = computePriceBounds(await meter.readPrices(tenantId), operation, itemCount);
          return Number.isFinite(priceBounds.atMost) ? priceBounds : undefined;
        },
        findCachedTotal: (filters) => callCache.findCachedTotal(tenantId, filters),
        isCached: (request) => callCache.hasCachedResponse(tenantId, request),
        createCallBudget: (maxCredits) => meter.createCallBudget({ tenantId, connection }, maxCredits),
        acquireLock: (name) => state.locks.acquire(`${tenantId} ${name}`, signal),
        loadPictures: async () => (await options.openPictures()).forTenant(tenantId),
        cursors: { sign: (cursorText) => signCursor(caller.apiKey, cursorText), ...state.openCursors(tenantId) },
      };
    },
    /** Returns the lowest and the highest price that a request can have, according to earlier charges. */
    getRequestPrice: async (tenantId: string, request: ServiceRequest) =>
      computeRequestPriceBounds(await meter.readPrices(tenantId), request),
    useOnce: state.useOnce,
    /**
     * Runs a CPU-intensive call when the same caller's other CPU-intensive calls have ended. Yields to the event loop
     * first, so that requests of other callers are not delayed.
     */
    runCpuIntensiveCall: <Result>(tenantId: string, signal: AbortSignal, runWork: () => Promise<Result>) =>
      cpuIntensiveCallSlots.runInSlot(tenantId, signal, () => yieldToEventLoop().then(runWork)),
    /**
     * Returns the files that a caller has exported. The caller can read the files only while the service accepts the
     * caller's API key.
     */
    getExports(caller: Credentials): TenantExports {
      const { tenantId } = caller;
      const exports = state.exports.forTenant(tenantId);
      const isKeyAccepted = async () => {
        try {
          const signal = AbortSignal.timeout(keyCheckTimeoutMs);
          await callCache.confirmKey({ tenantId, apiKey: getApiKeyOrThrow(caller, baseUrl) }, signal);
          return true;
        } catch {
          return false;
        }
      };
      return {
        ...exports,
        // Use the stored result of the last key check instead of asking the service, because hosts request this list
        // often.
        list: async () => ((await acceptedKeys.has(tenantId)) ? exports.list() : []),
        find: async (uri) => ((await isKeyAccepted()) ? exports.find(uri) : undefined),
      };
    },
    findLinkedFile: (async (link, name) => state.exports.links?.find(link, name)) satisfies FileLinks['find'],
    /**
     * Extends how long the server remembers the credits that a sign-in connection has spent. Called when the connection
     * is renewed, so that earlier spending still counts against the connection's budget.
     */
    extendSpendingRetention: meter.extendSpendingRetention,
    close: datasetSql.close,
  };
}
