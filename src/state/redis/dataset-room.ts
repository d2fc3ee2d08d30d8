import type { Holdings } from './holdings.ts';

export interface DatasetRoomOptions {
  holdings: Holdings;
  /** Of Redis, for all datasets together. */
  maxBytes: number;
  /** Merges a dataset, once it is not being merged any more; returns how much all hold then. */
  merge(name: string, maxBytes: number): Promise<number | undefined>;
  onError(error: unknown): void;
}

/** So much is freed beyond what is necessary. */
const SLACK = 0.05;

/** Makes room for all datasets, in the background: whoever holds most gives up what came longest ago. */
export class DatasetRoom {
  readonly #options: DatasetRoomOptions;
  #making: Promise<void> | undefined;

  constructor(options: DatasetRoomOptions) {
    this.#options = options;
  }

  /** @param total what all datasets hold */
  make(total = 0): void {
    const { maxBytes, onError } = this.#options;
    if (total <= maxBytes) return;
    this.#making ??= this.#make(total)
      .catch(onError)
      .finally(() => {
        this.#making = undefined;
      });
  }

  /** Resolves when no room is being made. */
  async made(): Promise<void> {
    await this.#making;
  }

  async #make(sum: number): Promise<void> {
    const { holdings, maxBytes, merge } = this.#options;
    let total = sum;
    const wanted = (1 - SLACK) * maxBytes;
    const largest = await holdings.inDescendingOrder();
    const others = largest.reduce((rest, { bytes }) => rest - bytes, total);
    const level = fairLevel(
      largest.map(({ bytes }) => bytes),
      wanted - others,
    );
    for (const { name, bytes } of largest) {
      if (total <= wanted || bytes <= level) return;
      total = (await merge(name, level)) ?? total;
    }
  }
}

/** The maximum for each tenant with which all together hold no more than `wanted`. */
export function fairLevel(descending: readonly number[], wanted: number): number {
  let rest = descending.reduce((sum, size) => sum + size, 0);
  for (const [index, size] of descending.entries()) {
    rest -= size;
    const level = (wanted - rest) / (index + 1);
    if (level >= (descending[index + 1] ?? 0)) return level;
  }
  return Infinity;
}
