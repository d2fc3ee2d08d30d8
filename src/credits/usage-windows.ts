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

/** Reads `GET /v1/credits` on behalf of another call. Returns undefined if no answer arrives in time. */
export type ReadCredits = (send: Send, call: Call) => Promise<CreditStatusAnswer | undefined>;

/** The longest time that a call waits for the balance, in milliseconds. */
const maxWaitMs = 2000;
/** The longest time that a call waits for the balance, as a share of the time limit of the call. */
const maxWaitShare = 0.25;
/** The time without further requests for the balance after one got no answer in time, in milliseconds. */
const silenceMs = 60_000;
/** The most tenants whose last request for the balance is remembered as unanswered. */
const maxSilentTenants = 10_000;

/** Creates a function that reads the balance. It sends nothing for a minute after a request without an answer. */
export function createCreditsReader({ timeoutMs, now }: { timeoutMs: number; now: () => number }): ReadCredits {
  const silentTenants = new LRUCache<string, true>({
    max: maxSilentTenants,
    ttl: silenceMs,
    ttlResolution: 0,
    perf: { now },
  });
  const ms = Math.min(maxWaitMs, maxWaitShare * timeoutMs);
  const request = requestWithoutArguments(operations.getCredits);
  return async (send, { owner }) => {
    const { apiKey, tenantId } = owner;
    if (silentTenants.has(tenantId)) return undefined;
    return withDeadline({ signals: [], ms }, async (signal) => {
      try {
        // The call is free, so it is not counted toward a connection.
        const call = { request, owner: { apiKey, tenantId }, signal, cache: {}, progress: { sent: false } };
        return (await send(call)).value as CreditStatusAnswer;
      } catch {
        if (signal.aborted) silentTenants.set(tenantId, true);
        return undefined;
      }
    });
  };
}

/** How long a window counts as full before the server requests it again, in milliseconds. */
const recheckAfterMs = 60_000;

/**
 * Tracks the usage windows of keys. A 429 is explained with the windows of `GET /v1/credits`, which is not gated, and a
 * 402 with the balance.
 *
 * While a window has fewer credits left than a gated call costs, the server refuses the call without sending it. This
 * ends when an answer of `GET /v1/credits` shows enough credits. If a repeated `GET /v1/credits` gets no answer, the
 * server sends the call.
 */
export function trackUsageWindows(
  { pricesOf, windows, now }: { pricesOf: ReadPrices; windows: FullWindows; now: () => number },
  readCredits: (call: Call) => Promise<CreditStatusAnswer | undefined>,
) {
  const requests = new Map<string, Promise<CreditStatusAnswer | undefined>>();

  const recordUsageLimit = (tenantId: string, usageLimit: UsageLimitAnswer | undefined, isRefused = false) => {
    const isFull = usageLimit !== undefined && (usageLimit.isLimitReached || isRefused);
    return windows.set(
      tenantId,
      isFull ? { usageLimit, remaining: computeRemaining(usageLimit), checkedAt: now(), id: randomUUID() } : undefined,
    );
  };

  /** Reads the balance and the windows. Concurrent calls share one request. Returns undefined if no answer arrives. */
  const readCreditsOnce = (call: Call): Promise<CreditStatusAnswer | undefined> => {
    const { tenantId } = call.owner;
    const request = requests.get(tenantId) ?? readCredits(call).finally(() => requests.delete(tenantId));
    requests.set(tenantId, request);
    return request;
  };

  /** Returns whether a window has fewer credits left than the lowest cost of the call. */
  const isTooFull = async (window: FullWindow, call: Call): Promise<boolean> => {
    return (
      window.remaining <= 0 ||
      computeRequestBounds(await pricesOf(call.owner.tenantId), call.request).atLeast > window.remaining
    );
  };

  return {
    recordUsageLimit,
    /**
     * Returns the full window of the key, if one is known.
     * @throws AdLibraryError `usage_limit` if the call does not fit into the window
     */
    async admit(call: Call): Promise<FullWindow | undefined> {
      const { tenantId } = call.owner;
      const window = await windows.get(tenantId);
      if (window === undefined || !(await isTooFull(window, call))) return window;
      if (now() - window.checkedAt < recheckAfterMs) throw createUsageLimitError(window.usageLimit);
      // The time is recorded before the request, so that concurrent calls send only one request.
      await windows.set(tenantId, { ...window, checkedAt: now() });
      await recordUsageLimit(tenantId, (await readCreditsOnce(call))?.usageLimit);
      const recheckedWindow = await windows.get(tenantId);
      if (recheckedWindow && (await isTooFull(recheckedWindow, call)))
        throw createUsageLimitError(recheckedWindow.usageLimit);
      return recheckedWindow;
    },
    async explain(error: unknown, call: Call, windowBefore: FullWindow | undefined): Promise<unknown> {
      const failure = error instanceof AdLibraryError ? error.failure : undefined;
      if (failure?.kind !== 'usage_limit' && failure?.kind !== 'payment_required') return error;
      // Another call may have read the windows in the meantime.
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

/** Computes the credits left in the hourly or the daily window, whichever has less. */
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

/** Creates the error for a call that does not fit into a usage window. */
const createUsageLimitError = (usageLimit: UsageLimitAnswer) =>
  new AdLibraryError({ kind: 'usage_limit', status: 429, usageLimit, sent: false });
