import { Resolver } from 'node:dns/promises';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Agent } from 'undici';
import { raceAbort, withDeadline } from '../api/abort.ts';

/** Pictures that this process serves itself: those whose address begins with `address`. */
export interface OwnPictures {
  address: string;
  answer(request: Request): Promise<Response>;
}

type Fetched = { bytes: Uint8Array } | { reason: string };

interface FetchLimits {
  maxBytes: number;
  /** For all requests of one picture together, in milliseconds. */
  fetchMs: number;
  /**
   * The time after which the answer comes that a host does not exist or is not public, in milliseconds after the
   * request. The time is always the same, so that it reveals nothing.
   */
  notPublicMs: number;
}

interface FetchOptions {
  hosts: MediaHosts;
  /** Opened with the first request. */
  agent(): Promise<GuardedAgent>;
  ownPictures: OwnPictures | undefined;
  userAgent: string;
  limits: FetchLimits;
}

const maxRedirects = 3;
const redirects = new Set([301, 302, 303, 307, 308]);

/** The bytes at an address, or why they are not fetched. Rejects only if the signal aborts. */
export async function fetchPicture(address: string, options: FetchOptions, signal: AbortSignal): Promise<Fetched> {
  if (!URL.canParse(address)) return { reason: 'not a web address' };
  const { ownPictures, limits } = options;
  if (ownPictures && address.startsWith(ownPictures.address)) {
    const response = await ownPictures.answer(new Request(address));
    if (response.status !== 200) return { reason: `its host answered ${response.status}` };
    return { bytes: new Uint8Array(await response.arrayBuffer()) };
  }
  const work = (deadline: AbortSignal) => follow(new URL(address), options, deadline);
  return withDeadline({ signals: [signal], ms: limits.fetchMs }, work).catch((error) => {
    signal.throwIfAborted();
    return { reason: reasonOf(error, limits) };
  });
}

/** Each address on the way is checked anew. */
async function follow(start: URL, options: FetchOptions, signal: AbortSignal): Promise<Fetched> {
  let url = start;
  for (let hops = 0; hops <= maxRedirects; hops++) {
    const problem = whyForbidden(url, options.hosts);
    if (problem !== undefined) return { reason: hops === 0 ? problem : `it redirects: ${problem}` };
    const { agent, userAgent, limits } = options;
    const requestHeaders = { accept: 'image/jpeg, image/png, image/webp', 'user-agent': userAgent };
    const answer = await requestPublic(url, { agent: await agent(), headers: requestHeaders, ...limits }, signal);
    const { statusCode, headers, body } = answer;
    if (statusCode === 200) return { bytes: await readBody(answer, limits.maxBytes) };
    body.on('error', () => {}).destroy();
    const location = [headers.location].flat()[0];
    if (!redirects.has(statusCode) || location === undefined) return { reason: `its host answered ${statusCode}` };
    if (!URL.canParse(location, url.href)) return { reason: 'it redirects to no web address' };
    url = new URL(location, url);
  }
  return { reason: `it redirects more than ${maxRedirects} times` };
}

interface GuardedRequest extends Pick<FetchLimits, 'notPublicMs'> {
  agent: GuardedAgent;
  headers: Record<string, string>;
}

/** Asks a host. The answer that it does not exist, or is not public, always takes the same time. */
export async function requestPublic(url: URL, { agent, headers, notPublicMs }: GuardedRequest, signal: AbortSignal) {
  const answerAt = performance.now() + notPublicMs;
  const { origin, pathname, search } = url;
  try {
    return await agent.request({ origin, path: pathname + search, method: 'GET', headers, signal });
  } catch (error) {
    if (error instanceof NotPublic) await delay(answerAt - performance.now(), undefined, { signal });
    throw error;
  }
}

class TooLarge extends Error {}

type HostResponse = Awaited<ReturnType<GuardedAgent['request']>>;

/** @throws TooLarge */
export async function readBody({ body, headers }: HostResponse, maxBytes: number): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  try {
    if (Number(headers['content-length']) > maxBytes) throw new TooLarge();
    // Leaving the loop early ends the connection.
    for await (const part of body as AsyncIterable<Uint8Array>) {
      bytes += part.length;
      if (bytes > maxBytes) throw new TooLarge();
      parts.push(part);
    }
  } finally {
    body.on('error', () => {}).destroy();
  }
  return Buffer.concat(parts);
}

function reasonOf(error: unknown, { maxBytes, fetchMs }: FetchLimits): string {
  if (error instanceof NotPublic) return 'its host does not exist, or is not public';
  if (error instanceof TooLarge) return `it is larger than ${maxBytes / 1_000_000} MB`;
  const { name, code = '' } = error as { name?: string; code?: string };
  if (name === 'TimeoutError') return `it did not come within ${fetchMs / 1000} s`;
  if (code.includes('CERT') || code.startsWith('ERR_TLS')) return "its host's certificate is not valid";
  return 'its host could not be reached, or broke off';
}

export type GuardedAgent = Agent;

