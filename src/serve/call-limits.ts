import PQueue from 'p-queue';
import { follow } from '../api/abort.ts';
import { AdLibraryError } from '../api/errors.ts';
import type { Log } from '../log/log.ts';
import type { ToolCall, ToolResult } from '../mcp/call-tool.ts';
import type { Catalog } from '../mcp/catalog.ts';

export interface CallLimits {
  /** Calls under way at once, for all keys together and for one. */
  atOnce: number;
  perKey: number;
  /** Calls that may wait for their turn, for all keys together; one key may hold an eighth of the places. */
  waiting: number;
}

export interface LimitedCalls {
  catalog: Catalog;
  counts(): { running: number; waiting: number };
  /** Resolves when no call is under way or waits. */
  idle(): Promise<void>;
}

/**
 * Lets calls wait for their turn, boundedly many; whoever finds no place is told when to come back. A caller who leaves
 * stops their call, but for a write: once begun it is left to finish, because nobody could tell what became of it.
 */
export function limitCalls(
  catalog: Catalog,
  options: { limits: CallLimits; now: () => number; log: Log },
): LimitedCalls {
  const { limits, now, log } = options;
  const all = new PQueue({ concurrency: limits.atOnce });
  const byOwner = new Map<string, PQueue>();
  const mostOfOneKey = limits.perKey + Math.ceil(limits.waiting / 8);
  const known = new Map(catalog.tools.map(({ name, annotations }) => [name, annotations]));
  let inside = 0;
  // How long a call takes of late, in milliseconds.
  let usual = 1000;

  const queueOf = (owner: string) => {
    const queue = new PQueue({ concurrency: limits.perKey });
    byOwner.set(owner, queue);
    return queue.on('idle', () => byOwner.delete(owner));
  };

  const timed = async (call: ToolCall) => {
    const started = now();
    const writes = known.get(call.name)?.readOnlyHint === false;
    const result = await catalog.callTool(writes ? { ...call, signal: new AbortController().signal } : call);
    usual += (now() - started - usual) / 16;
    return result;
  };

  const callTool = async (call: ToolCall): Promise<ToolResult> => {
    const { tenantId, name, signal } = call;
    const own = byOwner.get(tenantId);
    const ofKey = own ? own.size + own.pending : 0;
    if (ofKey >= mostOfOneKey || inside >= limits.atOnce + limits.waiting) {
      log.info('call', { tool: known.has(name) ? name : 'unknown', ms: 0, kind: 'busy' });
      return catalog.refuse(busy((usual / 1000) * Math.max(ofKey / limits.perKey, inside / limits.atOnce)));
    }
    const line = ofKey >= limits.perKey || inside >= limits.atOnce ? inLine(signal) : undefined;
    const options = line ? { signal: line.signal } : {};
    const begin = () => {
      line?.end();
      return timed(call);
    };
    inside++;
    try {
      return await (own ?? queueOf(tenantId)).add(() => all.add(begin, options), options);
    } finally {
      inside--;
      line?.end();
    }
  };

  return {
    catalog: { ...catalog, callTool },
    counts: () => ({ running: all.pending, waiting: inside - all.pending }),
    idle: () => all.onIdle(),
  };
}

/** The signal of a caller for as long as they wait: the queue takes a call whose caller left for one that has ended. */
function inLine(signal: AbortSignal) {
  const line = new AbortController();
  return { signal: line.signal, end: follow(line, [signal]) };
}

function busy(turn: number): AdLibraryError {
  const seconds = Math.min(60, Math.max(1, Math.ceil(turn)));
  const problem = `It has a place for this call in about ${seconds} s.`;
  return new AdLibraryError({ kind: 'busy', problem, sent: false, details: { retryAfterSeconds: seconds } });
}
