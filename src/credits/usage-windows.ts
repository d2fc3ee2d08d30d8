import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { withDeadline } from '../api/abort.ts';
import { type Call, requestWithoutArguments, type Send } from '../api/call.ts';
import type { CreditStatusAnswer } from '../api/client.ts';
import { AdLibraryError } from '../api/errors.ts';
import { operations } from '../api/operations.ts';
import type { UsageLimitAnswer } from '../api/schemas.ts';
import type { ReadPrices } from './budget.ts';
import type { FullWindow, FullWindows } from './ledger.ts';
import { computeRequestBounds } from './prices.ts';

/** Requests `GET /v1/credits` on behalf of another call. Returns undefined if no response arrives in time. */
export type ReadCredits = (send: Send, call: Call) => Promise<CreditStatusAnswer | undefined>;

/** How long a call waits for the balance at most, in milliseconds. */
const maxWaitMs = 2000;
/** How long a call waits for the balance at most, as a fraction of the call's time limit. */
const maxWaitShare = 0.25;
/** After a balance request timed out, the server sends no other one for this time, in milliseconds. */
const pauseMs = 60_000;
/** The largest number of API keys whose timed-out balance request is remembered. */
const maxPausedTenants = 10_000;

/**
 * Creates a function that reads the balance and the usage windows. After a request that timed out, the function sends
 * nothing for a minute.
 */
export function createCreditsReader({ timeoutMs, now }: { timeoutMs: number; now: () => number }): ReadCredits {
  const pausedTenants = new LRUCache<string, true>({
    max: maxPausedTenants,
    ttl: pauseMs,
    ttlResolution: 0,
    perf: { now },
  });
  const ms = Math.min(maxWaitMs, maxWaitShare * timeoutMs);
  const request = requestWithoutArguments(operations.getCredits);
  return async (send, { owner }) => {
    const { apiKey, tenantId } = owner;
    if (pausedTenants.has(tenantId)) return undefined;
    return withDeadline({ signals: [], ms }, async (signal) => {
      try {
        // Leave out the connection: the call is free and must not count against it.
        const call = { request, owner: { apiKey, tenantId }, signal, cache: {}, progress: { sent: false } };
        return (await send(call)).value as CreditStatusAnswer;
      } catch {
        if (signal.aborted) pausedTenants.set(tenantId, true);
        return undefined;
      }
    });
  };
}

/** How long a window counts as full before the server asks the service again, in milliseconds. */
const recheckAfterMs = 60_000;

/**
 * Tracks the usage windows of API keys, i.e. the service's hourly and daily limits on credits. Uses the free `GET
 * /v1/credits` to add the windows to a 429 error, and the balance to a 402 error.
 *
 * While a window has fewer credits left than a gated call costs, the server refuses the call without sending it. After
 * a minute, the server requests `GET /v1/credits` again. If this shows enough credits, or if no response arrives, the
 * call is sent.
 */
export function trackUsageWindows(
  { readPrices, windows, now }: { readPrices: ReadPrices; windows: FullWindows; now: () => number },
  readCredits: (call: Call) => Promise<CreditStatusAnswer | undefined>,
) {
  const requestsInProgress = new Map<string, Promise<CreditStatusAnswer | undefined>>();

  const recordUsageLimit = (tenantId: string, usageLimit: UsageLimitAnswer | undefined, isRefused = false) => {
    const isFull = usageLimit !== undefined && (usageLimit.isLimitReached || isRefused);
    return windows.set(
      tenantId,
      isFull ? { usageLimit, remaining: computeRemaining(usageLimit), checkedAt: now(), id: randomUUID() } : undefined,
    );
  };

  /**
   * Reads the balance and the usage windows. Concurrent calls share one request. Returns undefined if no response
   * arrives in time.
   */
  const readCreditsOnce = (call: Call): Promise<CreditStatusAnswer | undefined> => {
    const { tenantId } = call.owner;
    const request =
      requestsInProgress.get(tenantId) ?? readCredits(call).finally(() => requestsInProgress.delete(tenantId));
    requestsInProgress.set(tenantId, request);
    return request;
  };

  /** Returns true if the window has fewer credits left than the lowest cost of the call. */
  const isTooFull = async (window: FullWindow, call: Call): Promise<boolean> => {
    return (
      window.remaining <= 0 ||
      computeRequestBounds(await readPrices(call.owner.tenantId), call.request).atLeast > window.remaining
    );
  };

  return {
    recordUsageLimit,
    /**
     * Checks a call against the full usage window of its key. Returns that window, or undefined if no window is full.
     * @throws AdLibraryError `usage_limit` if the call does not fit the window
     */
    async admit(call: Call): Promise<FullWindow | undefined> {
      const { tenantId } = call.owner;
      const window = await windows.get(tenantId);
      if (window === undefined || !(await isTooFull(window, call))) return window;
      if (now() - window.checkedAt < recheckAfterMs) throw createUsageLimitError(window.usageLimit);
      // Store the time before sending, so that concurrent calls do not send a second request.
      await windows.set(tenantId, { ...window, checkedAt: now() });
      await recordUsageLimit(tenantId, (await readCreditsOnce(call))?.usageLimit);
      const recheckedWindow = await windows.get(tenantId);
      if (recheckedWindow && (await isTooFull(recheckedWindow, call)))
        throw createUsageLimitError(recheckedWindow.usageLimit);
      return recheckedWindow;
    },
    /** Adds the usage windows to a 429 error, or the balance to a 402 error. Returns other errors unchanged. */
    async explain(error: unknown, call: Call, windowBefore: FullWindow | undefined): Promise<unknown> {
      const failure = error instanceof AdLibraryError ? error.failure : undefined;
      if (failure?.kind !== 'usage_limit' && failure?.kind !== 'payment_required') return error;
      // Another call may have read the usage windows since this call was sent.
      const newerWindow = await windows.get(call.owner.tenantId);
      if (failure.kind === 'usage_limit' && newerWindow && newerWindow.id !== windowBefore?.id) {
        return new AdLibraryError({ ...failure, usageLimit: newerWindow.usageLimit }, { cause: error });
      }
      const status = await readCreditsOnce(call);
      if (failure.kind === 'payment_required') {
        return new AdLibraryError({ ...failure, creditsLeft: status?.credits ?? undefined }, { cause: error });
      }
      await recordUsageLimit(call.owner.tenantId, status?.usageLimit, true);
      return new AdLibraryError({ ...failure, usageLimit: status?.usageLimit }, { cause: error });
    },
  };
}

/** Returns the credits left in the hourly or the daily window, whichever is lower. */
function computeRemaining({
  isLimitReached,
  hourlyCredits,
  hourlyLimit,
  dailyCredits,
  dailyLimit,
}: UsageLimitAnswer): number {
  if (isLimitReached) return 0;
  const remaining = (used: number | undefined, max: number | undefined) => (max ?? Infinity) - (used ?? 0);
  return Math.max(0, Math.min(remaining(hourlyCredits, hourlyLimit), remaining(dailyCredits, dailyLimit)));
}

/** Creates the error for a call that does not fit a usage window. */
const createUsageLimitError = (usageLimit: UsageLimitAnswer) =>
  new AdLibraryError({ kind: 'usage_limit', status: 429, usageLimit, sent: false });