/**
 * The error for a host that does not exist, and for a host whose address is not public. Nobody may learn which of the
 * two holds.
 */
class NotPublic extends Error {
  override readonly name = 'NotPublic';
}

interface GuardOptions {
  hosts: MediaHosts;
  resolve: Resolve;
  /** How long a name may take to be found, in milliseconds. */
  resolveMs: number;
}

/**
 * An agent whose connections lead to public addresses only, unless the rule lists the host by name: the address of the
 * connection counts, whatever the name resolved to before.
 */
export async function openGuardedAgent({ hosts, ...options }: GuardOptions): Promise<GuardedAgent> {
  // It is CommonJS: only the default export exists both bundled and unbundled.
  const { Agent, buildConnector } = (await import('undici')).default;
  const toListed = buildConnector({});
  const toPublic = buildConnector({ lookup: publicLookup(options) });
  return new Agent({
    connect: (target, callback) => {
      const host = bare(target.hostname);
      if (isListed(hosts, { host, port: portOf(target) })) return toListed(target, callback);
      // Nothing is looked up for an address.
      if (isIP(host) !== 0 && isInside(host)) return callback(new NotPublic(), null);
      toPublic(target, callback);
    },
    // The caller limits the time, because undici's timers are coarse.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

/** Fails with `NotPublic` if any address of a name is not public. */
const publicLookup =
  ({ resolve, resolveMs }: Omit<GuardOptions, 'hosts'>): LookupFunction =>
  (host, { all }, callback) => {
    const answer = async () => {
      const addresses = await withDeadline({ signals: [], ms: resolveMs }, (signal) =>
        raceAbort(resolve(host, signal), signal),
      ).catch((): string[] => []);
      const [first] = addresses;
      if (first === undefined || addresses.some(isInside)) callback(new NotPublic(), '');
      else if (all)
        callback(
          null,
          addresses.map((address) => ({ address, family: isIP(address) })),
        );
      else callback(null, first, isIP(first));
    };
    void answer();
  };

/** Where pictures may be fetched from. */
export interface MediaHosts {
  /** Every public host, over https. */
  public: boolean;
  /** Hosts that may also lie inside a network or use http; without a port, on every port. */
  listed: readonly { host: string; port?: number }[];
}

/** Whether the rule itself names the host, so that the host may lie inside a network. */
const isListed = ({ listed }: MediaHosts, { host, port }: { host: string; port: number }): boolean =>
  listed.some((entry) => bare(entry.host) === bare(host) && (entry.port ?? port) === port);

/** Undefined where the rule allows a request, as far as the address itself tells. */
function whyForbidden(url: URL, hosts: MediaHosts): string | undefined {
  const { protocol, hostname, username, password } = url;
  if (protocol !== 'https:' && protocol !== 'http:') return 'not a web address';
  if (username || password) return 'its address holds a user name';
  if (isListed(hosts, { host: hostname, port: portOf(url) })) return undefined;
  if (!hosts.public) return 'its host is not in AD_LIBRARY_MEDIA_HOSTS';
  if (protocol !== 'https:') return 'its address is not https';
  return portOf(url) === 443 ? undefined : 'its port is not 443';
}

const portOf = ({ port, protocol }: Pick<URL, 'port' | 'protocol'>): number =>
  Number(port || (protocol === 'https:' ? 443 : 80));

/** An IPv6 address without its brackets. */
const bare = (host: string): string => host.replace(/^\[(.*)\]$/, '$1');

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

/** The public IPv6 addresses: all others are local, private, multicast or unassigned. */
const public6 = new BlockList();
public6.addSubnet('2000::', 3, 'ipv6');
public6.addSubnet('::ffff:0.0.0.0', 96, 'ipv6');
public6.addSubnet('64:ff9b::', 96, 'ipv6');

/** Whether an address is anything but that of a public host. */
export function isInside(address: string): boolean {
  const family = isIP(address);
  // An address with a zone (`fe80::1%eth0`) belongs to a link.
  if (family === 0 || address.includes('%')) return true;
  if (family === 4) return inside.check(address, 'ipv4');
  return !public6.check(address, 'ipv6') || inside.check(address, 'ipv6');
}

/** The addresses of a host name; none if it has none. */
export type Resolve = (host: string, signal: AbortSignal) => Promise<readonly string[]>;

/**
 * Asks the DNS alone, because names from outside have no business in the hosts file. Unlike `dns.lookup`, a query can be
 * cancelled and takes no thread, so slow servers of names delay nothing else in this process.
 */
export const resolveInDns: Resolve = async (host, signal) => {
  signal.throwIfAborted();
  const resolver = new Resolver({ timeout: 1000, tries: 2 });
  signal.addEventListener('abort', () => resolver.cancel(), { once: true });
  const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
  return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
};

export type PictureFormat = 'jpeg' | 'png' | 'webp';

/** The facts in the first bytes of a picture, read without decoding. */
type PictureHeader = { format: PictureFormat; width: number; height: number } | { reason: string };

const maxPixels = 16_000_000;
const maxSide = 20_000;

/** Checks that the bytes are a whole picture of a kind and a size that may be decoded. */
export function readHeader(bytes: Uint8Array): PictureHeader {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const format = formatOf(view);
  if (format === undefined) return { reason: otherKind(view) };
  const found = readers[format](view) ?? 'damaged';
  if (found === 'animated') return { reason: 'an animated WebP, which is not shown' };
  if (typeof found === 'string') return { reason: `the ${names[format]} is ${found}` };
  const { width, height } = found;
  if (width === 0 || height === 0) return { reason: `the ${names[format]} is damaged` };
  const isTooLarge = width > maxSide || height > maxSide || width * height > maxPixels;
  return isTooLarge ? { reason: `it has ${width} x ${height} pixels, which is too many` } : { format, width, height };
}

const names: Record<PictureFormat, string> = { jpeg: 'JPEG', png: 'PNG', webp: 'WebP' };

function formatOf(bytes: Buffer): PictureFormat | undefined {
  if (bytes.subarray(0, 3).toString('hex') === 'ffd8ff') return 'jpeg';
  if (bytes.subarray(0, 8).toString('hex') === '89504e470d0a1a0a') return 'png';
  return asciiAt(bytes, 0) === 'RIFF' && asciiAt(bytes, 8) === 'WEBP' ? 'webp' : undefined;
}

const asciiAt = (bytes: Buffer, at: number) => bytes.toString('latin1', at, at + 4);

/** Pictures of other kinds, and what hosts send instead of pictures. */
function otherKind(bytes: Buffer): string {
  if (bytes.length === 0) return 'its host sent nothing';
  const start = bytes.toString('latin1', 0, 512).trimStart().toLowerCase();
  const brand = asciiAt(bytes, 4) === 'ftyp' ? asciiAt(bytes, 8) : '';
  if (start.startsWith('gif8')) return 'a GIF, which is not shown';
  if (brand === 'avif' || brand === 'avis') return 'an AVIF, which is not shown';
  if (brand === 'heic' || brand === 'heix' || brand === 'mif1') return 'a HEIC picture, which is not shown';
  if (brand !== '') return 'a video, not a picture';
  if (start.includes('<svg')) return 'an SVG, which is not shown';
  return start.startsWith('<') ? 'a web page, not a picture' : 'not a picture';
}

type Reading = { width: number; height: number } | 'cut off' | 'animated' | undefined;

const readers: Record<PictureFormat, (bytes: Buffer) => Reading> = { jpeg: readJpeg, png: readPng, webp: readWebp };

/** Reads a JPEG from segment to segment to its end. Libraries would fill missing parts with grey. */
function readJpeg(bytes: Buffer): Reading {
  let size: Reading;
  let at = 2;
  while (at + 4 <= bytes.length) {
    if (bytes[at] !== 0xff) {
      // Picture data after the head of a scan: on to the next marker.
      at = bytes.indexOf(0xff, at);
      if (at < 0) return 'cut off';
      continue;
    }
    const marker = bytes[at + 1] ?? 0;
    if (marker === 0xd9) return size;
    const hasLength = marker !== 0 && marker !== 0xff && marker !== 0x01 && !(marker >= 0xd0 && marker <= 0xd8);
    if (isFrame(marker) && at + 9 <= bytes.length) {
      // A second frame could be larger than the one that was checked.
      if (size !== undefined) return undefined;
      size = { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) };
    }
    at += !hasLength ? (marker === 0xff ? 1 : 2) : 2 + bytes.readUInt16BE(at + 2);
  }
  return at + 2 <= bytes.length && bytes.readUInt16BE(at) === 0xffd9 ? size : 'cut off';
}

/** SOF markers, without those for tables and extensions among them. */
const isFrame = (marker: number) =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;

/** Reads a PNG from chunk to chunk to its end. */
function readPng(bytes: Buffer): Reading {
  if (bytes.length < 24) return 'cut off';
  if (asciiAt(bytes, 12) !== 'IHDR') return undefined;
  const size = { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
  for (let at = 8; at + 12 <= bytes.length; at += 12 + bytes.readUInt32BE(at))
    if (asciiAt(bytes, at + 4) === 'IEND') return size;
  return 'cut off';
}

function readWebp(bytes: Buffer): Reading {
  if (bytes.length < 30 || bytes.length < 8 + bytes.readUInt32LE(4)) return 'cut off';
  const kind = asciiAt(bytes, 12);
  if (kind === 'VP8X') {
    if (((bytes[20] ?? 0) & 2) !== 0) return 'animated';
    return { width: 1 + bytes.readUIntLE(24, 3), height: 1 + bytes.readUIntLE(27, 3) };
  }
  if (kind === 'VP8L') {
    const bits = bytes.readUInt32LE(21);
    return { width: 1 + (bits & 0x3fff), height: 1 + ((bits >>> 14) & 0x3fff) };
  }
  if (kind !== 'VP8 ') return undefined;
  return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
}
