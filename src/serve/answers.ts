export interface AnswerBounds<Answer> {
  /** Bytes of all answers that are being made or are not read yet. */
  maxBytes: number;
  /** The same for one tenant. */
  maxPerTenant: number;
  /** Ends an answer that was made and that nobody reads; `left` is called when its memory is free. */
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
 * The memory that answers take, from before they are made until they have left the process. Whoever makes one reserves
 * its bytes first. To make room, the one that has been unread longest is ended.
 */
export class Answers<Answer> {
  readonly #bounds: AnswerBounds<Answer>;
  /** Those that were made first come first. */
  readonly #held = new Map<Answer, Held>();
  readonly #ofTenant = new Map<string, number>();
  #total = 0;
  /** Of it, what was made and is not read yet, and what was ended and has not left. */
  #unread = 0;
  #ending = 0;
  /** Those that wait for room, in the order in which they came. */
  readonly #waiting = new Set<() => void>();

  constructor(bounds: AnswerBounds<Answer>) {
    this.#bounds = bounds;
  }

  /**
   * Resolves once there is room for so many more bytes of an answer, and takes it. To false if the answer would be too
   * large for any room, or holds some already: one that waited for more would keep what it has from others.
   */
  async reserve(answer: Answer, tenantId: string, bytes: number, signal?: AbortSignal): Promise<boolean> {
    for (;;) {
      const held = this.#held.get(answer)?.bytes ?? 0;
      if (held + bytes > this.#bounds.maxPerTenant) return false;
      if (this.#makeRoom(tenantId, bytes, held)) {
        if (!this.#bounds.hasEnded?.(answer))
          this.#hold(answer, { tenantId, bytes: held + bytes, state: 'being made' });
        return true;
      }
      if (held > 0) return false;
      await this.#change(signal);
    }
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

  #makeRoom(tenantId: string, bytes: number, held: number): boolean {
    const { maxBytes, maxPerTenant } = this.#bounds;
    const ofTenant = this.#ofTenant.get(tenantId) ?? 0;
    if (ofTenant > held && ofTenant + bytes > maxPerTenant) return false;
    this.#endUnread(this.#total + bytes - maxBytes);
    return this.#total + bytes <= maxBytes;
  }

  /** Ends as many as hold so many bytes, which are free once these have left; none if that is not enough. */
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
