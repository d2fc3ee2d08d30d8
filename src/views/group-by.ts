/**
 * Groups items by key, in the order in which the keys first occur. `Map.groupBy` does the same, but Node 20 does not
 * support it. Browser code imports this file too, so it must not import anything.
 */
export function groupBy<Item, Key>(items: Iterable<Item>, getKey: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = getKey(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}
