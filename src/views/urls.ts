import { sanitizeLine } from './safe-text.ts';
import { truncate } from './tokens.ts';

/**
 * Parses a text as the URL that a browser would open. Like a browser, accepts `https:/host`, `https://host\\@other` and
 * tabs within the text. Interprets `host/path` and `//host/path` as https URLs. If the text contains backslashes, the
 * result contains only the host. Returns undefined if the text does not contain a web host.
 */
export function parseUrl(text: unknown): URL | undefined {
  if (typeof text !== 'string') return;
  const cleanText = text.replace(ignoredCharactersPattern, '');
  const hasScheme = schemePattern.test(cleanText) && !hostAndPortPattern.test(cleanText);
  if (!hasScheme && !hostFirstPattern.test(cleanText)) return;
  const urlText = hasScheme ? cleanText : `https://${cleanText}`;
  if (longHostPattern.test(urlText)) return;
  let url: URL;
  try {
    url = new URL(urlText);
  } catch {
    return;
  }
  // Remove everything after the host, because the URL parser converts backslashes to slashes. A secret in the text,
  // such as the caller's API key, would change in the same way. The server would then no longer recognize and mask it.
  if (urlText.includes('\\')) url.pathname = url.search = url.hash = '';
  return webProtocolPattern.test(url.protocol) && (hasScheme || /[^.]\.[^.]/.test(url.hostname)) ? url : undefined;
}

/**
 * Parses a text as an https URL of at most 2000 characters, and returns the URL in normalized form. Returns undefined
 * for any other text and for a URL with a user name: `https://bank.example@bad.example` looks like `bank.example` but
 * leads to `bad.example`.
 */
export function parseHttpsUrl(text: unknown): string | undefined {
  const url = typeof text === 'string' && text.length <= maxHttpsUrlChars ? parseUrl(text) : undefined;
  return url?.protocol === 'https:' && url.username + url.password === '' ? url.href : undefined;
}

const maxHttpsUrlChars = 2000;

/** Matches a URL whose host the URL parser would not change. Most URLs match, and matching is faster than parsing. */
const plainHostPattern = /^(?:https?:\/\/)?((?:(?!xn--)[a-z\d-]{1,63}\.){1,4}[a-z]{2,20})(?=\/|$)/;

/** Returns the domain of a web URL, without `www.`. Returns undefined if the text is not a web URL. */
export function parseDomain(urlText: unknown): string | undefined {
  const [, plainDomain] = (typeof urlText === 'string' && plainHostPattern.exec(urlText)) || [];
  return plainDomain === undefined ? getHost(parseUrl(urlText)) : removeWww(plainDomain);
}

/** Returns the host of a URL, without `www.`. Returns undefined if the host is longer than DNS allows. */
export function getHost(url: URL | undefined): string | undefined {
  const host = url && removeWww(url.hostname);
  return host !== undefined && host.length <= maxHostChars ? host : undefined;
}

const removeWww = (host: string): string => host.replace(/^www\.(?=[^.]+\.)|\.$/g, '');

/**
 * Shortens a URL to the form that a person would share. Removes tracking parameters, user names, and unreplaced macros
 * such as `{{ad.name}}`. Decodes percent-encoded letters unless this would change the meaning of the URL. Truncates the
 * result to `maxTokens` tokens.
 */
export function cleanUrl(urlText: unknown, maxTokens: number): string | undefined {
  if (typeof urlText !== 'string') return;
  const parsedUrl = parseUrl(urlText);
  if (parsedUrl === undefined) {
    const urlStart = sanitizeLine(urlText.slice(0, maxUrlChars));
    return urlStart && truncate(urlStart, maxTokens, Math.max(0, urlText.length - maxUrlChars));
  }
  parsedUrl.username = parsedUrl.password = parsedUrl.hash = '';
  parsedUrl.search = parsedUrl.search.slice(1).split('&').filter(isContentParameter).join('&');
  return truncate(decodePercentEncodedLetters(parsedUrl.href), maxTokens);
}

/**
 * Reads the time at which a signed URL expires, e.g. from the `expires` parameter. Returns milliseconds since the Unix
 * epoch, or undefined if the URL contains no such time.
 */
export function parseExpiry(urlText: string): number | undefined {
  const unixTimeMatch = /[?&](?:oe=([0-9a-f]{8})(?![0-9a-f])|(?:expires|exp)=(\d{10})(?!\d))/i.exec(urlText);
  if (unixTimeMatch)
    return 1000 * (unixTimeMatch[1] ? Number.parseInt(unixTimeMatch[1], 16) : Number(unixTimeMatch[2]));
  const signingTimeMatch = /[?&]x-amz-date=(\d{4})(\d\d)(\d\d)t(\d\d)(\d\d)(\d\d)z/i.exec(urlText);
  const lifetimeMatch = /[?&]x-amz-expires=(\d{1,7})(?!\d)/i.exec(urlText);
  if (!signingTimeMatch || !lifetimeMatch) return;
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = signingTimeMatch.slice(1).map(Number);
  return Date.UTC(year, month - 1, day, hour, minute, second) + 1000 * Number(lifetimeMatch[1]);
}

/**
 * Matches the characters that browsers remove from a URL: spaces and control characters at the beginning, tabs, and
 * line breaks.
 */
const ignoredCharactersPattern = /^[\p{Cc} ]+|[\t\n\r]/gu;
const schemePattern = /^[a-z][a-z\d+.-]*:/i;
const hostAndPortPattern = /^[a-z\d-]+(?:\.[a-z\d-]+)+:\d/i;
const hostFirstPattern = /^(?:[\\/]{2}|[^\\/?#])/;
/**
 * Matches a URL with a host that is far too long. `parseUrl` does not parse such a URL, because the conversion of
 * non-Latin letters in a host to Punycode takes quadratic time.
 */
const longHostPattern = /^[^:]*:[\\/]*[^\\/?#]{1000}/;
const webProtocolPattern = /^https?:$/;
const maxHostChars = 253;
const maxUrlChars = 4000;

/**
 * Matches query parameters that tell where a visitor comes from, but do not determine which page opens, e.g.
 * `utm_source`.
 *
 * Sources: the documentation of Google (campaign URLs, click ids), Meta (URL parameters), TikTok, Microsoft, Naver,
 * Yandex, AppsFlyer, Airbridge, Adjust, Matomo and HubSpot, and the list in the Brave browser (brave-core,
 * `components/query_filter/utils.cc`).
 */
const trackingParameterPattern = new RegExp(
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
const macroPattern = /\{\{|%7b%7b|__[A-Z_]+__/i;

/** Returns true if a query parameter only serves to track visitors, e.g. `utm_source=x`. */
export const isTrackingParameter = (parameter: string): boolean => trackingParameterPattern.test(parameter);

const isContentParameter = (parameter: string) =>
  parameter !== '' && !isTrackingParameter(parameter) && !macroPattern.test(parameter);

/** Decodes percent-encoded letters in a URL. Returns the original URL if decoding would change its meaning. */
function decodePercentEncodedLetters(encodedUrl: string): string {
  if (encodedUrl.length > maxUrlChars) return encodedUrl;
  try {
    const decodedUrl = sanitizeLine(decodeURI(encodedUrl).replace(/\s/g, '%20'));
    return new URL(decodedUrl).href === encodedUrl ? decodedUrl : encodedUrl;
  } catch {
    return encodedUrl;
  }
}
