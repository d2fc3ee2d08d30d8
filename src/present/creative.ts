import { expiryOf } from './landing.ts';
import { dayOf } from './running.ts';
import { sanitizeLine } from './text.ts';
import { estimateTokens } from './tokens.ts';
import { type Fields, isNumber, objects, textOf } from './view.ts';

/**
 * Describes the pictures, videos and cards of an ad: `15 s` for a VIDEO, `2 cards`, `8 cards (6 videos 14 s)`. Does not
 * repeat the service's own format. The still of a video, the advertiser's portrait and other sizes of the same piece
 * are not counted.
 */
export function creativeOf(ad: Fields): string | undefined {
  const parts = mediaParts(ad).join(' + ');
  const kind = typeof ad.displayFormat === 'string' ? ad.displayFormat.toLowerCase() : '';
  const repeats = kind !== '' && (parts === kind || parts.startsWith(`${kind} `));
  return (repeats ? parts.slice(kind.length + 1) : parts) || undefined;
}

function mediaParts(ad: Fields): string[] {
  const media = objects(ad.media);
  const videos = pieces(media, /^VID/i);
  const stills = pieces(media, /^(?!CARD|PA_|VID)/i);
  const cardVideos = pieces(media, /^CARD_VID/i);
  const cards = Math.max(objects(ad.cards).length, pieces(media, /^CARD/i).length);
  const parts: string[] = [];
  if (videos.length > 0) parts.push(`${counted(videos.length, 'video')}${lengths(videos)}`);
  else if (stills.length > 0 && cards === 0) parts.push(counted(stills.length, 'image'));
  if (cards > 0) {
    const within = cardVideos.length > 0 ? ` (${counted(cardVideos.length, 'video')}${lengths(cardVideos)})` : '';
    parts.push((cards === 1 ? '1 card' : `${cards} cards`) + within);
  }
  return parts;
}

export interface MediaLink {
  type: string;
  url?: string;
  /** The day on which a signed address stopped working; `url` is left out then. */
  expired?: string;
  expires?: string;
}

/** Longer addresses are useless to a reader, and a cut one would not work. */
const WEB_ADDRESS = /^https?:\/\/.{1,2000}$/i;
const MAX_LINKS = 3;
const LINK_TOKENS = 400;
const ALL_LINKS_TOKENS = 600;

/** A few working addresses of the creative itself, not of its stills and portraits. */
export function mediaLinks(media: unknown, now: number): MediaLink[] {
  const all = objects(media);
  const videos = pieces(all, /VID/i);
  const best = videos.length > 0 ? videos : pieces(all, /^(?!PA_)/i);
  const links: MediaLink[] = [];
  let left = ALL_LINKS_TOKENS;
  for (const asset of best.slice(0, MAX_LINKS)) {
    const url = typeof asset.url === 'string' && WEB_ADDRESS.test(asset.url) ? sanitizeLine(asset.url) : '';
    if (url === '') continue;
    const type = textOf(asset.type, 12) ?? 'media';
    const expiry = expiryOf(url);
    const day = dayOf(expiry);
    const tokens = estimateTokens(url);
    if (expiry !== undefined && expiry <= now) {
      if (links.length === 0) links.push({ type, ...(day && { expired: day }) });
    } else if (tokens <= Math.min(LINK_TOKENS, left)) {
      left -= tokens;
      links.push({ type, url, ...(day && { expires: day }) });
    }
  }
  return links;
}

/** The assets of a role, one for each position (`nr`). */
function pieces(media: Fields[], role: RegExp): Fields[] {
  const seen = new Set<unknown>();
  return media.filter((asset) => {
    if (!role.test(String(asset.type ?? ''))) return false;
    const position = asset.nr ?? asset.filename ?? asset.url;
    return !seen.has(position) && seen.add(position);
  });
}

const counted = (count: number, noun: string) => (count === 1 ? noun : `${count} ${noun}s`);

function lengths(videos: Fields[]): string {
  const seconds = videos.flatMap(({ durationSeconds: s }) => (isNumber(s) && s > 0 ? Math.round(s) : []));
  if (seconds.length === 0) return '';
  const min = Math.min(...seconds);
  const max = Math.max(...seconds);
  return min === max ? ` ${max} s` : ` ${min}–${max} s`;
}
