import PQueue from 'p-queue';
import { follow } from '../api/abort.ts';
import { AdLibraryError } from '../api/errors.ts';
import type { OnCall } from '../log/log.ts';
import type { ToolCall } from '../mcp/call-tool.ts';
import type { Catalog } from '../mcp/catalog.ts';
import type { ToolResult } from '../mcp/tool-result.ts';

export interface CallLimits {
  /** Maximum concurrent calls, for all keys together and for one. */
  atOnce: number;
  perKey: number;
  /** Maximum calls in the queue, for all keys together and for one. */
  waiting: number;
  waitingPerKey: number;
}

export interface LimitOptions {
  limits: CallLimits;
  /** A clock that only goes on. */
  now: () => number;
  /** Receives the calls that are refused here; the catalogue reports the others. */
  onCall: OnCall;
}

/** Queues calls past a limit. If the queue is full too, a call is refused with the time to try again. */
export class LimitedCalls {
  /** The same catalogue, within the limits. */
  readonly catalog: Catalog;
  private readonly inner: Catalog;
  private readonly options: LimitOptions;
  private readonly all: PQueue;
  private readonly byTenant = new Map<string, PQueue>();
  private inside = 0;
  private emptied = () => {};
  /** How long recent calls took, in milliseconds, as a moving average. */
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

  /** Resolves when no call is running or waiting. */
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
    const waits = ofKey >= perKey || this.inside >= atOnce;
    this.inside++;
    try {
      return await (waits ? this.inTurn(call) : this.enqueue(call.tenantId, () => this.timed(call)));
    } finally {
      this.inside--;
      if (this.inside === 0) this.emptied();
    }
  }

  /** The same for a call that has to wait. It may begin late, but not after the time it has. */
  private async inTurn(call: ToolCall): Promise<ToolResult> {
    const { now } = this.options;
    const arrived = now();
    const waiting = new AbortController();
    const timer = setTimeout(() => waiting.abort(tooLate), this.inner.timeoutMs);
    // The queue would take a call that is aborted later for ended, so its signal is left once the call begins.
    const leave = follow(waiting, [call.signal]);
    const end = () => {
      clearTimeout(timer);
      leave();
    };
    const begin = () => {
      end();
      return this.timed({ ...call, waitedMs: now() - arrived });
    };
    try {
      return await this.enqueue(call.tenantId, begin, waiting.signal);
    } catch (error) {
      if (waiting.signal.reason !== tooLate) throw error;
      return this.refuse(call, 1);
    } finally {
      end();
    }
  }

  private enqueue(tenantId: string, run: () => Promise<ToolResult>, signal?: AbortSignal): Promise<ToolResult> {
    const options = signal ? { signal } : {};
    const own = this.byTenant.get(tenantId) ?? this.queueFor(tenantId);
    return own.add(() => this.all.add(run, options), options);
  }

  private queueFor(tenantId: string): PQueue {
    const queue = new PQueue({ concurrency: this.options.limits.perKey });
    this.byTenant.set(tenantId, queue);
    return queue.on('idle', () => {
      if (this.byTenant.size > maxIdle) this.byTenant.delete(tenantId);
    });
  }

  private async timed(call: ToolCall): Promise<ToolResult> {
    const { now } = this.options;
    const started = now();
    const result = await this.inner.callTool(call);
    this.usual += (now() - started - this.usual) / 16;
    return result;
  }

  private refuse({ name, tenantId }: ToolCall, turns: number): Promise<ToolResult> {
    this.options.onCall({ tool: this.inner.hasTool(name) ? name : 'unknown', tenantId, ms: 0, kind: 'busy' });
    return this.inner.refuse(busy((this.usual / 1000) * turns));
  }
}

/** Queues of tenants who may call again soon. */
const maxIdle = 1024;

/** Why a call that waited too long left the queue. */
const tooLate = new Error('The call waited for all its time.');

function busy(turn: number): AdLibraryError {
  const seconds = Math.min(60, Math.max(1, Math.ceil(turn)));
  const problem = `There should be room for this call in about ${seconds} s.`;
  return new AdLibraryError({ kind: 'busy', problem, sent: false, details: { retryAfterSeconds: seconds } });
}
