/** Items of one part. */
export const PART = 500;
/** Characters or bytes after which a part ends, however few items are in it. */
export const PART_SIZE = 4_000_000;

/** Items in order, in parts that are neither long nor large. */
export function* partsOf<Item>(items: Iterable<Item>, sizeOf: (item: Item) => number): Generator<Item[]> {
  let part: Item[] = [];
  let size = 0;
  for (const item of items) {
    part.push(item);
    size += sizeOf(item);
    if (part.length < PART && size < PART_SIZE) continue;
    yield part;
    part = [];
    size = 0;
  }
  if (part.length > 0) yield part;
}
