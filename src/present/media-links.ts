import { type Fields, textOf } from './copy-fields.ts';
import { addressOf, expiryOf } from './landing.ts';
import { dayOf } from './running.ts';
import { estimateTokens } from './tokens.ts';

export interface MediaLink {
  type: string;
  url?: string;
  /** The day on which a signed address stopped working; `url` is left out then. */
  expired?: string;
  expires?: string;
}

/** Writes the addresses of one ad after another, as long as there is room. */
export interface LinkWriter {
  write(assets: readonly Fields[]): MediaLink[];
  /** Assets whose address did not fit. */
  readonly leftOut: number;
}

/** Longer addresses are useless to a reader, and a cut one would not work. */
const MAX_ADDRESS = 2000;
/** The type, the date and the names of the fields. */
const LINK_TOKENS = 24;

export function linkWriter(tokens: number, now: number): LinkWriter {
  let left = tokens;
  let leftOut = 0;
  return {
    get leftOut() {
      return leftOut;
    },
    write: (assets) =>
      assets.flatMap((asset) => {
        const link = left < LINK_TOKENS ? undefined : mediaLink(asset, now);
        const cost = LINK_TOKENS + (link?.url === undefined ? 0 : estimateTokens(link.url));
        if (link === undefined || cost > left) {
          leftOut++;
          return [];
        }
        left -= cost;
        return link;
      }),
  };
}

function mediaLink(asset: Fields, now: number): MediaLink | undefined {
  const address = addressOf(asset.url);
  // A user name in front of the host would hide it.
  if (address === undefined || address.href.length > MAX_ADDRESS || address.username + address.password !== '') return;
  const url = address.href;
  const type = textOf(asset.type, 12) ?? 'media';
  const expiry = expiryOf(url);
  const day = dayOf(expiry);
  if (expiry !== undefined && expiry <= now) return { type, ...(day && { expired: day }) };
  return { type, url, ...(day && { expires: day }) };
}
