import { setImmediate as nextEventLoopTurn } from 'node:timers/promises';
import { raceAbort, withDeadline } from '../api/abort.ts';
import { AdLibraryError } from '../api/errors.ts';
import type { OnCall } from '../logging/log.ts';
import type { ToolCall, ToolResult } from '../mcp/call-tool.ts';
import type { Catalog } from '../mcp/catalog.ts';
import type { ResourceContents, ResourceRequest } from '../mcp/resources.ts';
import { Semaphore } from '../workers/semaphore.ts';

/** Limits for concurrent and waiting tool calls and resource reads. */
export interface WorkLimits {
  /** The maximum number of concurrent tool calls and resource reads, in total. */
  maxRunning: number;
  /** The maximum number of concurrent tool calls and resource reads per API key. */
  maxRunningPerKey: number;
  /** The maximum number of tool calls and resource reads that may wait for a slot, in total. */
  maxWaiting: number;
}

interface LimitOptions {
  limits: WorkLimits;
  /** Returns the current time in milliseconds, from a clock that is never set back. It is used to measure durations. */
  now: () => number;
  /**
   * Called for each tool call that is rejected because the queue is full. The tool catalog itself reports all other
   * calls.
   */
  onCall: OnCall;
}

/**
 * The maximum number of large files that are read or sent concurrently. Converting one file to JSON takes up to 100 MB
 * of memory. Up to 32 MB of JSON then stay in memory until they have been sent.
 */
const maxConcurrentFiles = 4;

/**
 * Wraps a catalog (the tools and resources) so that only a limited number of tool calls and resource reads run at the
 * same time. The others wait in a queue.
 *
 * A call keeps its slot until its response has been sent. The slots therefore also limit the number of unread responses
 * in memory, per API key and in total.
 */
export function limitWork(catalog: Catalog, { limits, now, onCall }: LimitOptions) {
  const { maxRunning, maxRunningPerKey, maxWaiting } = limits;
  const callSlots = new Semaphore({ maxRunning, maxRunningPerKey, maxWaiting, workName: 'calls', now });
  const fileSlots = new Semaphore({ maxRunning: maxConcurrentFiles, maxRunningPerKey: 1, workName: 'files', now });
  const pendingWork = new Set<Promise<unknown>>();

  /**
   * Waits for a free slot, then calls `run`.
   * @param run receives the waiting time in milliseconds, which is subtracted from the call's own time limit
   * @throws AdLibraryError `busy` if the queue is full, or if no slot becomes free within the timeout
   */
  async function runInSlot<Result>(
    slots: Semaphore,
    { tenantId, signal, responseSent = Promise.resolve() }: ToolCall | ResourceRequest,
    run: (waitedMs: number) => Promise<Result>,
  ): Promise<Result> {
    const arrivedAt = now();
    const deadline = { signals: [signal], timeoutMs: catalog.timeoutMs };
    const releaseSlot = await withDeadline(deadline, (deadlineSignal) => slots.acquire(tenantId, deadlineSignal));
    try {
      return await run(now() - arrivedAt);
    } finally {
      void raceAbort(responseSent, signal).then(releaseSlot, releaseSlot);
    }
  }

  /** Remembers a promise until it resolves or rejects, so that a shutdown can wait for it. */
  const trackWork = <Result>(work: Promise<Result>): Promise<Result> => {
    const stopTracking = () => void pendingWork.delete(work);
    pendingWork.add(work);
    work.then(stopTracking, stopTracking);
    return work;
  };

  const callTool = async (call: ToolCall): Promise<ToolResult> => {
    const run = (waitedMs: number) => catalog.callTool(waitedMs > 0 ? { ...call, waitedMs } : call);
    return runInSlot(callSlots, call, run).catch((error) => {
      if (!(error instanceof AdLibraryError)) throw error;
      // Replace an unknown tool name. The caller chooses the name, so an unknown one must not become a metric label or
      // appear in the log.
      const tool = catalog.hasTool(call.name) ? call.name : 'unknown';
      onCall({ tool, tenantId: call.tenantId, ms: 0, kind: 'busy' });
      return catalog.buildRejectedResult(error);
    });
  };

  const readResource = async (request: ResourceRequest): Promise<ResourceContents> => {
    const run = async () => {
      const { isLarge, readContents } = await catalog.findResource(request);
      if (!isLarge) return readContents();
      return runInSlot(fileSlots, request, async () => {
        // Converting a large file to JSON blocks the event loop, so let other callers run first.
        await nextEventLoopTurn();
        return readContents();
      });
    };
    return runInSlot(callSlots, request, run).catch((error) => {
      throw error instanceof AdLibraryError ? request.errors.refused(error.message) : error;
    });
  };

  return {
    /** The catalog with limited tool calls and resource reads. Its other methods are unchanged. */
    catalog: {
      ...catalog,
      callTool: (call: ToolCall) => trackWork(callTool(call)),
      readResource: (request: ResourceRequest) => trackWork(readResource(request)),
    },
    /** Returns how many tool calls and resource reads are running and waiting. */
    countCalls: () => ({ running: callSlots.runningCount, waiting: callSlots.waitingCount }),
    /** Resolves when no tool call or resource read is running or waiting. */
    waitUntilIdle: async (): Promise<void> => {
      while (pendingWork.size > 0) await Promise.allSettled(pendingWork);
    },
  };
}
