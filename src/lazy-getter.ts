/** A function that returns a value. The first call creates the value, and later calls return the same value. */
export interface LazyGetter<Value> {
  (): Value;
  /** Returns the value if it has already been created. Returns undefined otherwise. */
  getIfCreated(): Value | undefined;
}

/**
 * Returns a function that creates a value at its first call and returns the same value at later calls. If `createValue`
 * throws or its promise rejects, the next call tries again. Use this function for a value that is slow to create or
 * needs much memory, e.g. a Zod schema with many fields, if many processes never need the value.
 */
export function createLazyGetter<Value>(createValue: () => Value): LazyGetter<Value> {
  let created: { value: Value } | undefined;
  const getValue = (): Value => {
    if (created) return created.value;
    const value = createValue();
    created = { value };
    if (value instanceof Promise)
      value.catch(() => {
        created = undefined;
      });
    return value;
  };
  return Object.assign(getValue, { getIfCreated: () => created?.value });
}
