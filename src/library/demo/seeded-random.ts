/** Repeatable random numbers: the same seed gives the same sequence. */
export type SeededRandom = {
  /** From 0 up to, but not including, 1. */
  next(): number;
  /** A whole number from `low` to `high`, inclusive. */
  between(low: number, high: number): number;
  /** An item of the list; `lean` above 1 favours its beginning. */
  pick<Item>(list: readonly Item[], lean?: number): Item;
  some<Item>(list: readonly Item[], count: number): Item[];
  chance(probability: number): boolean;
  bytes(count: number): Uint8Array;
  uuid(): string;
};

/** Mulberry32: good enough for fictional ads. Never use it for secrets. */
export function seededRandom(seed: number): SeededRandom {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const between = (low: number, high: number) => low + Math.floor(next() * (high - low + 1));
  const bytes = (count: number) => Uint8Array.from({ length: count }, () => between(0, 255));
  return {
    next,
    between,
    bytes,
    pick(list, lean = 1) {
      const choice = list[Math.floor(next() ** lean * list.length)];
      if (choice === undefined) throw new Error('There is nothing to pick from.');
      return choice;
    },
    some(list, count) {
      const left = [...list];
      return Array.from({ length: Math.min(count, left.length) }, () =>
        left.splice(between(0, left.length - 1), 1),
      ).flat();
    },
    chance: (probability) => next() < probability,
    uuid() {
      const hex = Buffer.from(bytes(16)).toString('hex');
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
    },
  };
}
