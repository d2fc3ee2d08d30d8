import { setImmediate as nextTurn } from 'node:timers/promises';
import { follow } from '../api/abort.ts';
import { AdLibraryError, invalidRequest } from '../api/errors.ts';
import type { OnCall } from '../log/log.ts';
import type { ToolCall, ToolResult } from '../mcp/call-tool.ts';
import type { FoundResource, ResourceContents, ResourceRead } from '../mcp/resources.ts';
import type { Catalog } from '../mcp/served.ts';

export interface WorkLimits {
  /** Tool calls and reads of resources at once, for all keys together and for one. */
  atOnce: number;
  perKey: number;
  /** How many may be in the queue, for all keys together and for one. */
  waiting: number;
  waitingPerKey: number;
}

interface LimitOptions {
  limits: WorkLimits;
  answers: AnswerMemory<unknown>;
  /** Reserved for the result of a tool call. */
  resultBytes: number;
  /** A clock that only goes on. */
  now: () => number;
  /** Receives the calls that are refused here; the catalogue reports the others. */
  onCall: OnCall;
}

/** A tool call or the read of a resource. */
interface Work<Result> {
  tenantId: string;
  signal: AbortSignal;
  answer: unknown;
  /** The memory that the answer of the work takes, which is known when the key has its turn. */
  bytes(): number | Promise<number>;
  run(waitedMs: number): Promise<Result>;
  refuse(error: AdLibraryError): Promise<Result>;
}

/** A catalogue within limits. */
interface Limits {
  catalog: Catalog;
  counts(): { running: number; waiting: number };
  /** Resolves when nothing is running or waiting. */
  idle(): Promise<void>;
}

/**
 * Queues work past a limit, and begins it once there is room for its answer. If the queue is full too, it is refused
 * with the time to try again.
 */
export function limitWork(inner: Catalog, options: LimitOptions): Limits {
  const { limits, answers, resultBytes, now, onCall } = options;
  const all = new Places(limits.atOnce);
  const byTenant = new Map<string, Places>();
  let inside = 0;
  let emptied = () => {};
  /** How long recent work took, in milliseconds, as a moving average. */
  let usual = 1000;

  const busy = (turns: number): AdLibraryError => {
    const seconds = Math.min(60, Math.max(1, Math.ceil((usual / 1000) * turns)));
    const problem = `There should be room for this call in about ${seconds} s.`;
    return new AdLibraryError({ kind: 'busy', problem, sent: false, details: { retryAfterSeconds: seconds } });
  };

  async function limited<Result>(work: Work<Result>): Promise<Result> {
    const { tenantId, signal, answer } = work;
    const own = byTenant.get(tenantId) ?? new Places(limits.perKey);
    const ofKey = own.taken + own.waiting;
    if (ofKey >= limits.perKey + limits.waitingPerKey || inside >= limits.atOnce + limits.waiting) {
      return work.refuse(busy(Math.max(ofKey / limits.perKey, inside / limits.atOnce)));
    }
    inside++;
    byTenant.set(tenantId, own);
    const arrived = now();
    let wait: ReturnType<typeof waitAtMost> | undefined;
    /** Work may begin late, but not after the time it has. */
    const waiting = () => {
      wait ??= waitAtMost(inner.timeoutMs - (now() - arrived), signal);
      return wait.signal;
    };
    try {
      return await own.with(waiting, async () => {
        signal.throwIfAborted();
        // While a key waits here for its own answers to be read, it takes no place of others.
        if (!(await answers.reserve(answer, tenantId, await work.bytes(), waiting))) throw tooMuch();
        return all.with(waiting, async () => {
          wait?.end();
          signal.throwIfAborted();
          const started = now();
          const result = await work.run(started - arrived);
          usual += (now() - started - usual) / 16;
          return result;
        });
      });
    } catch (error) {
      if (error instanceof AdLibraryError) return work.refuse(error);
      if (error !== tooLate) throw error;
      return work.refuse(busy(1));
    } finally {
      wait?.end();
      if (own.taken + own.waiting === 0) byTenant.delete(tenantId);
      // Nobody waits for the answer, so none is made.
      if (signal.aborted) answers.left(answer);
      inside--;
      if (inside === 0) emptied();
    }
  }

  const callTool = (call: ToolCall): Promise<ToolResult> =>
    limited({
      tenantId: call.tenantId,
      signal: call.signal,
      answer: call.answer,
      bytes: () => resultBytes,
      run: (waitedMs) => inner.callTool(waitedMs > 0 ? { ...call, waitedMs } : call),
      refuse: (error) => {
        const tool = inner.hasTool(call.name) ? call.name : 'unknown';
        onCall({ tool, tenantId: call.tenantId, ms: 0, kind: 'busy' });
        return inner.refuse(error);
      },
    });

  const readResource = (read: ResourceRead): Promise<ResourceContents> => {
    let found: FoundResource;
    return limited({
      tenantId: read.tenantId,
      signal: read.signal,
      answer: read.answer,
      bytes: async () => {
        found = await inner.findResource(read);
        return found.memory;
      },
      run: async () => {
        // Large answers are made one after the other: in between, others have their turn.
        await nextTurn();
        return found.contents();
      },
      refuse: ({ message }) => Promise.reject(read.errors.refused(message)),
    });
  };

  return {
    catalog: { ...inner, callTool, readResource },
    counts: () => ({ running: all.taken, waiting: inside - all.taken }),
    idle: () =>
      new Promise((resolve) => {
        emptied = resolve;
        if (inside === 0) resolve();
      }),
  };
}

