/**
 * Six digits that are the same for texts that are the same, in every result (FNV-1a). Digits, because a model reads six
 * of them as two tokens. Of an endless text, the start and the length count.
 */
export function hashOf(text: string): number {
  let hash = FNV_OFFSET ^ text.length;
  const end = Math.min(text.length, MAX_LENGTH);
  for (let index = 0; index < end; index++) hash = Math.imul(hash ^ text.charCodeAt(index), FNV_PRIME);
  return LOWEST + ((hash >>> 0) % (1_000_000 - LOWEST));
}

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;
const MAX_LENGTH = 20_000;
const LOWEST = 100_000;
