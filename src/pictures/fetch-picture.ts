import { Resolver } from 'node:dns/promises';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Agent } from 'undici';
import { raceAbort, withDeadline } from '../api/abort.ts';

/** Pictures that this process serves itself: those whose address begins with `address`. */
export interface ServedPictures {
  urlPrefix: string;
  answer(request: Request): Promise<Response>;
}

type FetchResult = { bytes: Uint8Array } | { reason: string };

interface FetchLimits {
  maxBytes: number;
  /** For all requests of one picture together, in milliseconds. */
  fetchMs: number;
  /**
   * The time after which the answer comes that a host does not exist or is not public, in milliseconds after the
   * request. The time is always the same, so that it reveals nothing.
   */
  nonPublicAnswerMs: number;
}

interface FetchOptions {
  hosts: MediaHosts;
  /** Opened with the first request. */
  agent(): Promise<GuardedAgent>;
  servedPictures: ServedPictures | undefined;
  userAgent: string;
  limits: FetchLimits;
}

const maxRedirects = 3;
const redirectStatuses = new Set([301, 302, 303, 307, 308]);

/** The bytes at an address, or why they are not fetched. Rejects only if the signal aborts. */
export async function fetchPicture(address: string, options: FetchOptions, signal: AbortSignal): Promise<FetchResult> {
  if (!URL.canParse(address)) return { reason: 'not a web address' };
  const { servedPictures, limits } = options;
  if (servedPictures && address.startsWith(servedPictures.urlPrefix)) {
    const response = await servedPictures.answer(new Request(address));
    if (response.status !== 200) return { reason: `its host answered ${response.status}` };
    return { bytes: new Uint8Array(await response.arrayBuffer()) };
  }
  const work = (deadline: AbortSignal) => fetchWithRedirects(new URL(address), options, deadline);
  return withDeadline({ signals: [signal], ms: limits.fetchMs }, work).catch((error) => {
    signal.throwIfAborted();
    return { reason: explainFetchError(error, limits) };
  });
}

/** Each address on the way is checked anew. */
async function fetchWithRedirects(start: URL, options: FetchOptions, signal: AbortSignal): Promise<FetchResult> {
  let url = start;
  for (let hops = 0; hops <= maxRedirects; hops++) {
    const problem = explainForbidden(url, options.hosts);
    if (problem !== undefined) return { reason: hops === 0 ? problem : `it redirects: ${problem}` };
    const { agent, userAgent, limits } = options;
    const requestHeaders = { accept: 'image/jpeg, image/png, image/webp', 'user-agent': userAgent };
    const answer = await requestWithUniformDelay(
      url,
      { agent: await agent(), headers: requestHeaders, ...limits },
      signal,
    );
    const { statusCode, headers, body } = answer;
    if (statusCode === 200) return { bytes: await readBody(answer, limits.maxBytes) };
    body.on('error', () => {}).destroy();
    const location = [headers.location].flat()[0];
    if (!redirectStatuses.has(statusCode) || location === undefined)
      return { reason: `its host answered ${statusCode}` };
    if (!URL.canParse(location, url.href)) return { reason: 'it redirects to no web address' };
    url = new URL(location, url);
  }
  return { reason: `it redirects more than ${maxRedirects} times` };
}

interface GuardedRequest extends Pick<FetchLimits, 'nonPublicAnswerMs'> {
  agent: GuardedAgent;
  headers: Record<string, string>;
}

/** Asks a host. The answer that it does not exist, or is not public, always takes the same time. */
export async function requestWithUniformDelay(
  url: URL,
  { agent, headers, nonPublicAnswerMs }: GuardedRequest,
  signal: AbortSignal,
) {
  const answerAt = performance.now() + nonPublicAnswerMs;
  const { origin, pathname, search } = url;
  try {
    return await agent.request({ origin, path: pathname + search, method: 'GET', headers, signal });
  } catch (error) {
    if (error instanceof NonPublicHostError) await delay(answerAt - performance.now(), undefined, { signal });
    throw error;
  }
}

class PictureTooLargeError extends Error {}

type PictureResponse = Awaited<ReturnType<GuardedAgent['request']>>;

/** @throws TooLarge */
export async function readBody({ body, headers }: PictureResponse, maxBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    if (Number(headers['content-length']) > maxBytes) throw new PictureTooLargeError();
    // Leaving the loop early ends the connection.
    for await (const chunk of body as AsyncIterable<Uint8Array>) {
      bytes += chunk.length;
      if (bytes > maxBytes) throw new PictureTooLargeError();
      chunks.push(chunk);
    }
  } finally {
    body.on('error', () => {}).destroy();
  }
  return Buffer.concat(chunks);
}

