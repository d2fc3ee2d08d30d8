import { sanitizeLine } from './safe-text.ts';
import { truncate } from './tokens.ts';

/**
 * The address that a browser would open, read as browsers read addresses: `https:/host`, `https://host\\@other` and
 * tabs inside included. `host/path` and `//host/path` count as https. For an address with backslashes, only the host is
 * given. Undefined for a text that leads to no host of the web.
 */
export function parseUrl(text: unknown): URL | undefined {
  if (typeof text !== 'string') return;
  const plain = text.replace(ignored, '');
  const isWhole = scheme.test(plain) && !hostAndPort.test(plain);
  if (!isWhole && !hostFirst.test(plain)) return;
  const address = isWhole ? plain : `https://${plain}`;
  if (longHost.test(address)) return;
  let url: URL;
  try {
    url = new URL(address);
  } catch {
    return;
  }
  // The parser turns backslashes into slashes, and so would hide a text that is spelled in escapes, above all the
  // caller's key.
  if (address.includes('\\')) url.pathname = url.search = url.hash = '';
  return webPattern.test(url.protocol) && (isWhole || url.hostname.includes('.')) ? url : undefined;
}

/** An address of a form that the parser of addresses leaves as it is. */
const plainHost = /^(?:https?:\/\/)?((?:(?!xn--)[a-z\d-]{1,63}\.){1,4}[a-z]{2,20})(?=\/|$)/;

export function parseDomain(address: unknown): string | undefined {
  const [, plain] = (typeof address === 'string' && plainHost.exec(address)) || [];
  return plain === undefined ? getHost(parseUrl(address)) : withoutWww(plain);
}

/** The host of an address, without `www.`; undefined for one that is longer than DNS allows. */
export function getHost(url: URL | undefined): string | undefined {
  const host = url && withoutWww(url.hostname);
  return host !== undefined && host.length <= maxName ? host : undefined;
}

const withoutWww = (host: string): string => host.replace(/^www\.(?=[^.]+\.)|\.$/g, '');

/**
 * An address as a person would share it: without tracking parameters, unfilled macros (`{{ad.name}}`) and user names,
 * with readable letters instead of percent codes where it stays the same address, at most `tokens` long.
 */
export function cleanUrl(address: unknown, tokens: number): string | undefined {
  if (typeof address !== 'string') return;
  const url = parseUrl(address);
  if (url === undefined) {
    const start = sanitizeLine(address.slice(0, maxAddress));
    return start && truncate(start, tokens, Math.max(0, address.length - maxAddress));
  }
  url.username = url.password = url.hash = '';
  url.search = url.search.slice(1).split('&').filter(isWorthKeeping).join('&');
  return truncate(readable(url.href), tokens);
}

/** When a signed address stops working, in milliseconds since the epoch, if the address says so. */
export function parseExpiry(address: string): number | undefined {
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
/** No host name is so long. Reading one of non-Latin letters takes time with the square of its length. */
const longHost = /^[^:]*:[\\/]*[^\\/?#]{1000}/;
const webPattern = /^https?:$/;
const maxName = 253;
const maxAddress = 4000;

/**
 * The names of parameters that say where a visitor comes from, and not which page opens. Sources: the documents of
 * Google (campaign URLs, click ids), Meta (URL parameters), TikTok, Microsoft, Naver, Yandex, AppsFlyer, Airbridge,
 * Adjust, Matomo and HubSpot for their own, and the list of the browser Brave (brave-core,
 * `components/query_filter/utils.cc`).
 */
const tracking = new RegExp(
  `^(?:${[
    ...['utm_', 'gad_', 'af_', 'adj_', 'hsa_', '_hs', '__hs', 'mtm_', 'matomo_', 'pk_', 'fb_', 'nt_', 'oft_', 'bsft_'],
    ...['oly_', 'vero_', '_branch_', 'guce_referrer', 'ml_subscriber', 'sub_id', 'ad_', 'adset', 'adgroup', 'campaign'],
    ...['tracking', 'site_?source', 'placement', 'routing_short', 'is_retargeting', 'is_reengagement', 'og_tag'],
    ...[
      'n_(?:media|query|rank|ad|keyword|campaign)',
      'napm=',
      'yg_type',
      'advertising_id',
      'igsh',
      'ref_src',
      'at_recipient_',
      'sc_(?:customer|eh|uid)',
    ],
    `(?:${[
      ...['gclid', 'gclsrc', 'dclid', 'gbraid', 'wbraid', 'srsltid', '_gl', '_ga', 'fbclid', 'msclkid', 'ttclid'],
      ...['twclid', 'li_fat_id', 'epik', 'sccid', 'scid', 'yclid', 'ysclid', 'ymclid', '_openstat', 'idfa', 'gps_adid'],
      ...['mc_[ce]id', 'mkt_tok', 's_cid', '__s', '_kx', '_bhlid', 'rb_clickid', 'irclickid', 'cjevent', 'wickedid'],
      ...['ss_email_id', 'ck_subscriber_id', 'unicorn_click_id', 'et_rid', 'vgo_ee', 'bbeml'],
    ].join('|')})(?:=|$)`,
  ].join('|')})`,
  'i',
);
const macro = /\{\{|%7b%7b|__[A-Z_]+__/i;

export const isTrackingParameter = (parameter: string): boolean => tracking.test(parameter);

const isWorthKeeping = (parameter: string) =>
  parameter !== '' && !isTrackingParameter(parameter) && !macro.test(parameter);

function readable(href: string): string {
  if (href.length > maxAddress) return href;
  try {
    const text = sanitizeLine(decodeURI(href).replace(/\s/g, '%20'));
    return new URL(text).href === href ? text : href;
  } catch {
    return href;
  }
}
