import { sanitizeLine } from './safe-text.ts';
import { truncate } from './tokens.ts';

/**
 * Parses a text as the URL that a browser would open. Like a browser, accepts `https:/host`, `https://host\\@other` and
 * tabs within the text. `host/path` and `//host/path` are parsed as https. If the text contains backslashes, only the
 * host is returned. Returns undefined if the text does not contain a web host.
 */
export function parseUrl(text: unknown): URL | undefined {
  if (typeof text !== 'string') return;
  const cleanText = text.replace(ignoredCharacters, '');
  const hasScheme = scheme.test(cleanText) && !hostAndPort.test(cleanText);
  if (!hasScheme && !hostFirst.test(cleanText)) return;
  const address = hasScheme ? cleanText : `https://${cleanText}`;
  if (longHost.test(address)) return;
  let url: URL;
  try {
    url = new URL(address);
  } catch {
    return;
  }
  // The URL parser converts backslashes to slashes. A secret in the text, such as the caller's API key, could then no
  // longer be recognized and masked, so drop everything after the host.
  if (address.includes('\\')) url.pathname = url.search = url.hash = '';
  return webPattern.test(url.protocol) && (hasScheme || /[^.]\.[^.]/.test(url.hostname)) ? url : undefined;
}

/**
 * Matches a URL with a host that the URL parser would not change. Most URLs match, and matching is faster than parsing.
 */
const plainHost = /^(?:https?:\/\/)?((?:(?!xn--)[a-z\d-]{1,63}\.){1,4}[a-z]{2,20})(?=\/|$)/;

/** Returns the domain of a web URL without `www.`. Returns undefined if the text is not a web URL. */
export function parseDomain(address: unknown): string | undefined {
  const [, plainDomain] = (typeof address === 'string' && plainHost.exec(address)) || [];
  return plainDomain === undefined ? getHost(parseUrl(address)) : removeWww(plainDomain);
}

/** Returns the domain of a URL without `www.`. Returns undefined if the domain is longer than DNS allows. */
export function getHost(url: URL | undefined): string | undefined {
  const host = url && removeWww(url.hostname);
  return host !== undefined && host.length <= maxHostChars ? host : undefined;
}

const removeWww = (host: string): string => host.replace(/^www\.(?=[^.]+\.)|\.$/g, '');

/**
 * Shortens a URL to what a person would share. Removes tracking parameters, user names and unreplaced macros such as
 * `{{ad.name}}`. Decodes percent-encoded letters if this does not change the meaning. Truncates the URL to the token
 * budget.
 */
export function cleanUrl(address: unknown, tokens: number): string | undefined {
  if (typeof address !== 'string') return;
  const url = parseUrl(address);
  if (url === undefined) {
    const start = sanitizeLine(address.slice(0, maxUrlChars));
    return start && truncate(start, tokens, Math.max(0, address.length - maxUrlChars));
  }
  url.username = url.password = url.hash = '';
  url.search = url.search.slice(1).split('&').filter(isContentParameter).join('&');
  return truncate(decodePercentCodes(url.href), tokens);
}

/**
 * Returns the expiry time of a signed URL in milliseconds since the Unix epoch. Returns undefined if the URL contains
 * no expiry time.
 */
export function parseExpiry(address: string): number | undefined {
  const unix = /[?&](?:oe=([0-9a-f]{8})(?![0-9a-f])|(?:expires|exp)=(\d{10})(?!\d))/i.exec(address);
  if (unix) return 1000 * (unix[1] ? Number.parseInt(unix[1], 16) : Number(unix[2]));
  const signed = /[?&]x-amz-date=(\d{4})(\d\d)(\d\d)t(\d\d)(\d\d)(\d\d)z/i.exec(address);
  const seconds = /[?&]x-amz-expires=(\d{1,7})(?!\d)/i.exec(address);
  if (!signed || !seconds) return;
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = signed.slice(1).map(Number);
  return Date.UTC(year, month - 1, day, hour, minute, second) + 1000 * Number(seconds[1]);
}

/** Matches the characters that browsers remove from a URL. */
const ignoredCharacters = /^[\p{Cc} ]+|[\t\n\r]/gu;
const scheme = /^[a-z][a-z\d+.-]*:/i;
const hostAndPort = /^[a-z\d-]+(?:\.[a-z\d-]+)+:\d/i;
const hostFirst = /^(?:[\\/]{2}|[^\\/?#])/;
/**
 * Matches a URL whose host is far too long. Such a host is not parsed, because converting non-Latin letters to Punycode
 * takes quadratic time.
 */
const longHost = /^[^:]*:[\\/]*[^\\/?#]{1000}/;
const webPattern = /^https?:$/;
const maxHostChars = 253;
const maxUrlChars = 4000;

/**
 * Matches query parameters that only tell where a visitor comes from and do not affect which page opens. Sources: the
 * documentation of Google (campaign URLs, click ids), Meta (URL parameters), TikTok, Microsoft, Naver, Yandex,
 * AppsFlyer, Airbridge, Adjust, Matomo and HubSpot, and the list in the Brave browser (brave-core,
 * `components/query_filter/utils.cc`).
 */
const trackingParameter = new RegExp(
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
/** Matches a macro that the ad network has not replaced, e.g. `{{ad.name}}`. */
const macro = /\{\{|%7b%7b|__[A-Z_]+__/i;

/** Returns true if a query parameter only tracks visitors, e.g. `utm_source=x`. */
export const isTrackingParameter = (parameter: string): boolean => trackingParameter.test(parameter);

const isContentParameter = (parameter: string) =>
  parameter !== '' && !isTrackingParameter(parameter) && !macro.test(parameter);

/** Decodes percent-encoded letters in a URL. Returns the URL unchanged if decoding would change its meaning. */
function decodePercentCodes(href: string): string {
  if (href.length > maxUrlChars) return href;
  try {
    const text = sanitizeLine(decodeURI(href).replace(/\s/g, '%20'));
    return new URL(text).href === href ? text : href;
  } catch {
    return href;
  }
}