/** A signal that aborts with that of a caller, or when what it waits for would begin too late. */
function waitAtMost(ms: number, signal: AbortSignal) {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(tooLate), ms);
  const leave = follow(controller, [signal]);
  return {
    signal: controller.signal,
    end: () => {
      clearTimeout(timer);
      leave();
    },
  };
}

/**
 * Lets a number of jobs run at once. The others wait, and the first to come is the first to begin. A job that has begun
 * is not referenced here, because its answer may be large.
 */
export class Places {
  taken = 0;
  readonly #atOnce: number;
  readonly #waiting = new Set<() => void>();

  constructor(atOnce: number) {
    this.#atOnce = atOnce;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** @param waiting asked only where there is no place yet: rejects with the signal's reason if that aborts before */
  async with<Result>(waiting: (() => AbortSignal) | undefined, work: () => Promise<Result>): Promise<Result> {
    if (this.taken < this.#atOnce) this.taken++;
    else await this.#wait(waiting?.());
    try {
      return await work();
    } finally {
      const [next] = this.#waiting;
      if (next) next();
      else this.taken--;
    }
  }

  /** A job that has waited takes over the place of another job. */
  #wait(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => {
        this.#waiting.delete(begin);
        signal?.removeEventListener('abort', leave);
        settle();
      };
      const begin = () => end(resolve);
      const leave = () => end(() => reject(signal?.reason));
      if (signal?.aborted) return leave();
      this.#waiting.add(begin);
      signal?.addEventListener('abort', leave);
    });
  }
}

/** Why work that waited too long left the queue. */
const tooLate = new Error('The call waited for all its time.');

const tooMuch = () => invalidRequest('The answer would be too large. Ask for less in one call.');

interface AnswerBounds<Answer> {
  /** Bytes of all answers that are being made or are not read yet. */
  maxBytes: number;
  /** The same for one tenant. */
  maxPerTenant: number;
  /** Ends an answer that was made and that nobody reads. `left` is called when the answer's memory is free. */
  end?(answer: Answer): void;
  /** Whether nobody waits for the answer any more. */
  hasEnded?(answer: Answer): boolean;
}

interface Held {
  tenantId: string;
  bytes: number;
  state: 'being made' | 'made' | 'ending';
}

