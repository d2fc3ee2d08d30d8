import { parseAccept } from 'hono/utils/accept';

/**
 * Returns true if an `Accept` header allows a media type. The most specific range takes precedence, and a missing
 * header allows every type (RFC 9110, section 12.5.1).
 */
export function acceptsMediaType(accept: string | undefined, mediaType: string): boolean {
  if (!accept?.trim()) return true;
  const ranges = parseAccept(accept);
  const [mainType] = mediaType.split('/');
  for (const range of [mediaType, `${mainType}/*`, '*/*']) {
    const match = ranges.find(({ type }) => type.toLowerCase() === range);
    if (match) return match.q > 0;
  }
  return false;
}
