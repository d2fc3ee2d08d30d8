import { abortedError, raceAbort, timeIsUp } from './abort.ts';
import { AdLibraryError } from './errors.ts';
import type { Answer, Call, Send, Transit } from './send.ts';

/** A call in progress, for one caller or several. */
export interface InFlightCall {
  /** Returns the answer to one more caller; rejects if that caller leaves first. */
  join(signal: AbortSignal): Promise<Answer>;
  /** Resolves when the call has succeeded or failed. */
  settled: Promise<void>;
  /** Whether it was aborted, and cannot be joined any more. */
  isAborted(): boolean;
}

export interface InFlightCalls {
  /** Throws `busy` if too many are in progress. */
  start(call: Call, send: Send): InFlightCall;
  /** Waits up to `ms` for calls that were sent, and aborts the rest. */
  close(ms: number): Promise<void>;
}

export interface InFlightOptions {
  /** How long a call may continue without a caller, in milliseconds: as long as a tool call. */
  timeoutMs: number;
  /** Calls in progress, per tenant and in total. They count until they end, even if their caller has left. */
  maxPerTenant: number;
  maxInAll: number;
  /** Receives the calls that were still unanswered at `close`. */
  onLost(call: Call): void;
}

interface TrackedCall {
  call: Call;
  transit: Transit;
  abort: AbortController;
  callers: number;
}

/**
 * Continues calls that were sent until their answer arrives, even if all their callers have left: the service carries
 * them out and charges for them anyway, and a repeated call finds the answer in the cache. A call that was not sent yet
 * ends with its last caller.
 */
export function trackInFlightCalls({ timeoutMs, maxPerTenant, maxInAll, onLost }: InFlightOptions): InFlightCalls {
  const tracked = new Set<TrackedCall>();
  const perTenant = new Map<string, number>();
  let emptied = () => {};

  const begin = (entry: TrackedCall) => {
    const { tenantId } = entry.call;
    const ofTenant = perTenant.get(tenantId) ?? 0;
    if (tracked.size >= maxInAll || ofTenant >= maxPerTenant) throw tooMany();
    tracked.add(entry);
    perTenant.set(tenantId, ofTenant + 1);
  };
  const end = (entry: TrackedCall) => {
    const { tenantId } = entry.call;
    const left = (perTenant.get(tenantId) ?? 1) - 1;
    tracked.delete(entry);
    if (left === 0) perTenant.delete(tenantId);
    else perTenant.set(tenantId, left);
    if (tracked.size === 0) emptied();
  };

  return {
    start(call, send) {
      const abort = new AbortController();
      const entry: TrackedCall = {
        call,
        abort,
        callers: 0,
        transit: { sent: false, isWanted: () => entry.callers > 0 },
      };
      begin(entry);
      const timer = setTimeout(() => abort.abort(timeIsUp()), timeoutMs).unref();
      const answer = send({ ...call, signal: abort.signal, transit: entry.transit }).finally(() => {
        clearTimeout(timer);
        end(entry);
      });
      return {
        join: (signal) => join(entry, answer, signal),
        settled: answer.then(noop, noop),
        isAborted: () => abort.signal.aborted,
      };
    },
    async close(ms) {
      const drained = new Promise<void>((resolve) => {
        emptied = resolve;
        if (tracked.size === 0) resolve();
      });
      if (ms > 0) await Promise.race([drained, new Promise((resolve) => setTimeout(resolve, ms).unref())]);
      for (const { abort, call, transit } of tracked) {
        if (transit.sent) onLost(call);
        abort.abort();
      }
    },
  };
}

const noop = () => {};

async function join(entry: TrackedCall, answer: Promise<Answer>, signal: AbortSignal): Promise<Answer> {
  const { abort, transit } = entry;
  entry.callers++;
  try {
    return await raceAbort(answer, signal);
  } catch (error) {
    throw signal.aborted && error === signal.reason ? abortedError(signal, transit.sent) : error;
  } finally {
    entry.callers--;
    if (entry.callers === 0 && !transit.sent) abort.abort(signal.reason);
  }
}

const tooMany = () =>
  new AdLibraryError({
    kind: 'busy',
    problem: 'Too many cancelled calls are still waiting for the service.',
    sent: false,
    details: { retryAfterSeconds: 10 },
  });
