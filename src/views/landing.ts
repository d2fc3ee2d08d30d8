import { readCardLink } from './ad-media.ts';
import { getHost, isTrackingParameter, parseDomain, parseUrl } from './urls.ts';
import { isObject, isVisibleText, readObjects, type UntypedFields } from './view.ts';

/**
 * Returns the domain to which an ad leads, without `www.`. If the link of the ad is a known redirect, returns the
 * domain of its target. If the link or the target is missing, returns the domain of the website that the service
 * reports. Uses the displayed URL only if the ad has neither a link nor a website, because advertisers can display any
 * URL.
 */
export function findLandingDomain({ website, offerLink, cards, displayUrl }: UntypedFields): string | undefined {
  const link = [offerLink, readCardLink(readObjects(cards)[0])].find(isVisibleText);
  const linkedDomain = findLinkedDomain(link);
  if (linkedDomain !== undefined && !redirectOnlyHosts.has(linkedDomain)) return linkedDomain;
  const websiteDomain = isObject(website) ? findLinkedDomain(website.siteDomain) : undefined;
  if (websiteDomain !== undefined && !redirectOnlyHosts.has(websiteDomain)) return websiteDomain;
  return linkedDomain ?? (link === undefined ? findLinkedDomain(displayUrl) : undefined) ?? websiteDomain;
}

/** Returns the domain of a URL. If the URL is a known redirect, returns the domain of its target. */
function findLinkedDomain(link: unknown): string | undefined {
  const domain = parseDomain(link);
  return domain !== undefined && getRedirectParameters(domain) ? getHost(resolveRedirects(link)) : domain;
}

/**
 * Parses the link of an ad without sending a request. `landingPage` is a canonical form of the URL: without tracking
 * parameters, with sorted query parameters, and with decoded letters. Ads with the same landing page can then be
 * grouped. `campaignParameters` contains the `utm_` parameters of the link.
 */
export function parseLandingPage({ offerLink, cards }: UntypedFields) {
  const landingUrl = resolveRedirects([offerLink, readCardLink(readObjects(cards)[0])].find(isVisibleText));
  const host = getHost(landingUrl);
  if (landingUrl === undefined || host === undefined) return { landingPage: null, campaignParameters: null };
  const decodedParameters = landingUrl.search.slice(1).replaceAll('+', '%20').split('&').map(decodePercentEncoding);
  const contentParameters = decodedParameters
    .filter((parameter) => parameter !== '' && !isTrackingParameter(parameter))
    .sort();
  const path = decodePercentEncoding(landingUrl.pathname);
  let end = path.length;
  while (path[end - 1] === '/') end--;
  const landingPage = [
    host,
    landingUrl.port && `:${landingUrl.port}`,
    path.slice(0, end),
    contentParameters.length > 0 && `?${contentParameters.join('&')}`,
  ];
  return { landingPage: landingPage.filter(Boolean).join(''), campaignParameters: readUtmParameters(landingUrl) };
}

/**
 * The maximum number of campaign parameters, such as `utm_source`, to read from a link. Without this limit, a malicious
 * link could contain thousands of them.
 */
const maxUtmParameters = 20;
const maxUtmValueChars = 500;

function readUtmParameters({ searchParams }: URL): Record<string, string> | null {
  const campaignParameters = new Map<string, string>();
  for (const [name, value] of searchParams) {
    const [, key] = /^utm_(.{1,50})$/i.exec(name) ?? [];
    if (key === undefined || value === '' || campaignParameters.size === maxUtmParameters) continue;
    if (!campaignParameters.has(key.toLowerCase()))
      campaignParameters.set(key.toLowerCase(), value.slice(0, maxUtmValueChars));
  }
  return campaignParameters.size > 0 ? Object.fromEntries(campaignParameters) : null;
}

/**
 * The maximum number of nested redirects to resolve. Without this limit, a malicious link with thousands of redirects
 * would take a long time.
 */
const maxRedirects = 5;

