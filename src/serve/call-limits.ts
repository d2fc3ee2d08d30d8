import PQueue from 'p-queue';
import { AdLibraryError } from '../api/errors.ts';
import type { OnCall } from '../log/call-event.ts';
import type { ToolCall, ToolResult } from '../mcp/call-tool.ts';
import type { Catalog } from '../mcp/catalog.ts';
import { follow } from '../mcp/follow.ts';

export interface CallLimits {
  /** Calls under way at once, for all keys together and for one. */
  atOnce: number;
  perKey: number;
  /** Calls that may wait for their turn, for all keys together and for one. */
  waiting: number;
  waitingPerKey: number;
}

export interface LimitOptions {
  limits: CallLimits;
  now: () => number;
  /** Takes the calls that find no place; the others are the catalogue's to tell. */
  onCall: OnCall;
}

export interface LimitedCalls {
  catalog: Catalog;
  counts(): { running: number; waiting: number };
  /** Resolves when no call is under way or waits. */
  idle(): Promise<void>;
}

/** Lets calls wait for their turn, boundedly many; whoever finds no place learns when to come back. */
export function limitCalls(catalog: Catalog, { limits, now, onCall }: LimitOptions): LimitedCalls {
  const all = new PQueue({ concurrency: limits.atOnce });
  const byTenant = new Map<string, PQueue>();
  const names = new Set(catalog.tools.map(({ name }) => name));
  let inside = 0;
  let emptied = () => {};
  // How long a call takes of late, in milliseconds.
  let usual = 1000;

  const queueOf = (tenantId: string) => {
    const queue = new PQueue({ concurrency: limits.perKey });
    byTenant.set(tenantId, queue);
    return queue.on('idle', () => byTenant.delete(tenantId));
  };

  const timed = async (call: ToolCall) => {
    const started = now();
    const result = await catalog.callTool(call);
    usual += (now() - started - usual) / 16;
    return result;
  };

  const refuse = ({ name, tenantId }: ToolCall, turns: number): ToolResult => {
    onCall({ tool: names.has(name) ? name : 'unknown', tenantId, ms: 0, kind: 'busy' });
    return catalog.refuse(busy((usual / 1000) * turns));
  };

  const callTool = async (call: ToolCall): Promise<ToolResult> => {
    const own = byTenant.get(call.tenantId);
    const ofKey = own ? own.size + own.pending : 0;
    if (ofKey >= limits.perKey + limits.waitingPerKey || inside >= limits.atOnce + limits.waiting) {
      return refuse(call, Math.max(ofKey / limits.perKey, inside / limits.atOnce));
    }
    const waits = ofKey >= limits.perKey || inside >= limits.atOnce;
    const wait = waits ? whileWaiting(call.signal) : undefined;
    const options = wait ? { signal: wait.signal } : {};
    const begin = () => {
      wait?.end();
      return timed(call);
    };
    inside++;
    try {
      return await (own ?? queueOf(call.tenantId)).add(() => all.add(begin, options), options);
    } finally {
      wait?.end();
      inside--;
      if (inside === 0) emptied();
    }
  };

  return {
    catalog: { ...catalog, callTool },
    counts: () => ({ running: all.pending, waiting: inside - all.pending }),
    idle: () =>
      new Promise((resolve) => {
        emptied = resolve;
        if (inside === 0) resolve();
      }),
  };
}

/** The signal of a caller until their turn comes: the queue would take a call that it aborts later for ended. */
function whileWaiting(signal: AbortSignal) {
  const controller = new AbortController();
  return { signal: controller.signal, end: follow(controller, [signal]) };
}

function busy(turn: number): AdLibraryError {
  const seconds = Math.min(60, Math.max(1, Math.ceil(turn)));
  const problem = `Try again in about ${seconds} s.`;
  return new AdLibraryError({ kind: 'busy', problem, sent: false, details: { retryAfterSeconds: seconds } });
}
