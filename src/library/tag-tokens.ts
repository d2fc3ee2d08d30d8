import type { RecordType, Tag } from './record-type.ts';

/** Text with a lone surrogate cannot be encoded. */
const loneSurrogate = /\p{Cs}/gu;

/**
 * What the tokens of a tag begin with: a character that no word contains, so that tags and copy are never confused. In
 * lower case, as the index holds them.
 */
export const tagPrefix = (key: string) => `\uE000${key.toLowerCase()}_`;

/** The token under which the full-text index finds a record by the value of a tag. */
export function tagToken({ key, opaque }: Pick<Tag, 'key' | 'opaque'>, value: string): string {
  const text = value.trim().replace(loneSurrogate, '');
  const encoded = opaque ? withMarkedCapitals(encodeURIComponent(text)) : encodeURIComponent(text.toLowerCase());
  return tagPrefix(key) + encoded.toLowerCase();
}

/** The index knows no capitals. Two percent signs come together nowhere else. */
const withMarkedCapitals = (encoded: string) =>
  encoded.replace(/%[\dA-F]{2}|[A-Z]/g, (part) => (part.startsWith('%') ? part : `%%${part}`));

/** A token of every row: a full-text query needs something to exclude from. */
export const everyRow = '\uE000';

/** All tokens of a record by its tags. */
export function tagTokens({ tags }: Pick<RecordType, 'tags'>, item: unknown): string {
  const tokens = tags.flatMap((tag) => tag.of(item).flatMap((value) => (value ? [tagToken(tag, value)] : [])));
  return [everyRow, ...new Set(tokens)].join(' ');
}
