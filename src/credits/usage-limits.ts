import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { withDeadline } from '../api/abort.ts';
import { type ApiCall, createRequestWithoutArguments, type SendCall } from '../api/call.ts';
import type { ParsedCreditStatus } from '../api/client.ts';
import { AdLibraryError } from '../api/errors.ts';
import { operations } from '../api/operations.ts';
import type { ParsedUsageLimit } from '../api/schemas.ts';
import { createLruOptions } from '../lru-options.ts';
import type { ReadPrices } from './budget.ts';
import { isAffordable, type ReachedUsageLimit, type ReachedUsageLimitStore } from './ledger.ts';
import { computeRequestPriceBounds } from './prices.ts';

/**
 * Requests `GET /v1/credits`, e.g. to explain why another call failed. Resolves to undefined if no response arrives in
 * time.
 */
export type ReadCreditStatus = (send: SendCall, call: ApiCall) => Promise<ParsedCreditStatus | undefined>;

/** The maximum time to wait for the response to `GET /v1/credits`, in milliseconds. */
const maxCreditStatusWaitMs = 2000;
/**
 * The maximum time to wait for the response to `GET /v1/credits`, as a fraction of a call's time limit. The shorter of
 * both times applies.
 */
const maxCreditStatusWaitFraction = 0.25;
/**
 * How long the server sends no `GET /v1/credits` for an API key after such a request has timed out, in milliseconds.
 * Further calls then do not have to wait for a slow service.
 */
const pauseAfterTimeoutMs = 60_000;
/** The maximum number of tenants (API keys) for which the server remembers that `GET /v1/credits` has timed out. */
const maxPausedTenants = 10_000;

/**
 * Creates a function that reads the credit balance and the usage limits of an API key. After a request has timed out,
 * the function sends no further request for this key for a minute.
 */
export function createCreditStatusReader({
  timeoutMs,
  monotonicNow,
}: {
  timeoutMs: number;
  monotonicNow: () => number;
}): ReadCreditStatus {
  const pausedTenants = new LRUCache<string, true>({
    ...createLruOptions(maxPausedTenants),
    ttl: pauseAfterTimeoutMs,
    ttlResolution: 0,
    perf: { now: monotonicNow },
  });
  const waitLimitMs = Math.min(maxCreditStatusWaitMs, maxCreditStatusWaitFraction * timeoutMs);
  const request = createRequestWithoutArguments(operations.getCredits);
  return async (send, { owner }) => {
    const { apiKey, tenantId } = owner;
    if (pausedTenants.has(tenantId)) return undefined;
    return withDeadline({ signals: [], timeoutMs: waitLimitMs }, async (signal) => {
      try {
        // `owner` omits the sign-in connection of the caller, so that this free request does not count toward the
        // budget of the connection.
        const call = { request, owner: { apiKey, tenantId }, signal, cacheOptions: {}, progress: { isSent: false } };
        return (await send(call)).validatedBody as ParsedCreditStatus;
      } catch {
        if (signal.aborted) pausedTenants.set(tenantId, true);
        return undefined;
      }
    });
  };
}

/** How long an hourly or daily limit counts as reached before the server asks the service again, in milliseconds. */
const recheckAfterMs = 60_000;

/**
 * Creates a tracker of the API keys that have reached the service's hourly or daily limit on credits.
 *
 * A paid call that costs more than the remaining credits is refused without being sent. After a minute, the limits are
 * read again from the free `GET /v1/credits`. If they allow the call, or if no response arrives, the call is sent. The
 * response of `GET /v1/credits` also explains 402 and 429 errors.
 */
