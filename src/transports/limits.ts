import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { raceAbort, withDeadline } from '../api/abort.ts';
import { AdLibraryError } from '../api/errors.ts';
import type { OnCall } from '../logging/log.ts';
import type { ToolCall, ToolResult } from '../mcp/call-tool.ts';
import type { Catalog } from '../mcp/catalog.ts';
import type { ResourceContents, ResourceRequest } from '../mcp/resources.ts';
import { Semaphore } from '../workers/semaphore.ts';

/** The maximum numbers of tool calls and resource reads that may run or wait at the same time. */
export interface ConcurrencyLimits {
  /** The maximum number of tool calls and resource reads that run at the same time. */
  maxRunningCalls: number;
  /** The maximum number of tool calls and resource reads that run at the same time for one API key. */
  maxRunningCallsPerKey: number;
  /** The maximum number of tool calls and resource reads that may wait for a free slot. */
  maxWaitingCalls: number;
}

interface ConcurrencyLimiterOptions {
  limits: ConcurrencyLimits;
  /** Returns milliseconds from a clock that is never set back. Used to measure durations. */
  monotonicNow: () => number;
  /**
   * Called for each tool call that ends before it runs: the server rejects it because too many calls are waiting, or its
   * caller cancels it while it waits. The tool catalog itself reports all other calls.
   */
  onCall: OnCall;
}

/**
 * The maximum number of large files that the server reads or sends at the same time. The conversion of one file to JSON
 * takes up to 100 MB of memory. Up to 32 MB of JSON then stay in memory until the client has received them.
 */
const maxConcurrentLargeFiles = 4;

/**
 * Wraps a catalog, i.e. the tools and resources of the server. The wrapped catalog runs a limited number of tool calls
 * and resource reads at the same time. All other calls and reads wait in a queue.
 *
 * A call keeps its slot until its response has been sent. The slots therefore also limit the number of unread responses
 * in memory, per API key and in total.
 */
export function createConcurrencyLimiter(
  catalog: Catalog,
  { limits, monotonicNow, onCall }: ConcurrencyLimiterOptions,
) {
  const { maxRunningCalls, maxRunningCallsPerKey, maxWaitingCalls } = limits;
  const callSlots = new Semaphore({
    maxRunningCalls,
    maxRunningCallsPerKey,
    maxWaitingCalls,
    workName: 'calls',
    monotonicNow,
  });
  const fileSlots = new Semaphore({
    maxRunningCalls: maxConcurrentLargeFiles,
    maxRunningCallsPerKey: 1,
    workName: 'files',
    monotonicNow,
  });
  const pendingPromises = new Set<Promise<unknown>>();

  /**
   * Waits for a free slot, then calls `run`.
   * @param run receives the waiting time in milliseconds, which it subtracts from the time limit of the call
   * @throws AdLibraryError `busy` if the queue is full, or if no slot becomes free within the timeout
   * @throws the reason of the call's signal, if this signal has aborted
   */
  async function runInSlot<Result>(
    slots: Semaphore,
    { tenantId, signal, responseSent = Promise.resolve() }: ToolCall | ResourceRequest,
    run: (waitedMs: number) => Promise<Result>,
  ): Promise<Result> {
    const arrivedAt = monotonicNow();
    const waitOptions = { signals: [signal], timeoutMs: catalog.timeoutMs };
    signal.throwIfAborted();
    // Take a free slot directly. `withDeadline` creates a timer and an abort signal, which only a waiting call needs.
    const releaseSlot =
      slots.tryAcquire(tenantId) ??
      (await withDeadline(waitOptions, (deadlineSignal) => slots.acquire(tenantId, deadlineSignal)));
    try {
      return await run(monotonicNow() - arrivedAt);
    } finally {
      void raceAbort(responseSent, signal).then(releaseSlot, releaseSlot);
    }
  }

  /** Keeps a promise in `pendingPromises` until the promise settles. `waitUntilIdle` waits for these promises. */
  const trackUntilSettled = <Result>(promise: Promise<Result>): Promise<Result> => {
    const stopTracking = () => void pendingPromises.delete(promise);
    pendingPromises.add(promise);
    promise.then(stopTracking, stopTracking);
    return promise;
  };

  const callTool = async (call: ToolCall): Promise<ToolResult> => {
    const run = (waitedMs: number) => catalog.callTool(waitedMs > 0 ? { ...call, waitedMs } : call);
    return runInSlot(callSlots, call, run).catch((error) => {
      // Do not report an unknown tool name. The caller can send any text as the name, and that text must not become a
      // metric label or appear in the log.
      const reportedToolName = catalog.hasTool(call.name) ? call.name : 'unknown';
      const reportCall = (kind: string) => onCall({ tool: reportedToolName, tenantId: call.tenantId, ms: 0, kind });
      if (error instanceof AdLibraryError) {
        reportCall('busy');
        return catalog.buildRejectedResult(error);
      }
      if (call.signal.aborted) reportCall('cancelled');
      throw error;
    });
  };

  const readResource = async (request: ResourceRequest): Promise<ResourceContents> => {
    const run = async () => {
      const { isLarge, readContents } = await catalog.findResource(request);
      if (!isLarge) return readContents();
      return runInSlot(fileSlots, request, async () => {
        // Let other callers run first, because the conversion of a large file to JSON blocks the event loop.
        await yieldToEventLoop();
        return readContents();
      });
    };
    return runInSlot(callSlots, request, run).catch((error) => {
      throw error instanceof AdLibraryError ? request.errorFactories.refused(error.message) : error;
    });
  };

  return {
    /** The wrapped catalog, which limits tool calls and resource reads. All other methods are unchanged. */
    limitedCatalog: {
      ...catalog,
      callTool: (call: ToolCall) => trackUntilSettled(callTool(call)),
      readResource: (request: ResourceRequest) => trackUntilSettled(readResource(request)),
    },
    /** Returns the numbers of running and waiting tool calls and resource reads. */
    countCalls: () => ({ running: callSlots.runningCount, waiting: callSlots.waitingCount }),
    /** Resolves when no tool call or resource read is running or waiting. */
    waitUntilIdle: async (): Promise<void> => {
      while (pendingPromises.size > 0) await Promise.allSettled(pendingPromises);
    },
  };
}
