/** In bytes, rounded up from what V8 needs for many small objects, keys of their own, or deep nesting. */
const perValue = 24;
const perContainer = 64;
const perKey = 80;
const perCharacter = 2;

/** How much memory JSON takes once it is parsed, at most, in bytes: `{}` takes twenty for each character. */
export function memoryOf(json: unknown): number {
  let bytes = 0;
  // No recursion: an answer may be nested as deep as it is long.
  const containers: object[] = [];
  const count = (value: unknown) => {
    bytes += perValue;
    if (typeof value === 'string') bytes += perCharacter * value.length;
    else if (typeof value === 'object' && value !== null) containers.push(value);
  };
  count(json);
  for (let next = containers.pop(); next !== undefined; next = containers.pop()) {
    bytes += perContainer;
    if (Array.isArray(next)) next.forEach(count);
    else {
      for (const key in next) {
        bytes += perKey + perCharacter * key.length;
        count(next[key as keyof typeof next]);
      }
    }
  }
  return bytes;
}
