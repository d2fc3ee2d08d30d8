import { abortedError, raceAbort, timeIsUp } from '../api/abort.ts';
import type { Answer, Call, CallProgress, Send } from '../api/call.ts';
import { AdLibraryError } from '../api/errors.ts';

export interface InFlightOptions {
  /** The most calls in progress of one tenant, and of all. Calls count until they end, even without a caller. */
  maxCallsEach: number;
  maxCalls: number;
  /** How long a call may continue after its callers have left, in milliseconds: as long as a tool call. */
  timeoutMs: number;
  /** Receives the calls that were still unanswered at `close`. */
  onLost(call: Call): void;
}

/** How long an aborted call may take to settle its credits, in milliseconds. After that, the ledger is closed. */
const maxSettleMs = 1000;

interface TrackedCall {
  call: Call;
  abort: AbortController;
  callers: number;
  settled: Promise<void>;
}

/** A call in progress, which any number of callers may join. */
export interface InFlightCall {
  call: Call;
  /** Resolves when the call has ended, whether it succeeded or failed. */
  settled: Promise<void>;
  /** Returns the answer to one more caller. Rejects if that caller leaves first. */
  join(signal: AbortSignal): Promise<Answer>;
  isAborted(): boolean;
}

/**
 * Continues calls that were sent until their answer arrives, even if all their callers have left: the service carries
 * them out and charges for them anyway, and a repeated call finds the answer in the cache. A call that was not sent yet
 * ends when its last caller leaves.
 */
export function trackInFlightCalls({ maxCallsEach, maxCalls, timeoutMs, onLost }: InFlightOptions) {
  const tracked = new Set<TrackedCall>();
  const countOf = (tenantId: string) => [...tracked].filter(({ call }) => call.owner.tenantId === tenantId).length;

  const run = async (entry: TrackedCall, send: Send): Promise<Answer> => {
    const { call, abort } = entry;
    tracked.add(entry);
    const timer = setTimeout(() => abort.abort(timeIsUp()), timeoutMs).unref();
    try {
      if (tracked.size > maxCalls || countOf(call.owner.tenantId) > maxCallsEach) throw tooMany();
      return await send(call);
    } finally {
      clearTimeout(timer);
      tracked.delete(entry);
    }
  };

  const waitUntilSettled = async (maxMs: number) => {
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, maxMs);
    });
    const all = Promise.all([...tracked].map(({ settled }) => settled));
    await Promise.race([all, timeout]).finally(() => clearTimeout(timer));
  };

  return {
    /** Starts a call that outlives its callers. Its answer is a `busy` error if too many calls are in progress. */
    start(started: Call, send: Send): InFlightCall {
      const abort = new AbortController();
      const progress: CallProgress = { sent: false, isWanted: () => entry.callers > 0 };
      const { request, owner, cache, creditLimit } = started;
      const call: Call = { request, owner, signal: abort.signal, cache, creditLimit, progress };
      const entry: TrackedCall = { call, abort, callers: 0, settled: Promise.resolve() };
      const answer = run(entry, send);
      entry.settled = answer.then(
        () => {},
        () => {},
      );
      return {
        call,
        settled: entry.settled,
        join: (signal) => receiveAnswer(entry, answer, signal),
        isAborted: () => abort.signal.aborted,
      };
    },
    /** Waits up to `ms` for calls that were sent, aborts the other calls, and lets them settle their credits. */
    async close(ms: number) {
      if (ms > 0) await waitUntilSettled(ms);
      for (const { abort, call } of tracked) {
        if (call.progress.sent || call.progress.mayBeDone) onLost(call);
        abort.abort();
      }
      await waitUntilSettled(maxSettleMs);
    },
  };
}

async function receiveAnswer(entry: TrackedCall, answer: Promise<Answer>, signal: AbortSignal): Promise<Answer> {
  const { abort, call } = entry;
  entry.callers++;
  try {
    return await raceAbort(answer, signal);
  } catch (error) {
    throw signal.aborted && error === signal.reason
      ? abortedError(signal, call.progress.sent || call.progress.mayBeDone === true)
      : error;
  } finally {
    entry.callers--;
    if (entry.callers === 0 && !call.progress.sent) abort.abort(signal.reason);
  }
}

const tooMany = () =>
  new AdLibraryError({
    kind: 'busy',
    problem: 'Too many cancelled calls are still waiting for the service.',
    sent: false,
    details: { retryAfterSeconds: 10 },
  });
