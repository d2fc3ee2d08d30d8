import { BlockList, isIP } from 'node:net';
import { getConnInfo } from '@hono/node-server/conninfo';
import type { Context } from 'hono';

/** A network of IP addresses. A network with the full prefix is a single address. */
interface Network {
  address: string;
  /** The number of leading bits that all addresses of the network share. */
  prefix: number;
  family: 'ipv4' | 'ipv6';
}

/** Returns the IP address that a request counts for. For IPv6, this is the network of the subscriber (/64). */
export type GetClientAddress = ReturnType<typeof createGetClientAddress>;

/**
 * Creates a function that returns the IP address that a connection counts for. The function returns undefined for
 * connections from the trusted proxy, because these connections carry the requests of many callers.
 */
export function createGetPeerAddress(proxy: Network | undefined): (remote: string | undefined) => string | undefined {
  const trustedProxies = new BlockList();
  if (proxy) trustedProxies.addSubnet(proxy.address, proxy.prefix, proxy.family);
  return (remote) => {
    const address = parseAddress(remote);
    const isProxy = address !== '' && trustedProxies.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6');
    return isProxy ? undefined : getSubscriberNetwork(address);
  };
}

/**
 * Creates a function that returns the IP address that a request counts for.
 * @param proxy the trusted proxy. The last entry of its `X-Forwarded-For` header is the address of the caller
 */
export function createGetClientAddress(proxy: Network | undefined) {
  const getPeerAddress = createGetPeerAddress(proxy);
  return (context: Context): string => {
    const { address } = getConnInfo(context).remote;
    const forwardedAddress = context.req.header('x-forwarded-for')?.split(',').at(-1);
    return getPeerAddress(address) ?? getSubscriberNetwork(parseAddress(forwardedAddress) || parseAddress(address));
  };
}

/**
 * Returns the network of a subscriber: the first four groups of an IPv6 address, or a whole IPv4 address. An IPv6
 * subscriber usually has 2^64 addresses, which share these four groups.
 */
function getSubscriberNetwork(address: string): string {
  if (isIP(address) !== 6) return address;
  // The URL parser normalizes the address: it shortens the longest run of zeros to `::` and writes IPv4 in hexadecimal.
  const { hostname } = new URL(`http://[${address.replace(/%.*/, '')}]`);
  const [head = [], tail = []] = hostname
    .slice(1, -1)
    .split('::')
    .map((side) => side.split(':'));
  const zeros = hostname.includes('::') ? Array(8 - head.length - tail.length).fill('0') : [];
  return [...head.map((group) => group || '0'), ...zeros, ...tail].slice(0, 4).join(':');
}

/**
 * Returns an IP address without port and brackets, and without the prefix of an IPv4-mapped IPv6 address. Returns an
 * empty string if the text is not an IP address.
 */
function parseAddress(text = ''): string {
  const trimmed = text.trim().replace(/^\[(.*)\](?::\d+)?$|^([\d.]+):\d+$/, '$1$2');
  const address = trimmed.replace(/^::ffff:(?=[\d.]+$)/i, '');
  return isIP(address) === 0 ? '' : address;
}
