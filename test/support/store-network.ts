import type { ItemChange, Seen, Store } from '../../src/state/ports.ts';
import type { StoreDriver } from '../../src/state/store/guarded-store.ts';

/** From how many bytes on an item is large. */
const largeBytes = 10_000;

/** What becomes of what a replica asks of its store. */
export class StoreNetwork {
  state:
    | 'fine'
    | 'away'
    | 'answers are lost'
    | 'refused'
    | 'items are refused'
    | 'large items are refused'
    | 'large items hang' = 'fine';
  isNearlyFull = false;
  /** By how many milliseconds the clock of the store is ahead of its own. */
  ahead = 0;
  /** Receives the name of each document that was written. Whoever wrote it hears of that afterwards. */
  onWritten: (key: string) => void | Promise<void> = () => {};
  /** What the store takes of items that are put there. */
  taken: (changes: readonly ItemChange[]) => readonly ItemChange[] = (changes) => changes;
  /** How long each document is kept that it wrote. */
  readonly ttlMs: number[] = [];

  between({ hosts, open }: StoreDriver): StoreDriver {
    const pass = async <Reply>(ask: () => Promise<Reply>): Promise<Reply> => {
      if (this.state === 'away' || this.state === 'refused') throw new Error(this.state);
      const reply = await ask();
      if (this.state === 'answers are lost') throw new Error(this.state);
      return reply;
    };
    const timed = async <Reply extends Seen>(ask: () => Promise<Reply>): Promise<Reply> => {
      const reply = await pass(ask);
      return { ...reply, now: reply.now + this.ahead };
    };
    return {
      hosts,
      open: (onError): Store => {
        const store = open(onError);
        return {
          connect: () => pass(async () => store.connect?.()),
          read: (...args) => timed(() => store.read(...args)),
          swap: async (...args) => {
            const swapped = await timed(() => store.swap(...args));
            if (swapped.isDone) this.ttlMs.push(args[2].ttlMs);
            if (swapped.isDone) await this.onWritten(args[0]);
            return swapped;
          },
          items: (...args) => pass(() => store.items(...args)),
          putItems: (name, changes, limits) =>
            pass(async () => {
              const isLarge = changes.some(({ body }) => body.length > largeBytes);
              if (isLarge && this.state === 'large items hang') return new Promise(() => {});
              if (this.state === 'items are refused' || (isLarge && this.state === 'large items are refused'))
                throw new Error(this.state);
              const taken = this.taken(changes);
              return taken.length > 0 ? store.putItems(name, taken, limits) : new Set();
            }),
          itemsSince: (...args) => pass(() => store.itemsSince(...args)),
          isNearlyFull: () => this.isNearlyFull,
          refuses: () => this.state.endsWith('refused'),
          close: async () => store.close?.(),
        };
      },
    };
  }
}
