import { sanitizeLine } from './safe-text.ts';
import { truncate } from './tokens.ts';

/**
 * The address that a browser would open, read as browsers read addresses: `https:/host`, `https://host\\@other` and
 * tabs inside included. `host/path` and `//host/path` count as https. For an address with backslashes, only the host is
 * given. Undefined for a text that leads to no host of the web.
 */
export function addressOf(text: unknown): URL | undefined {
  if (typeof text !== 'string') return;
  const plain = text.replace(ignored, '');
  const isWhole = scheme.test(plain) && !hostAndPort.test(plain);
  if (!isWhole && !hostFirst.test(plain)) return;
  const whole = isWhole ? plain : `https://${plain}`;
  if (longHost.test(whole)) return;
  let url: URL;
  try {
    url = new URL(whole);
  } catch {
    return;
  }
  // The parser turns backslashes into slashes, and so would hide a text that is spelled in escapes, above all the
  // caller's key.
  if (whole.includes('\\')) url.pathname = url.search = url.hash = '';
  return webPattern.test(url.protocol) && (isWhole || url.hostname.includes('.')) ? url : undefined;
}

/** An address of a form that the parser of addresses leaves as it is. */
const plainHost = /^(?:https?:\/\/)?((?:(?!xn--)[a-z\d-]{1,63}\.){1,4}[a-z]{2,20})(?=\/|$)/;

/** The host of an address, without `www.`; undefined if it has none. */
export function domainOf(address: unknown): string | undefined {
  const [, plain] = (typeof address === 'string' && plainHost.exec(address)) || [];
  const host = (plain ?? addressOf(address)?.hostname)?.replace(/^www\.(?=[^.]+\.)|\.$/g, '');
  return host !== undefined && host.length <= maxName ? host : undefined;
}

/**
 * An address as a person would share it: without tracking parameters, unfilled macros (`{{ad.name}}`) and user names,
 * with readable letters instead of percent codes where it stays the same address, at most `tokens` long.
 */
export function cleanAddress(address: unknown, tokens: number): string | undefined {
  if (typeof address !== 'string') return;
  const url = addressOf(address);
  if (url === undefined) {
    const start = sanitizeLine(address.slice(0, maxAddress));
    return start && truncate(start, tokens, Math.max(0, address.length - maxAddress));
  }
  url.username = url.password = url.hash = '';
  url.search = url.search.slice(1).split('&').filter(isWorthKeeping).join('&');
  return truncate(readable(url.href), tokens);
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

/** The characters that a browser drops from an address, wherever they stand. */
const ignored = /^[\p{Cc} ]+|[\t\n\r]/gu;
const scheme = /^[a-z][a-z\d+.-]*:/i;
const hostAndPort = /^[a-z\d-]+(?:\.[a-z\d-]+)+:\d/i;
const hostFirst = /^(?:[\\/]{2}|[^\\/?#])/;
/**
 * No host name is so long, and reading one of non-Latin letters takes time that grows with the square of its length.
 */
const longHost = /^[^:]*:[\\/]*[^\\/?#]{1000}/;
const webPattern = /^https?:$/;
/** DNS: a name has at most 253 characters. */
const maxName = 253;
const maxAddress = 4000;

const trackingPattern =
  /^(?:utm_|af_|hsa_|mtm_|pk_|matomo_|fb_|ad_|adset|campaign|nt_|tracking|site_?source|placement|sub_id|is_retargeting|is_reengagement|advertising_id|idfa$|og_tag|yg_type|routing_short|[gf]bclid|gclid|dclid|gbraid|wbraid|msclkid|ttclid|twclid|igsh|li_fat_id|mc_[ce]id|_hs|ref_src|srsltid|yclid|scid$|epik$)/i;
const macro = /\{\{|%7b%7b|__[A-Z_]+__/i;

const isWorthKeeping = (parameter: string) =>
  parameter !== '' && !trackingPattern.test(parameter) && !macro.test(parameter);

function readable(href: string): string {
  if (href.length > maxAddress) return href;
  try {
    const text = sanitizeLine(decodeURI(href).replace(/\s/g, '%20'));
    return new URL(text).href === href ? text : href;
  } catch {
    return href;
  }
}