export function createUsageLimitTracker(
  {
    readPrices,
    reachedUsageLimits,
    monotonicNow,
  }: { readPrices: ReadPrices; reachedUsageLimits: ReachedUsageLimitStore; monotonicNow: () => number },
  readCreditStatus: (call: ApiCall) => Promise<ParsedCreditStatus | undefined>,
) {
  const requestsInProgress = new Map<string, Promise<ParsedCreditStatus | undefined>>();

  /**
   * Stores the usage limits of an API key if one of them is reached. Otherwise, removes the stored limits.
   * @param wasCallRefused true if the service has just answered 429, so that a limit counts as reached in any case
   */
  const recordUsageLimit = (tenantId: string, usageLimit: ParsedUsageLimit | undefined, wasCallRefused = false) => {
    const isReached = usageLimit !== undefined && (usageLimit.isLimitReached || wasCallRefused);
    return reachedUsageLimits.set(
      tenantId,
      isReached
        ? {
            usageLimit,
            remainingCredits: computeRemainingCredits(usageLimit),
            checkedAt: monotonicNow(),
            id: randomUUID(),
          }
        : undefined,
    );
  };

  /**
   * Reads the credit balance and the usage limits of an API key. Concurrent calls with the same key share one request.
   * Resolves to undefined if no response arrives in time.
   */
  const readSharedCreditStatus = (call: ApiCall): Promise<ParsedCreditStatus | undefined> => {
    const { tenantId } = call.owner;
    const pendingStatus =
      requestsInProgress.get(tenantId) ?? readCreditStatus(call).finally(() => requestsInProgress.delete(tenantId));
    requestsInProgress.set(tenantId, pendingStatus);
    return pendingStatus;
  };

  /**
   * Returns true if the reached limit leaves no credits, or fewer credits than the lowest expected cost of the call.
   */
  const isBeyondLimit = async ({ remainingCredits }: ReachedUsageLimit, call: ApiCall): Promise<boolean> => {
    if (remainingCredits <= 0) return true;
    const { atLeast } = computeRequestPriceBounds(await readPrices(call.owner.tenantId), call.request);
    return !isAffordable(atLeast, remainingCredits);
  };

  return {
    recordUsageLimit,
    /**
     * Checks a call against the hourly or daily limit that its API key has reached. Returns this limit, or undefined if
     * the key has reached no limit.
     * @throws AdLibraryError `usage_limit` if the call would exceed the limit
     */
    async admitCall(call: ApiCall): Promise<ReachedUsageLimit | undefined> {
      const { tenantId } = call.owner;
      const reachedLimit = await reachedUsageLimits.get(tenantId);
      if (reachedLimit === undefined || !(await isBeyondLimit(reachedLimit, call))) return reachedLimit;
      if (monotonicNow() - reachedLimit.checkedAt < recheckAfterMs)
        throw createUsageLimitError(reachedLimit.usageLimit);
      // Store the time of this check before requesting `GET /v1/credits`, so that concurrent calls do not request it
      // again.
      await reachedUsageLimits.set(tenantId, { ...reachedLimit, checkedAt: monotonicNow() });
      await recordUsageLimit(tenantId, (await readSharedCreditStatus(call))?.usageLimit);
      const recheckedLimit = await reachedUsageLimits.get(tenantId);
      if (recheckedLimit && (await isBeyondLimit(recheckedLimit, call)))
        throw createUsageLimitError(recheckedLimit.usageLimit);
      return recheckedLimit;
    },
    /** Adds the usage limits to a 429 error, or the credit balance to a 402 error. Returns other errors unchanged. */
    async addCreditStatusToError(
      error: unknown,
      call: ApiCall,
      previousLimit: ReachedUsageLimit | undefined,
    ): Promise<unknown> {
      const failure = error instanceof AdLibraryError ? error.failure : undefined;
      if (failure?.kind !== 'usage_limit' && failure?.kind !== 'payment_required') return error;
      // If another call has updated the usage limits since this call was sent, reuse them instead of sending a request.
      const newerLimit = await reachedUsageLimits.get(call.owner.tenantId);
      if (failure.kind === 'usage_limit' && newerLimit && newerLimit.id !== previousLimit?.id) {
        return new AdLibraryError({ ...failure, usageLimit: newerLimit.usageLimit }, { cause: error });
      }
      const creditStatus = await readSharedCreditStatus(call);
      if (failure.kind === 'payment_required') {
        return new AdLibraryError(
          { ...failure, remainingCredits: creditStatus?.credits ?? undefined },
          { cause: error },
        );
      }
      await recordUsageLimit(call.owner.tenantId, creditStatus?.usageLimit, true);
      return new AdLibraryError({ ...failure, usageLimit: creditStatus?.usageLimit }, { cause: error });
    },
  };
}

/** Computes the credits that remain within the hourly or the daily limit, whichever are fewer. */
function computeRemainingCredits({
  isLimitReached,
  hourlyCredits,
  hourlyLimit,
  dailyCredits,
  dailyLimit,
}: ParsedUsageLimit): number {
  if (isLimitReached) return 0;
  const computeUnusedCredits = (usedCredits: number | undefined, maxCredits: number | undefined) =>
    (maxCredits ?? Infinity) - (usedCredits ?? 0);
  return Math.max(
    0,
    Math.min(computeUnusedCredits(hourlyCredits, hourlyLimit), computeUnusedCredits(dailyCredits, dailyLimit)),
  );
}

/** Creates the error for a call that would exceed the hourly or daily usage limit. */
const createUsageLimitError = (usageLimit: ParsedUsageLimit) =>
  new AdLibraryError({ kind: 'usage_limit', status: 429, usageLimit, wasSent: false });
