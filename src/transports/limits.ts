import { setImmediate as nextTurn } from 'node:timers/promises';
import { raceAbort, withDeadline } from '../api/abort.ts';
import { AdLibraryError } from '../api/errors.ts';
import type { OnCall } from '../logging/log.ts';
import type { ToolCall, ToolResult } from '../mcp/call-tool.ts';
import type { ResourceContents, ResourceRead } from '../mcp/resources.ts';
import type { Catalog } from '../mcp/served.ts';
import { Semaphore } from '../workers/semaphore.ts';

export interface WorkLimits {
  /** Tool calls and reads of resources at once, for all keys together and for one. */
  maxRunning: number;
  perKey: number;
  /** How many may wait, for all keys together. */
  waiting: number;
}

interface LimitOptions {
  limits: WorkLimits;
  /** A monotonic clock. */
  now: () => number;
  /** Receives the calls that are refused here; the catalogue reports the others. */
  onCall: OnCall;
}

/** Large files that are being read, or sent. Each takes up to 100 MB while it becomes JSON, and up to 32 MB afterwards. */
const filesAtOnce = 4;

/**
 * Queues work past a limit. A turn lasts until the answer has left the process: so what nobody reads is bounded by the
 * turns, for each key and for all.
 */
export function limitWork(inner: Catalog, { limits, now, onCall }: LimitOptions) {
  const { maxRunning, perKey, waiting: maxWaiting } = limits;
  const calls = new Semaphore({ maxRunning, perKey, maxWaiting, name: 'calls', now });
  const files = new Semaphore({ maxRunning: filesAtOnce, perKey: 1, name: 'files', now });
  const unfinished = new Set<Promise<unknown>>();

  /** Work may begin late, but not after the time it has. */
  async function inTurn<Result>(
    turns: Semaphore,
    { tenantId, signal, sent = Promise.resolve() }: ToolCall | ResourceRead,
    work: (waitedMs: number) => Promise<Result>,
  ): Promise<Result> {
    const arrived = now();
    const signals = [signal];
    const end = await withDeadline({ signals, ms: inner.timeoutMs }, (waiting) => turns.acquire(tenantId, waiting));
    try {
      return await work(now() - arrived);
    } finally {
      void raceAbort(sent, signal).then(end, end);
    }
  }

  const counted = <Result>(work: Promise<Result>): Promise<Result> => {
    const end = () => void unfinished.delete(work);
    unfinished.add(work);
    work.then(end, end);
    return work;
  };

  const callTool = async (call: ToolCall): Promise<ToolResult> => {
    const run = (waitedMs: number) => inner.callTool(waitedMs > 0 ? { ...call, waitedMs } : call);
    return inTurn(calls, call, run).catch((error) => {
      if (!(error instanceof AdLibraryError)) throw error;
      const tool = inner.hasTool(call.name) ? call.name : 'unknown';
      onCall({ tool, tenantId: call.tenantId, ms: 0, kind: 'busy' });
      return inner.refuse(error);
    });
  };

  const readResource = async (read: ResourceRead): Promise<ResourceContents> => {
    const run = async () => {
      const { isLarge, contents } = await inner.findResource(read);
      if (!isLarge) return contents();
      return inTurn(files, read, async () => {
        // Large answers are made one after the other: in between, others have their turn.
        await nextTurn();
        return contents();
      });
    };
    return inTurn(calls, read, run).catch((error) => {
      throw error instanceof AdLibraryError ? read.errors.refused(error.message) : error;
    });
  };

  return {
    catalog: {
      ...inner,
      callTool: (call: ToolCall) => counted(callTool(call)),
      readResource: (read: ResourceRead) => counted(readResource(read)),
    },
    counts: () => ({ running: calls.running, waiting: calls.waiting }),
    /** Resolves when nothing is running or waiting. */
    idle: async (): Promise<void> => {
      while (unfinished.size > 0) await Promise.allSettled(unfinished);
    },
  };
}
