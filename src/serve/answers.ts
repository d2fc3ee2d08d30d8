export interface AnswerBounds<Answer> {
  /** Bytes of all answers that are being made or are not read yet. */
  maxBytes: number;
  /** The same for one tenant. */
  maxPerTenant: number;
  /** Ends an answer that was made and that nobody reads. */
  end?(answer: Answer): void;
  /** Whether nobody waits for the answer any more. */
  hasEnded?(answer: Answer): boolean;
}

interface Held {
  tenantId: string;
  bytes: number;
  isMade: boolean;
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
  /** Of it, what was made and is not read yet. */
  #unread = 0;
  /** Those that wait for room, in the order in which they came. */
  readonly #waiting = new Set<() => void>();

  constructor(bounds: AnswerBounds<Answer>) {
    this.#bounds = bounds;
  }

  /** Whether an answer of so many bytes can be made at all. */
  canHold(answer: Answer, bytes: number): boolean {
    return (this.#held.get(answer)?.bytes ?? 0) + bytes <= this.#bounds.maxPerTenant;
  }

  /** Whether it can be made now, or once some that nobody reads are ended. */
  hasRoom(answer: Answer, tenantId: string, bytes: number): boolean {
    const { maxBytes, maxPerTenant } = this.#bounds;
    const ofTenant = this.#ofTenant.get(tenantId) ?? 0;
    if (ofTenant + bytes > maxPerTenant && ofTenant > (this.#held.get(answer)?.bytes ?? 0)) return false;
    if (this.#total - this.#unread + bytes > maxBytes) return false;
    this.#endUnread(maxBytes - bytes);
    return true;
  }

  /** Resolves once there is room for so many more bytes of an answer, and takes it. */
  async reserve(answer: Answer, tenantId: string, bytes: number, signal?: AbortSignal): Promise<void> {
    while (!this.hasRoom(answer, tenantId, bytes)) await this.#room(signal);
    if (this.#bounds.hasEnded?.(answer)) return;
    this.#hold(answer, { tenantId, bytes: (this.#held.get(answer)?.bytes ?? 0) + bytes, isMade: false });
  }

  /** The answer was made, and so many bytes of it have not left the process. */
  made(answer: Answer, bytes: number): void {
    const tenantId = this.#held.get(answer)?.tenantId ?? '';
    this.left(answer);
    if (bytes === 0) return;
    this.#hold(answer, { tenantId, bytes, isMade: true });
    this.#endUnread(this.#bounds.maxBytes);
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
    this.#add(held, held.bytes - (this.#held.get(answer)?.bytes ?? 0));
    this.#held.set(answer, held);
  }

  #add({ tenantId, isMade }: Held, bytes: number): void {
    this.#total += bytes;
    if (isMade) this.#unread += bytes;
    const ofTenant = (this.#ofTenant.get(tenantId) ?? 0) + bytes;
    if (ofTenant > 0) this.#ofTenant.set(tenantId, ofTenant);
    else this.#ofTenant.delete(tenantId);
  }

  #endUnread(maxBytes: number): void {
    for (const [answer, { isMade }] of this.#held) {
      if (this.#total <= maxBytes) return;
      if (!isMade) continue;
      this.left(answer);
      this.#bounds.end?.(answer);
    }
  }

  #room(signal?: AbortSignal): Promise<void> {
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
