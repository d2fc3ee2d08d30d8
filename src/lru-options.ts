/**
 * Returns the options of an `LRUCache` that stores at most `maxEntries` entries. Unlike the `max` option, these options
 * do not allocate memory in advance. Allocating memory for 10,000 entries would delay the first tool call by 2 ms.
 */
export const createLruOptions = (maxEntries: number) => ({ maxSize: maxEntries, sizeCalculation: () => 1 });
