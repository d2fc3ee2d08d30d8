import { readCardLink } from './ad-media.ts';
import { getHost, isTrackingParameter, parseDomain, parseUrl } from './urls.ts';
import { type Fields, isObject, isVisible, readObjects } from './view.ts';

/**
 * Returns the host that an ad leads to, without `www.`: the host of its link behind known wrappers, else the website
 * that the service states. The website also replaces a link shim whose text holds no address. The address that an ad
 * displays counts only if the ad has no link and no website, because the advertiser chooses it freely.
 */
export function findLandingDomain({ website, offerLink, cards, displayUrl }: Fields): string | undefined {
  const link = [offerLink, readCardLink(readObjects(cards)[0])].find(isVisible);
  const linked = linkedDomain(link);
  if (linked !== undefined && !linkShims.has(linked)) return linked;
  const site = isObject(website) ? linkedDomain(website.siteDomain) : undefined;
  if (site !== undefined && !linkShims.has(site)) return site;
  return linked ?? (link === undefined ? linkedDomain(displayUrl) : undefined) ?? site;
}

/** Returns the host of an address; for an address inside known wrappers, the host that the wrappers lead to. */
function linkedDomain(link: unknown): string | undefined {
  const domain = parseDomain(link);
  return domain !== undefined && wrapperParameters(domain) ? getHost(targetOf(link)) : domain;
}

/**
 * The page of an ad in one spelling, so that ads with the same page can be grouped: without tracking parameters, with
 * the others sorted, and with readable letters in place of percent codes. Nothing is fetched.
 */
export function parseLanding({ offerLink, cards }: Fields) {
  const url = targetOf([offerLink, readCardLink(readObjects(cards)[0])].find(isVisible));
  const host = getHost(url);
  if (url === undefined || host === undefined) return { page: null, utm: null };
  const query = url.search.slice(1).replaceAll('+', '%20').split('&').map(decode);
  const kept = query.filter((parameter) => parameter !== '' && !isTrackingParameter(parameter)).sort();
  const path = decode(url.pathname);
  let end = path.length;
  while (path[end - 1] === '/') end--;
  const page = [host, url.port && `:${url.port}`, path.slice(0, end), kept.length > 0 && `?${kept.join('&')}`];
  return { page: page.filter(Boolean).join(''), utm: utmOf(url) };
}

const maxUtm = 20;
const maxUtmValue = 500;

function utmOf({ searchParams }: URL): Record<string, string> | null {
  const found = new Map<string, string>();
  for (const [name, value] of searchParams) {
    const [, key] = /^utm_(.{1,50})$/i.exec(name) ?? [];
    if (key === undefined || value === '' || found.size === maxUtm) continue;
    if (!found.has(key.toLowerCase())) found.set(key.toLowerCase(), value.slice(0, maxUtmValue));
  }
  return found.size > 0 ? Object.fromEntries(found) : null;
}

/** How many wrappers are unwrapped, because the address in a wrapper may be another wrapper. */
const maxWrappers = 5;

function targetOf(link: unknown): URL | undefined {
  let url = parseUrl(link);
  for (let depth = 0; url !== undefined && depth < maxWrappers; depth++) {
    const inner = innerAddress(url);
    if (inner === undefined) break;
    url = inner;
  }
  return url;
}

function innerAddress(url: URL): URL | undefined {
  const names = wrapperParameters(getHost(url) ?? '');
  const values = names?.map((name) => url.searchParams.get(name)) ?? [];
  if (names) values.push(decode(url.search.slice(1)));
  return parseUrl(values.find((value) => value && /^https?:\/\//i.test(value)));
}

/** Hosts of social networks that only redirect visitors, and have no pages of their own. */
const shimHosts = 'l.facebook.com lm.facebook.com l.instagram.com l.messenger.com l.threads.net l.threads.com l.wl.co';
const linkShims = new Set(shimHosts.split(' '));

/**
 * Hosts that redirect a visitor, with the parameters that hold the target address: link shims of social networks,
 * click counters of advertising systems, affiliate networks. A subdomain with one more label counts as well.
 */
const wrappers = new Map(
  (
    [
      [shimHosts, 'u'],
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

function wrapperParameters(host: string): readonly string[] | undefined {
  const parent = host.slice(host.indexOf('.') + 1);
  return wrappers.get(host) ?? wrappers.get(parent) ?? (googles.test(host) ? wrappers.get('google.com') : undefined);
}

const googles = /^google\.(?:com?\.)?[a-z]{2}$/;

/** Percent codes as letters where it stays the same address, and the others in capitals. */
const decode = (text: string): string =>
  text.replace(/(?:%[\da-f]{2})+/gi, (codes) => {
    try {
      return decodeURIComponent(codes).replace(/[\s\p{C}%/?#&=+;,:@$\\]/gu, encodeURIComponent);
    } catch {
      return codes.toUpperCase();
    }
  });
