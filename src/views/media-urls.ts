import { normalizeLine } from './safe-text.ts';
import { parseUrl } from './urls.ts';

/**
 * Returns the path of a media URL, which identifies the file. Ignores the host and the query, because ad networks serve
 * the same file from many hosts and sign the URL again for each response.
 *
 * Two versions of one ad can be compared by this path. The path alone does not identify a picture among all ads, because
 * on some hosts the query selects the picture, as in `/image?id=1`. Use `getPictureKey` for this purpose.
 */
export function getMediaPath(mediaUrl: unknown): string | null {
  const parsedUrl = parseUrl(mediaUrl);
  if (parsedUrl !== undefined) return parsedUrl.pathname === '/' ? parsedUrl.hostname : parsedUrl.pathname;
  return typeof mediaUrl === 'string' ? normalizeLine(mediaUrl.replace(/[?#].*$/s, '')) || null : null;
}

/**
 * Patterns for the picture URLs of ad networks that sign their URLs: Meta, TikTok and LinkedIn. The groups are the domain
 * and the path, which together identify the picture. Other paths of the same hosts do not match, such as Meta's
 * `/safe_image.php?url=…`, where the query selects the picture.
 */
const signedPicturePatterns = [
  /^https?:\/\/(?:[\w-]{1,63}\.){1,8}(fbcdn\.net|cdninstagram\.com)(\/[^?#\\]{1,1000}\.(?:jpe?g|png|webp|gif))(?:[?#]|$)/i,
  /^https?:\/\/(?:[\w-]{1,63}\.){1,8}(tiktokcdn(?:-[a-z]{2,10})?\.com)(\/[^?#\\]{1,1000}\.(?:jpe?g|png|webp|image))(?:[?#]|$)/i,
  /^https?:\/\/(media\.licdn\.com)(\/dms\/image\/[^?#\\]{1,1000})(?:[?#]|$)/i,
];

/**
 * Returns a text that identifies the picture at a URL. The URLs of one picture have the same key even if the ad network
 * has signed them at different times or serves them from different hosts. For hosts that are not known to sign URLs, the
 * key is the whole URL.
 */
export function getPictureKey(pictureUrl: string): string {
  for (const pattern of signedPicturePatterns) {
    const [, domain, path] = pattern.exec(pictureUrl) ?? [];
    if (domain !== undefined && path !== undefined) return domain.toLowerCase() + path;
  }
  return pictureUrl;
}
