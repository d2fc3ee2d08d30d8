import PQueue from 'p-queue';
import { follow } from '../api/abort.ts';
import { AdLibraryError } from '../api/errors.ts';
import type { OnCall } from '../log/log.ts';
import type { ToolCall, ToolResult } from '../mcp/call-tool.ts';
import type { Catalog } from '../mcp/catalog.ts';

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
  /** Takes the calls that find no place; the catalogue reports the others. */
  onCall: OnCall;
}

/** Lets calls wait for their turn, boundedly many; whoever finds no place learns when to come back. */
export class LimitedCalls {
  /** The same catalogue, within the limits. */
  readonly catalog: Catalog;
  private readonly inner: Catalog;
  private readonly options: LimitOptions;
  private readonly all: PQueue;
  private readonly byTenant = new Map<string, PQueue>();
  private inside = 0;
  private emptied = () => {};
  /** How long a call takes of late, in milliseconds. */
  private usual = 1000;

  constructor(catalog: Catalog, options: LimitOptions) {
    this.inner = catalog;
    this.options = options;
    this.all = new PQueue({ concurrency: options.limits.atOnce });
    this.catalog = { ...catalog, callTool: (call) => this.callTool(call) };
  }

  counts(): { running: number; waiting: number } {
    return { running: this.all.pending, waiting: this.inside - this.all.pending };
  }

  /** Resolves when no call is under way or waits. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.emptied = resolve;
      if (this.inside === 0) resolve();
    });
  }

  private async callTool(call: ToolCall): Promise<ToolResult> {
    const { atOnce, perKey, waiting, waitingPerKey } = this.options.limits;
    const own = this.byTenant.get(call.tenantId);
    const ofKey = own ? own.size + own.pending : 0;
    if (ofKey >= perKey + waitingPerKey || this.inside >= atOnce + waiting) {
      return this.refuse(call, Math.max(ofKey / perKey, this.inside / atOnce));
    }
    const wait = ofKey >= perKey || this.inside >= atOnce ? whileWaiting(call.signal) : undefined;
    const options = wait ? { signal: wait.signal } : {};
    const begin = () => {
      wait?.end();
      return this.timed(call);
    };
    this.inside++;
    try {
      return await (own ?? this.queueFor(call.tenantId)).add(() => this.all.add(begin, options), options);
    } finally {
      wait?.end();
      this.inside--;
      if (this.inside === 0) this.emptied();
    }
  }

  private queueFor(tenantId: string): PQueue {
    const queue = new PQueue({ concurrency: this.options.limits.perKey });
    this.byTenant.set(tenantId, queue);
    return queue.on('idle', () => this.byTenant.delete(tenantId));
  }

  private async timed(call: ToolCall): Promise<ToolResult> {
    const { now } = this.options;
    const started = now();
    const result = await this.inner.callTool(call);
    this.usual += (now() - started - this.usual) / 16;
    return result;
  }

  private refuse({ name, tenantId }: ToolCall, turns: number): ToolResult {
    const isOurs = this.inner.tools.some((tool) => tool.name === name);
    this.options.onCall({ tool: isOurs ? name : 'unknown', tenantId, ms: 0, kind: 'busy' });
    return this.inner.refuse(busy((this.usual / 1000) * turns));
  }
}

/** The signal of a caller until their turn comes: the queue would take a call that it aborts later for ended. */
function whileWaiting(signal: AbortSignal) {
  const controller = new AbortController();
  return { signal: controller.signal, end: follow(controller, [signal]) };
}

function busy(turn: number): AdLibraryError {
  const seconds = Math.min(60, Math.max(1, Math.ceil(turn)));
  const problem = `There should be room for this call in about ${seconds} s.`;
  return new AdLibraryError({ kind: 'busy', problem, sent: false, details: { retryAfterSeconds: seconds } });
}
