import { BlockList, isIP } from 'node:net';

/** IPv4 addresses that are not public hosts (RFC 6890 and the IANA registry of special-purpose addresses). */
const reserved: readonly (readonly [network: string, prefix: number])[] = [
  ['0.0.0.0', 8], // this network, and unspecified
  ['10.0.0.0', 8], // private
  ['100.64.0.0', 10], // behind a carrier
  ['127.0.0.0', 8], // loopback
  ['169.254.0.0', 16], // link-local, where clouds serve credentials
  ['172.16.0.0', 12], // private
  ['192.0.0.0', 24], // protocols
  ['192.0.2.0', 24], // documentation
  ['192.88.99.0', 24], // 6to4 relays
  ['192.168.0.0', 16], // private
  ['198.18.0.0', 15], // benchmarks
  ['198.51.100.0', 24], // documentation
  ['203.0.113.0', 24], // documentation
  ['224.0.0.0', 4], // multicast
  ['240.0.0.0', 4], // reserved, and broadcast
];

const inside = new BlockList();
for (const [network, prefix] of reserved) {
  inside.addSubnet(network, prefix, 'ipv4');
  // The same inside an IPv6 address: mapped, and behind NAT64.
  for (const start of ['::ffff:', '64:ff9b::']) inside.addSubnet(`${start}${network}`, 96 + prefix, 'ipv6');
}
inside.addSubnet('2001::', 23, 'ipv6'); // protocols, Teredo among them
inside.addSubnet('2001:db8::', 32, 'ipv6'); // documentation
inside.addSubnet('2002::', 16, 'ipv6'); // 6to4, which holds an IPv4 address
inside.addSubnet('3fff::', 20, 'ipv6'); // documentation

/** All other IPv6 addresses are local, private, multicast or not given out. */
const public6 = new BlockList();
public6.addSubnet('2000::', 3, 'ipv6');
public6.addSubnet('::ffff:0.0.0.0', 96, 'ipv6');
public6.addSubnet('64:ff9b::', 96, 'ipv6');

/** Whether an address is anything but that of a public host. */
export function isInside(address: string): boolean {
  const family = isIP(address);
  // One with a zone (`fe80::1%eth0`) belongs to a link.
  if (family === 0 || address.includes('%')) return true;
  if (family === 4) return inside.check(address, 'ipv4');
  return !public6.check(address, 'ipv6') || inside.check(address, 'ipv6');
}
