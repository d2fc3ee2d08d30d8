import { BlockList, isIP } from 'node:net';
import { getConnInfo } from '@hono/node-server/conninfo';
import type { Context } from 'hono';

interface Network {
  address: string;
  prefix: number;
  family: 'ipv4' | 'ipv6';
}

/** Returns the IP address that a request is counted for. For IPv6, it is the network (/64). */
export type AddressOf = ReturnType<typeof createAddressOf>;

/**
 * Creates a function that returns the address that a connection is counted for. The function returns undefined for
 * connections of the trusted proxy, which carry requests of many callers.
 */
export function createPeerOf(proxy: Network | undefined): (remote: string | undefined) => string | undefined {
  const proxies = new BlockList();
  if (proxy) proxies.addSubnet(proxy.address, proxy.prefix, proxy.family);
  return (remote) => {
    const address = plainAddress(remote);
    const isProxy = address !== '' && proxies.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6');
    return isProxy ? undefined : networkOf(address);
  };
}

/** @param proxy the trusted proxy: the last entry of its `X-Forwarded-For` header is the address of the caller */
export function createAddressOf(proxy: Network | undefined) {
  const peerOf = createPeerOf(proxy);
  return (context: Context): string => {
    const { address } = getConnInfo(context).remote;
    const forwarded = context.req.header('x-forwarded-for')?.split(',').at(-1);
    return peerOf(address) ?? networkOf(plainAddress(forwarded) || plainAddress(address));
  };
}

/** Returns the first four groups of an IPv6 address: one subscriber has 2^64 addresses, which share these groups. */
function networkOf(address: string): string {
  if (isIP(address) !== 6) return address;
  // The URL parser normalizes the address: zeros are left out once, and IPv4 is written in hexadecimal.
  const { hostname } = new URL(`http://[${address.replace(/%.*/, '')}]`);
  const [head = [], tail = []] = hostname
    .slice(1, -1)
    .split('::')
    .map((side) => side.split(':'));
  const zeros = hostname.includes('::') ? Array(8 - head.length - tail.length).fill('0') : [];
  return [...head.map((group) => group || '0'), ...zeros, ...tail].slice(0, 4).join(':');
}

/**
 * Returns an IP address without port, brackets, and the prefix of an IPv4 address that is mapped to IPv6. Returns an
 * empty text if the text is no IP address.
 */
function plainAddress(text = ''): string {
  const trimmed = text.trim().replace(/^\[(.*)\](?::\d+)?$|^([\d.]+):\d+$/, '$1$2');
  const address = trimmed.replace(/^::ffff:(?=[\d.]+$)/i, '');
  return isIP(address) === 0 ? '' : address;
}
