/**
 * Returns the options of an `LRUCache` that stores at most `maxEntries` entries. Unlike the option `max`, these options
 * reserve no memory in advance. Reserving memory for 10,000 entries would take 2 ms of the first tool call.
 */
export const limitEntries = (maxEntries: number) => ({ maxSize: maxEntries, sizeCalculation: () => 1 });
