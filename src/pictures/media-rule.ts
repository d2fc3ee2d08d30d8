/** Where pictures may be fetched from. */
export interface MediaHosts {
  /** Every public host, over https. */
  public: boolean;
  /** Hosts that may also lie inside a network or use http; without a port, on every port. */
  listed: readonly { host: string; port?: number }[];
}

/** Whether a host is named by the rule itself, so that it may lie inside. */
export const isListed = ({ listed }: MediaHosts, { host, port }: { host: string; port: number }): boolean =>
  listed.some((entry) => bare(entry.host) === bare(host) && (entry.port ?? port) === port);

/** Why the rule allows no request to an address; undefined if it does, as far as the address itself tells. */
export function whyForbidden(url: URL, hosts: MediaHosts): string | undefined {
  const { protocol, hostname, username, password } = url;
  if (protocol !== 'https:' && protocol !== 'http:') return 'not a web address';
  if (username || password) return 'its address holds a user name';
  if (isListed(hosts, { host: hostname, port: portOf(url) })) return undefined;
  if (!hosts.public) return 'its host is not in AD_LIBRARY_MEDIA_HOSTS';
  if (protocol !== 'https:') return 'its address is not https';
  return portOf(url) === 443 ? undefined : 'its port is not 443';
}

const portOf = ({ port, protocol }: URL): number => Number(port || (protocol === 'https:' ? 443 : 80));

/** An IPv6 address without its brackets. */
export const bare = (host: string): string => host.replace(/^\[(.*)\]$/, '$1');
