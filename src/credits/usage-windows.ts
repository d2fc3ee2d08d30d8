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

/** Asks `GET /v1/credits` on behalf of another call. Undefined if there is no answer soon. */
export type ReadCredits = (send: Send, call: Call) => Promise<CreditStatusAnswer | undefined>;

/** How long a call may wait for the balance: in milliseconds, and as a share of the call's time. */
const maxWaitMs = 2000;
const maxWaitShare = 0.25;
/** How long the service is not asked again after it gave no answer in time, in milliseconds. */
const silenceMs = 60_000;
/** Tenants that are remembered because the service gave no answer in time. */
const maxSilentTenants = 10_000;

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
        // The call costs nothing, so no connection records it.
        const call = { request, owner: { apiKey, tenantId }, signal, cache: {}, progress: { sent: false } };
        return (await send(call)).value as CreditStatusAnswer;
      } catch {
        if (signal.aborted) silentTenants.set(tenantId, true);
        return undefined;
      }
    });
  };
}

/** How long a window counts as full before the service is asked again, in milliseconds. */
const recheckAfterMs = 60_000;

/**
 * Explains a 429 with the windows of `GET /v1/credits`, which is not gated, and a 402 with its balance. While a window
 * is known to have less left than a gated call costs, the call is refused without sending it. Any answer of `GET
 * /v1/credits` that shows room ends this; if it gives no answer when asked again, the call itself is sent.
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

  /** The balance and the windows; concurrent callers share one request. Undefined if there is no answer. */
  const readCreditsOnce = (call: Call): Promise<CreditStatusAnswer | undefined> => {
    const { tenantId } = call.owner;
    const request = requests.get(tenantId) ?? readCredits(call).finally(() => requests.delete(tenantId));
    requests.set(tenantId, request);
    return request;
  };

  /** Returns whether a window has less left than the lowest cost of the call. */
  const isTooFull = async (window: FullWindow, call: Call): Promise<boolean> => {
    return (
      window.remaining <= 0 ||
      computeRequestBounds(await pricesOf(call.owner.tenantId), call.request).atLeast > window.remaining
    );
  };

  return {
    recordUsageLimit,
    /** Throws if the call does not fit into a window; returns what is known of the window. */
    async admit(call: Call): Promise<FullWindow | undefined> {
      const { tenantId } = call.owner;
      const window = await windows.get(tenantId);
      if (window === undefined || !(await isTooFull(window, call))) return window;
      if (now() - window.checkedAt < recheckAfterMs) throw createUsageLimitError(window.usageLimit);
      // Recorded first, so that concurrent calls ask once.
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
      // Another call may have found out in the meantime.
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

const createUsageLimitError = (usageLimit: UsageLimitAnswer) =>
  new AdLibraryError({ kind: 'usage_limit', status: 429, usageLimit, sent: false });
