import { LRUCache } from 'lru-cache';
import { withDeadline } from '../api/abort.ts';
import { operations } from '../api/operations.ts';
import type { CreditStatusAnswer } from '../api/response-schemas.ts';
import type { Call, Send } from '../api/send.ts';

/** Asks `GET /v1/credits` for the sake of another call. Undefined if there is no answer soon. */
export type AskCredits = (send: Send, call: Call) => Promise<CreditStatusAnswer | undefined>;

/** How long a call may wait for it: in milliseconds, and as a share of a call's time. */
const maxAskMs = 2000;
const maxShare = 0.25;
/** How long it is not asked again after it gave no answer in that time, in milliseconds. */
const restMs = 60_000;
/** Tenants for whom it gave none. */
const maxSilent = 10_000;

export function creditsAsker({ timeoutMs, now }: { timeoutMs: number; now: () => number }): AskCredits {
  const silent = new LRUCache<string, true>({ max: maxSilent, ttl: restMs, ttlResolution: 0, perf: { now } });
  const ms = Math.min(maxAskMs, maxShare * timeoutMs);
  const operation = operations.getCredits;
  return async (send, { apiKey, tenantId }) => {
    if (silent.has(tenantId)) return undefined;
    return withDeadline({ signals: [], ms }, async (signal) => {
      try {
        const call = { operation, path: {}, query: {}, fingerprint: operation.name, apiKey, tenantId, signal };
        return (await send(call)).value as CreditStatusAnswer;
      } catch {
        if (signal.aborted) silent.set(tenantId, true);
        return undefined;
      }
    });
  };
}
