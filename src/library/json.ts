export const isJsonObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** `JSON.stringify` is recursive: it fails on values that `JSON.parse` could read. */
export const maxDepth = 64;

/** Walks level by level: recursion would fail on the very values it looks for. */
export function isTooDeep(value: unknown): boolean {
  let level: object[] = [{ value }];
  for (let depth = 0; level.length > 0 && depth <= maxDepth; depth++) {
    level = level.flatMap((parent) => Object.values(parent).filter((child) => typeof child === 'object' && child));
  }
  return level.length > 0;
}
