/** Returns the JSON text of a value with sorted object keys, so that equal values produce equal texts. */
export const toCanonicalJson = (value: unknown): string => JSON.stringify(value, sortKeys);

/** Sorts the keys of an object. `JSON.stringify` calls this replacer for every value. */
function sortKeys(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([leftKey], [rightKey]) => (leftKey < rightKey ? -1 : 1)));
}

/** Parses a JSON text. Returns undefined if the text is not valid JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the index after the closing quote of the JSON string whose opening quote is at `quoteIndex`. */
export function findStringEnd(json: string, quoteIndex: number): number {
  for (let index = quoteIndex + 1; index < json.length; index++) {
    if (json[index] === '\\') index++;
    else if (json[index] === '"') return index + 1;
  }
  return json.length;
}

/**
 * Returns true if objects and lists are nested more than `maxLevels` deep. Visits one level at a time, because
 * recursion would exhaust the stack on deeply nested values.
 */
export function isDeeperThan(maxLevels: number, value: unknown): boolean {
  let currentLevel: object[] = [{ value }];
  for (let depth = 0; currentLevel.length > 0 && depth <= maxLevels; depth++)
    currentLevel = currentLevel.flatMap((parent) =>
      Object.values(parent).filter((child) => typeof child === 'object' && child),
    );
  return currentLevel.length > 0;
}