function explainFetchError(error: unknown, { maxBytes, fetchMs }: FetchLimits): string {
  if (error instanceof NonPublicHostError) return 'its host does not exist, or is not public';
  if (error instanceof PictureTooLargeError) return `it is larger than ${maxBytes / 1_000_000} MB`;
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
class NonPublicHostError extends Error {
  override readonly name = 'NonPublicHostError';
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
  const connectListed = buildConnector({});
  const connectPublic = buildConnector({ lookup: createPublicLookup(options) });
  return new Agent({
    connect: (target, callback) => {
      const host = removeBrackets(target.hostname);
      if (isListedHost(hosts, { host, port: getPort(target) })) return connectListed(target, callback);
      // Nothing is looked up for an address.
      if (isIP(host) !== 0 && isPrivateAddress(host)) return callback(new NonPublicHostError(), null);
      connectPublic(target, callback);
    },
    // The caller limits the time, because undici's timers are coarse.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

/** Fails with `NotPublic` if any address of a name is not public. */
const createPublicLookup =
  ({ resolve, resolveMs }: Omit<GuardOptions, 'hosts'>): LookupFunction =>
  (host, { all }, callback) => {
    const answer = async () => {
      const addresses = await withDeadline({ signals: [], ms: resolveMs }, (signal) =>
        raceAbort(resolve(host, signal), signal),
      ).catch((): string[] => []);
      const [first] = addresses;
      if (first === undefined || addresses.some(isPrivateAddress)) callback(new NonPublicHostError(), '');
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
const isListedHost = ({ listed }: MediaHosts, { host, port }: { host: string; port: number }): boolean =>
  listed.some((entry) => removeBrackets(entry.host) === removeBrackets(host) && (entry.port ?? port) === port);

/** Undefined where the rule allows a request, as far as the address itself tells. */
function explainForbidden(url: URL, hosts: MediaHosts): string | undefined {
  const { protocol, hostname, username, password } = url;
  if (protocol !== 'https:' && protocol !== 'http:') return 'not a web address';
  if (username || password) return 'its address holds a user name';
  if (isListedHost(hosts, { host: hostname, port: getPort(url) })) return undefined;
  if (!hosts.public) return 'its host is not in AD_LIBRARY_MEDIA_HOSTS';
  if (protocol !== 'https:') return 'its address is not https';
  return getPort(url) === 443 ? undefined : 'its port is not 443';
}

const getPort = ({ port, protocol }: Pick<URL, 'port' | 'protocol'>): number =>
  Number(port || (protocol === 'https:' ? 443 : 80));

/** An IPv6 address without its brackets. */
const removeBrackets = (host: string): string => host.replace(/^\[(.*)\]$/, '$1');

/** IPv4 addresses that are not public hosts (RFC 6890 and the IANA registry of special-purpose addresses). */
const reservedNetworks: readonly (readonly [network: string, prefix: number])[] = [
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

const reservedAddresses = new BlockList();
for (const [network, prefix] of reservedNetworks) {
  reservedAddresses.addSubnet(network, prefix, 'ipv4');
  // The same inside an IPv6 address: mapped, and behind NAT64.
  for (const start of ['::ffff:', '64:ff9b::']) reservedAddresses.addSubnet(`${start}${network}`, 96 + prefix, 'ipv6');
}
reservedAddresses.addSubnet('2001::', 23, 'ipv6'); // protocols, Teredo among them
reservedAddresses.addSubnet('2001:db8::', 32, 'ipv6'); // documentation
reservedAddresses.addSubnet('2002::', 16, 'ipv6'); // 6to4, which holds an IPv4 address
reservedAddresses.addSubnet('3fff::', 20, 'ipv6'); // documentation

/** The public IPv6 addresses: all others are local, private, multicast or unassigned. */
const publicIpv6Addresses = new BlockList();
publicIpv6Addresses.addSubnet('2000::', 3, 'ipv6');
publicIpv6Addresses.addSubnet('::ffff:0.0.0.0', 96, 'ipv6');
publicIpv6Addresses.addSubnet('64:ff9b::', 96, 'ipv6');

/** Whether an address is anything but that of a public host. */
export function isPrivateAddress(address: string): boolean {
  const family = isIP(address);
  // An address with a zone (`fe80::1%eth0`) belongs to a link.
  if (family === 0 || address.includes('%')) return true;
  if (family === 4) return reservedAddresses.check(address, 'ipv4');
  return !publicIpv6Addresses.check(address, 'ipv6') || reservedAddresses.check(address, 'ipv6');
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
export function readPictureHeader(bytes: Uint8Array): PictureHeader {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const format = detectFormat(view);
  if (format === undefined) return { reason: explainUnsupportedKind(view) };
  const reading = headerReaders[format](view) ?? 'damaged';
  if (reading === 'animated') return { reason: 'an animated WebP, which is not shown' };
  if (typeof reading === 'string') return { reason: `the ${formatNames[format]} is ${reading}` };
  const { width, height } = reading;
  if (width === 0 || height === 0) return { reason: `the ${formatNames[format]} is damaged` };
  const isTooLarge = width > maxSide || height > maxSide || width * height > maxPixels;
  return isTooLarge ? { reason: `it has ${width} x ${height} pixels, which is too many` } : { format, width, height };
}

const formatNames: Record<PictureFormat, string> = { jpeg: 'JPEG', png: 'PNG', webp: 'WebP' };

function detectFormat(bytes: Buffer): PictureFormat | undefined {
  if (bytes.subarray(0, 3).toString('hex') === 'ffd8ff') return 'jpeg';
  if (bytes.subarray(0, 8).toString('hex') === '89504e470d0a1a0a') return 'png';
  return readAscii(bytes, 0) === 'RIFF' && readAscii(bytes, 8) === 'WEBP' ? 'webp' : undefined;
}

const readAscii = (bytes: Buffer, at: number) => bytes.toString('latin1', at, at + 4);

/** Pictures of other kinds, and what hosts send instead of pictures. */
function explainUnsupportedKind(bytes: Buffer): string {
  if (bytes.length === 0) return 'its host sent nothing';
  const start = bytes.toString('latin1', 0, 512).trimStart().toLowerCase();
  const brand = readAscii(bytes, 4) === 'ftyp' ? readAscii(bytes, 8) : '';
  if (start.startsWith('gif8')) return 'a GIF, which is not shown';
  if (brand === 'avif' || brand === 'avis') return 'an AVIF, which is not shown';
  if (brand === 'heic' || brand === 'heix' || brand === 'mif1') return 'a HEIC picture, which is not shown';
  if (brand !== '') return 'a video, not a picture';
  if (start.includes('<svg')) return 'an SVG, which is not shown';
  return start.startsWith('<') ? 'a web page, not a picture' : 'not a picture';
}

type HeaderReading = { width: number; height: number } | 'cut off' | 'animated' | undefined;

const headerReaders: Record<PictureFormat, (bytes: Buffer) => HeaderReading> = {
  jpeg: readJpeg,
  png: readPng,
  webp: readWebp,
};

/** Reads a JPEG from segment to segment to its end. Libraries would fill missing parts with grey. */
function readJpeg(bytes: Buffer): HeaderReading {
  let size: HeaderReading;
  let offset = 2;
  while (offset + 4 <= bytes.length) {
    if (bytes[offset] !== 0xff) {
      // Picture data after the head of a scan: on to the next marker.
      offset = bytes.indexOf(0xff, offset);
      if (offset < 0) return 'cut off';
      continue;
    }
    const marker = bytes[offset + 1] ?? 0;
    if (marker === 0xd9) return size;
    const hasLength = marker !== 0 && marker !== 0xff && marker !== 0x01 && !(marker >= 0xd0 && marker <= 0xd8);
    if (isFrameMarker(marker) && offset + 9 <= bytes.length) {
      // A second frame could be larger than the one that was checked.
      if (size !== undefined) return undefined;
      size = { height: bytes.readUInt16BE(offset + 5), width: bytes.readUInt16BE(offset + 7) };
    }
    offset += !hasLength ? (marker === 0xff ? 1 : 2) : 2 + bytes.readUInt16BE(offset + 2);
  }
  return offset + 2 <= bytes.length && bytes.readUInt16BE(offset) === 0xffd9 ? size : 'cut off';
}

/** SOF markers, without those for tables and extensions among them. */
const isFrameMarker = (marker: number) =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;

/** Reads a PNG from chunk to chunk to its end. */
function readPng(bytes: Buffer): HeaderReading {
  if (bytes.length < 24) return 'cut off';
  if (readAscii(bytes, 12) !== 'IHDR') return undefined;
  const size = { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
  for (let offset = 8; offset + 12 <= bytes.length; offset += 12 + bytes.readUInt32BE(offset))
    if (readAscii(bytes, offset + 4) === 'IEND') return size;
  return 'cut off';
}

function readWebp(bytes: Buffer): HeaderReading {
  if (bytes.length < 30 || bytes.length < 8 + bytes.readUInt32LE(4)) return 'cut off';
  const kind = readAscii(bytes, 12);
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
