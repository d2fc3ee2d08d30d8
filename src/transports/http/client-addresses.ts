import { BlockList, isIP } from 'node:net';
import { getConnInfo } from '@hono/node-server/conninfo';
import type { Context } from 'hono';

/**
 * A range of IP addresses, e.g. `10.0.0.0/8`. If `prefixLength` is the full length of an address, the range contains
 * only this address.
 */
interface IpAddressRange {
  address: string;
  /** The number of leading bits that all addresses in the range share. */
  prefixLength: number;
  family: 'ipv4' | 'ipv6';
}

/** Returns the IP address to which limits per client apply. For IPv6, returns the /64 network of the subscriber. */
export type GetClientAddress = ReturnType<typeof createClientAddressGetter>;

/**
 * Creates a function that returns the IP address to which the connection limit applies. For the trusted proxy, the
 * function returns undefined, because the proxy's connections carry the requests of many clients.
 */
export function createPeerAddressGetter(
  trustedProxy: IpAddressRange | undefined,
): (remoteAddress: string | undefined) => string | undefined {
  const isTrustedProxy = trustedProxy ? createRangeMatcher(trustedProxy) : () => false;
  return (remoteAddress) => {
    const address = parseAddress(remoteAddress);
    const isProxy = address !== '' && isTrustedProxy(address);
    return isProxy ? undefined : getSubscriberNetwork(address);
  };
}

/** Creates a function that returns true for the IP addresses in a range. */
function createRangeMatcher({ address, prefixLength, family }: IpAddressRange): (ipAddress: string) => boolean {
  const blockList = new BlockList();
  blockList.addSubnet(address, prefixLength, family);
  return (ipAddress) => blockList.check(ipAddress, isIP(ipAddress) === 4 ? 'ipv4' : 'ipv6');
}

/**
 * Creates a function that returns the IP address to which limits apply for a request.
 * @param trustedProxy the proxy that may set `X-Forwarded-For`. The last entry of this header is the address of the
 * client.
 */
export function createClientAddressGetter(trustedProxy: IpAddressRange | undefined) {
  const getPeerAddress = createPeerAddressGetter(trustedProxy);
  return (context: Context): string => {
    const { address } = getConnInfo(context).remote;
    const forwardedAddress = context.req.header('x-forwarded-for')?.split(',').at(-1);
    return getPeerAddress(address) ?? getSubscriberNetwork(parseAddress(forwardedAddress) || parseAddress(address));
  };
}

/**
 * Returns an IPv4 address unchanged, and the first four groups (64 bits) of an IPv6 address. An IPv6 subscriber usually
 * controls a whole /64 network, which has 2^64 addresses.
 */
function getSubscriberNetwork(ipAddress: string): string {
  if (isIP(ipAddress) !== 6) return ipAddress;
  // The URL parser normalizes the address: it shortens the longest run of zeros to `::` and writes an embedded IPv4
  // address in hexadecimal.
  const { hostname } = new URL(`http://[${ipAddress.replace(/%.*/, '')}]`);
  const [firstGroups = [], lastGroups = []] = hostname
    .slice(1, -1)
    .split('::')
    .map((side) => side.split(':'));
  const zeroGroups = hostname.includes('::') ? Array(8 - firstGroups.length - lastGroups.length).fill('0') : [];
  return [...firstGroups.map((group) => group || '0'), ...zeroGroups, ...lastGroups].slice(0, 4).join(':');
}

/**
 * Parses an IP address. Removes a port, square brackets, and the prefix `::ffff:` of an IPv4 address in IPv6 notation.
 * Returns an empty string if the text is not an IP address.
 */
function parseAddress(addressText = ''): string {
  const textWithoutPort = addressText.trim().replace(/^\[(.*)\](?::\d+)?$|^([\d.]+):\d+$/, '$1$2');
  const address = textWithoutPort.replace(/^::ffff:(?=[\d.]+$)/i, '');
  return isIP(address) === 0 ? '' : address;
}
