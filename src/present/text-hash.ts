/**
 * Six digits that are the same for texts that are the same, in every result (FNV-1a). Digits, because a model reads six
 * of them as two tokens.
 */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return LOWEST + ((hash >>> 0) % (1_000_000 - LOWEST));
}

const LOWEST = 100_000;