/**
 * The memory that answers take, from before they are made until they have left the process. The bytes of an answer are
 * reserved before it is made. To make room, the answer that has been unread longest is ended.
 */
export class AnswerMemory<Answer> {
  readonly #bounds: AnswerBounds<Answer>;
  /** Answers, those that were made first come first. */
  readonly #held = new Map<Answer, Held>();
  readonly #ofTenant = new Map<string, number>();
  #total = 0;
  /** Parts of the total: what was made and is not read yet; what was ended and has not left the process. */
  #unread = 0;
  #ending = 0;
  /** Answers that wait for room, in the order in which they came. */
  readonly #waiting = new Set<() => void>();

  constructor(bounds: AnswerBounds<Answer>) {
    this.#bounds = bounds;
  }

  /**
   * Waits for room for so many bytes of an answer, and takes it. Resolves to false if the answer is larger than all the
   * room.
   * @param waiting asked only where there is no room yet: rejects with the signal's reason if that aborts before
   */
  async reserve(answer: Answer, tenantId: string, bytes: number, waiting?: () => AbortSignal): Promise<boolean> {
    if (bytes > this.#bounds.maxPerTenant) return false;
    while (!this.#makeRoom(tenantId, bytes)) await this.#change(waiting?.());
    if (!this.#bounds.hasEnded?.(answer)) this.#hold(answer, { tenantId, bytes, state: 'being made' });
    return true;
  }

  /** The answer was made, and so many bytes of it have not left the process. */
  made(answer: Answer, bytes: number): void {
    const tenantId = this.#held.get(answer)?.tenantId ?? '';
    this.left(answer);
    if (bytes === 0) return;
    this.#hold(answer, { tenantId, bytes, state: 'made' });
    this.#endUnread(Math.min(this.#total - this.#bounds.maxBytes, this.#unread));
  }

  /** Nothing of the answer is in memory any more. */
  left(answer: Answer): void {
    const held = this.#held.get(answer);
    if (held === undefined) return;
    this.#held.delete(answer);
    this.#add(held, -held.bytes);
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const look of waiting) look();
  }

  #hold(answer: Answer, held: Held): void {
    const before = this.#held.get(answer);
    if (before) this.#add(before, -before.bytes);
    this.#held.set(answer, held);
    this.#add(held, held.bytes);
  }

  #add({ tenantId, state }: Held, bytes: number): void {
    this.#total += bytes;
    if (state === 'made') this.#unread += bytes;
    if (state === 'ending') this.#ending += bytes;
    const ofTenant = (this.#ofTenant.get(tenantId) ?? 0) + bytes;
    if (ofTenant > 0) this.#ofTenant.set(tenantId, ofTenant);
    else this.#ofTenant.delete(tenantId);
  }

  #makeRoom(tenantId: string, bytes: number): boolean {
    const { maxBytes, maxPerTenant } = this.#bounds;
    if ((this.#ofTenant.get(tenantId) ?? 0) + bytes > maxPerTenant) return false;
    this.#endUnread(this.#total + bytes - maxBytes);
    return this.#total + bytes <= maxBytes;
  }

  /**
   * Ends enough unread answers to free so many bytes, which are free when these answers have left; ends none if all
   * together hold fewer.
   */
  #endUnread(bytes: number): void {
    let missing = bytes - this.#ending;
    if (missing > this.#unread) return;
    for (const [answer, held] of this.#held) {
      if (missing <= 0) return;
      if (held.state !== 'made') continue;
      missing -= held.bytes;
      this.#hold(answer, { ...held, state: 'ending' });
      this.#bounds.end?.(answer);
    }
  }

  #change(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.delete(look);
        reject(signal?.reason);
      };
      const look = () => {
        signal?.removeEventListener('abort', leave);
        resolve();
      };
      if (signal?.aborted) return leave();
      this.#waiting.add(look);
      signal?.addEventListener('abort', leave, { once: true });
    });
  }
}