/** Resolves all known redirects in a link and returns the URL of the final target. */
function resolveRedirects(link: unknown): URL | undefined {
  let url = parseUrl(link);
  for (let depth = 0; url !== undefined && depth < maxRedirects; depth++) {
    const targetUrl = findRedirectTarget(url);
    if (targetUrl === undefined) break;
    url = targetUrl;
  }
  return url;
}

/**
 * Returns the URL to which a redirect URL leads. Returns undefined if the host is not a known redirect host or if the
 * URL contains no target.
 */
function findRedirectTarget(url: URL): URL | undefined {
  const parameterNames = getRedirectParameters(getHost(url) ?? '');
  const parameterValues = parameterNames?.map((name) => url.searchParams.get(name)) ?? [];
  if (parameterNames) parameterValues.push(decodePercentEncoding(url.search.slice(1)));
  return parseUrl(parameterValues.find((value) => value && /^https?:\/\//i.test(value)));
}

/** The hosts of social networks that only redirect visitors and do not have any pages. */
const redirectOnlyHostNames =
  'l.facebook.com lm.facebook.com l.instagram.com l.messenger.com l.threads.net l.threads.com l.wl.co';
const redirectOnlyHosts = new Set(redirectOnlyHostNames.split(' '));

/**
 * Hosts that redirect visitors, each with the query parameters that can contain the target URL. The hosts belong to
 * social networks, click counters of ad platforms, and affiliate networks. Direct subdomains of these hosts redirect in
 * the same way.
 */
const redirectParametersByHost = new Map(
  (
    [
      [redirectOnlyHostNames, 'u'],
      ['google.com', 'q url adurl'],
      ['googleadservices.com googleads.g.doubleclick.net adclick.g.doubleclick.net', 'adurl'],
      ['ad.doubleclick.net clickserve.dartsearch.net', 'ds_dest_url adurl'],
      ['youtube.com', 'q'],
      ['vk.com away.vk.com', 'to'],
      ['t.umblr.com', 'z'],
      ['duckduckgo.com', 'uddg'],
      ['link.zhihu.com', 'target'],
      ['out.reddit.com linkedin.com slack-redir.net steamcommunity.com safelinks.protection.outlook.com', 'url'],
      ['onelink.me app.appsflyer.com', 'af_web_dp af_r'],
      ['app.adjust.com adj.st', 'redirect fallback'],
      ['app.link', '$fallback_url $desktop_url'],
      ['awin1.com', 'ued p'],
      ['click.linksynergy.com', 'murl'],
      ['shareasale.com', 'urllink'],
      ['track.webgains.com', 'wgtarget'],
      ['go.redirectingat.com go.skimresources.com', 'url'],
      ['redirect.viglink.com pxf.io sjv.io', 'u'],
    ] as const
  ).flatMap(([hosts, names]) => hosts.split(' ').map((host) => [host, names.split(' ')] as const)),
);

/**
 * Returns the query parameters in which a redirect host expects the target URL. Returns undefined for a host that is
 * not a known redirect host.
 */
function getRedirectParameters(host: string): readonly string[] | undefined {
  const parentHost = host.slice(host.indexOf('.') + 1);
  return (
    redirectParametersByHost.get(host) ??
    redirectParametersByHost.get(parentHost) ??
    (googleHostPattern.test(host) ? redirectParametersByHost.get('google.com') : undefined)
  );
}

const googleHostPattern = /^google\.(?:com?\.)?[a-z]{2}$/;

/**
 * Decodes percent-encoded characters, except where decoding would change the meaning of the URL. Converts all other
 * codes to upper case, so that equal URLs result in equal texts.
 */
const decodePercentEncoding = (urlPart: string): string =>
  urlPart.replace(/(?:%[\da-f]{2})+/gi, (codes) => {
    try {
      return decodeURIComponent(codes).replace(/[\s\p{C}%/?#&=+;,:@$\\]/gu, encodeURIComponent);
    } catch {
      return codes.toUpperCase();
    }
  });
