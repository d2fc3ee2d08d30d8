import { truncate } from './fit.ts';
import { sanitizeLine } from './text.ts';

/** The host of an address, without `www.`; undefined if it has none. */
export function domainOf(address: unknown): string | undefined {
  if (typeof address !== 'string') return;
  const host = HOST.exec(address.slice(0, MAX_HOST))?.[1]?.toLowerCase();
  return host !== undefined && host.length <= MAX_NAME ? sanitizeLine(host) || undefined : undefined;
}

/**
 * An address as a person would share it: without tracking parameters and unfilled macros (`{{ad.name}}`), with readable
 * letters instead of percent codes, at most `tokens` long.
 */
export function cleanAddress(address: unknown, tokens: number): string | undefined {
  if (typeof address !== 'string' || address.trim() === '') return;
  const whole = address.slice(0, MAX_ADDRESS);
  // The rest is neither cleaned nor shown. If it belongs to a fragment, nothing is missing.
  const beyond = whole.includes('#') ? 0 : address.length - whole.length;
  const [beforeHash = ''] = whole.split('#', 1);
  const mark = beforeHash.indexOf('?');
  const path = mark < 0 ? beforeHash : beforeHash.slice(0, mark);
  const query =
    mark < 0
      ? ''
      : beforeHash
          .slice(mark + 1)
          .split('&')
          .filter(isWorthKeeping)
          .join('&');
  return truncate(sanitizeLine(readable(query ? `${path}?${query}` : path)), tokens, beyond) || undefined;
}

/** When a signed address stops working, in milliseconds since the epoch, if the address says so. */
export function expiryOf(address: string): number | undefined {
  const unix = /[?&](?:oe=([0-9a-f]{8})(?![0-9a-f])|(?:expires|exp)=(\d{10})(?!\d))/i.exec(address);
  if (unix) return 1000 * (unix[1] ? Number.parseInt(unix[1], 16) : Number(unix[2]));
  const signed = /[?&]x-amz-date=(\d{4})(\d\d)(\d\d)t(\d\d)(\d\d)(\d\d)z/i.exec(address);
  const seconds = /[?&]x-amz-expires=(\d{1,7})(?!\d)/i.exec(address);
  if (!signed || !seconds) return;
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = signed.slice(1).map(Number);
  return Date.UTC(year, month - 1, day, hour, minute, second) + 1000 * Number(seconds[1]);
}

const MAX_HOST = 1000;
/** DNS: a name has at most 253 characters. */
const MAX_NAME = 253;
const MAX_ADDRESS = 4000;
const HOST = /^\s*(?:[a-z][a-z0-9+.-]*:)?(?:\/\/)?(?:[^/?#@\s]*@)?(?:www\.)?([^/?#:@\s]*[^/?#:@\s.])/i;

const TRACKING =
  /^(?:utm_|af_|hsa_|mtm_|pk_|matomo_|fb_|ad_|adset|campaign|nt_|tracking|site_?source|placement|sub_id|is_retargeting|is_reengagement|advertising_id|idfa$|og_tag|yg_type|routing_short|[gf]bclid|gclid|dclid|gbraid|wbraid|msclkid|ttclid|twclid|igsh|li_fat_id|mc_[ce]id|_hs|ref_src|srsltid|yclid|scid$|epik$)/i;
const MACRO = /\{\{|%7b%7b|__[A-Z_]+__/i;

const isWorthKeeping = (parameter: string) => parameter !== '' && !TRACKING.test(parameter) && !MACRO.test(parameter);

function readable(address: string): string {
  try {
    return decodeURI(address).replace(/\s/g, '%20');
  } catch {
    return address;
  }
}
