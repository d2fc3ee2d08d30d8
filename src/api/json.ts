/** Returns the JSON text of a value with sorted object keys, so that equal values produce equal texts. */
export const toCanonicalJson = (value: unknown): string => JSON.stringify(value, sortKeys);

/** A replacer for `JSON.stringify` that sorts the keys of each object. */
function sortKeys(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Parses a JSON text. Returns undefined if the text is not valid JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the index after the closing quote of a JSON string. `start` is the index of the opening quote. */
export function findStringEnd(json: string, start: number): number {
  for (let index = start + 1; index < json.length; index++) {
    if (json[index] === '\\') index++;
    else if (json[index] === '"') return index + 1;
  }
  return json.length;
}

/**
 * Returns true if objects and lists are nested more than `maxLevels` deep. Visits one level at a time, because recursion
 * would overflow the stack on deeply nested values.
 */
export function isDeeperThan(maxLevels: number, value: unknown): boolean {
  let currentLevel: object[] = [{ value }];
  for (let depth = 0; currentLevel.length > 0 && depth <= maxLevels; depth++)
    currentLevel = currentLevel.flatMap((parent) =>
      Object.values(parent).filter((child) => typeof child === 'object' && child),
    );
  return currentLevel.length > 0;
}
