import type { ItemBatch } from './dataset.ts';

/** Items added at once: less than a millisecond of work. */
const PART = 10;
/** Items that may wait. */
const MAX_WAITING = 500;

/**
 * Answers whose items are added a few at a time between other work, so that no caller waits for it. Whoever looks at
 * the items drains the queue first.
 */
export class BatchQueue {
  readonly #add: (tenantId: string, batch: ItemBatch) => void;
  #parts: [tenantId: string, batch: ItemBatch][] = [];
  #scheduled = false;

  constructor(add: (tenantId: string, batch: ItemBatch) => void) {
    this.#add = add;
  }

  push(tenantId: string, batch: ItemBatch): void {
    for (let start = 0; start < batch.items.length; start += PART)
      this.#parts.push([tenantId, { ...batch, items: batch.items.slice(start, start + PART) }]);
    if (this.#parts.length * PART > MAX_WAITING) this.drain();
    else this.#schedule();
  }

  drain(): void {
    const parts = this.#parts;
    this.#parts = [];
    for (const [tenantId, part] of parts) this.#add(tenantId, part);
  }

  #schedule(): void {
    if (this.#scheduled || this.#parts.length === 0) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      const part = this.#parts.shift();
      if (part) this.#add(...part);
      this.#schedule();
    });
  }
}
