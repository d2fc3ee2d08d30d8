import { type Answer, abortedError, type Call, raceAbort, type Send, type Transit, timeIsUp } from '../api/call.ts';
import { AdLibraryError } from '../api/errors.ts';
import type { CallRegister } from '../state/state.ts';

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
  /** The answer is a `busy` error if too many are in progress. */
  start(call: Call, send: Send): InFlightCall;
  /** Waits up to `ms` for calls that were sent, aborts the rest, and lets them settle what they may have cost. */
  close(ms: number): Promise<void>;
}

export interface InFlightOptions {
  register: CallRegister;
  /** How long a call may continue without a caller, in milliseconds: as long as a tool call. */
  timeoutMs: number;
  /** Receives the calls that were still unanswered at `close`. */
  onLost(call: Call): void;
}

/** How long an aborted call may take to settle before what it needs for that is closed, in milliseconds. */
const maxSettleMs = 1000;

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
export function trackInFlightCalls({ register, timeoutMs, onLost }: InFlightOptions): InFlightCalls {
  const tracked = new Set<TrackedCall>();
  let emptied = () => {};

  const run = async (entry: TrackedCall, send: Send): Promise<Answer> => {
    const { call, abort, transit } = entry;
    const { tenantId, fingerprint } = call;
    tracked.add(entry);
    const timer = setTimeout(() => abort.abort(timeIsUp()), timeoutMs).unref();
    try {
      if (!(await register.begin(tenantId, fingerprint))) throw tooMany();
      return await send({ ...call, signal: abort.signal, transit }).finally(() => register.end(tenantId, fingerprint));
    } finally {
      clearTimeout(timer);
      tracked.delete(entry);
      if (tracked.size === 0) emptied();
    }
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
      const answer = run(entry, send);
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
      const drainedWithin = async (limit: number) => {
        let timer: NodeJS.Timeout | undefined;
        const isLate = new Promise<void>((resolve) => {
          timer = setTimeout(resolve, limit);
        });
        await Promise.race([drained, isLate]).finally(() => clearTimeout(timer));
      };
      if (ms > 0) await drainedWithin(ms);
      for (const { abort, call, transit } of tracked) {
        if (transit.sent) onLost(call);
        abort.abort();
      }
      await drainedWithin(maxSettleMs);
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
