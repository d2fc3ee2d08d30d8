import { parseAccept } from 'hono/utils/accept';

/**
 * Returns true if an `Accept` header allows a media type. The most specific media range takes precedence, and a missing
 * header allows every media type (RFC 9110, section 12.5.1).
 */
export function acceptsMediaType(acceptHeader: string | undefined, mediaType: string): boolean {
  if (!acceptHeader?.trim()) return true;
  const mediaRanges = parseAccept(acceptHeader);
  const [mainType] = mediaType.split('/');
  for (const range of [mediaType, `${mainType}/*`, '*/*']) {
    const match = mediaRanges.find(({ type }) => type.toLowerCase() === range);
    if (match) return match.q > 0;
  }
  return false;
}
