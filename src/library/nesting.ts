/** Deeper JSON can be read, but not written: writing it is recursive. */
export const maxDepth = 64;

/** Level by level, since a depth that has to be found out must not be gone into by recursion. */
export function isTooDeep(value: unknown): boolean {
  let level: object[] = [{ value }];
  for (let depth = 0; level.length > 0 && depth <= maxDepth; depth++) {
    level = level.flatMap((parent) => Object.values(parent).filter((child) => typeof child === 'object' && child));
  }
  return level.length > 0;
}
