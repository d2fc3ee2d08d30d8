/** Returns the JSON text of a value, with the keys of every object sorted. Equal values have the same text. */
export const canonical = (value: unknown): string => JSON.stringify(value, sortKeys);

function sortKeys(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Returns the value of a JSON text, or undefined if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the index after the closing quote of the JSON string that begins at `start`. */
export function endOfString(json: string, start: number): number {
  for (let at = start + 1; at < json.length; at++) {
    if (json[at] === '\\') at++;
    else if (json[at] === '"') return at + 1;
  }
  return json.length;
}

/**
 * Returns whether objects and lists are nested more than `levels` deep. The function visits one level after the other
 * without recursion, because recursion would exceed the stack on deeply nested values.
 */
export function isDeeperThan(levels: number, value: unknown): boolean {
  let level: object[] = [{ value }];
  for (let depth = 0; level.length > 0 && depth <= levels; depth++)
    level = level.flatMap((parent) => Object.values(parent).filter((child) => typeof child === 'object' && child));
  return level.length > 0;
}
