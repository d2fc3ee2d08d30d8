import { Resolver } from 'node:dns/promises';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Agent } from 'undici';
import { raceAbort, withDeadline } from '../api/abort.ts';

/** Pictures that this process itself serves, e.g. in demo mode. Such pictures are read without network access. */
export interface ServedPictures {
  /** The prefix of the URLs of all pictures that this process serves. */
  urlPrefix: string;
  respond(request: Request): Promise<Response>;
}

/** The bytes of a picture, or the reason why the picture could not be fetched. */
type FetchedPicture = { bytes: Uint8Array } | { reason: string };

interface FetchLimits {
  maxPictureBytes: number;
  /** The time limit for fetching one picture, including all redirects, in milliseconds. */
  fetchTimeoutMs: number;
  /**
   * The time after which a request to a missing or private host fails, in milliseconds. This time is constant, so that
   * callers cannot tell from the response time which private hosts exist.
   */
  nonPublicHostDelayMs: number;
}

interface FetchOptions {
  hosts: MediaHosts;
  /** Returns the HTTP agent. The agent is created when it is first needed. */
  getAgent(): Promise<GuardedAgent>;
  servedPictures: ServedPictures | undefined;
  userAgent: string;
  limits: FetchLimits;
}

const maxRedirects = 3;
const redirectStatuses = new Set([301, 302, 303, 307, 308]);

/**
 * Fetches a picture. Resolves to the bytes of the picture, or to the reason why the picture could not be fetched.
 * Rejects only if `signal` aborts.
 */
export async function fetchPicture(
  pictureUrl: string,
  options: FetchOptions,
  signal: AbortSignal,
): Promise<FetchedPicture> {
  if (!URL.canParse(pictureUrl)) return { reason: 'not a web address' };
  const { servedPictures, limits } = options;
  if (servedPictures && pictureUrl.startsWith(servedPictures.urlPrefix)) {
    const response = await servedPictures.respond(new Request(pictureUrl));
    if (response.status !== 200) return { reason: `its host answered ${response.status}` };
    return { bytes: new Uint8Array(await response.arrayBuffer()) };
  }
  const fetchBytes = (deadline: AbortSignal) => fetchWithRedirects(new URL(pictureUrl), options, deadline);
  return withDeadline({ signals: [signal], timeoutMs: limits.fetchTimeoutMs }, fetchBytes).catch((error) => {
    signal.throwIfAborted();
    return { reason: explainFetchError(error, limits) };
  });
}

/** Fetches a picture and follows redirects. Every URL is checked before it is requested. */
async function fetchWithRedirects(firstUrl: URL, options: FetchOptions, signal: AbortSignal): Promise<FetchedPicture> {
  let currentUrl = firstUrl;
  for (let redirectCount = 0; redirectCount <= maxRedirects; redirectCount++) {
    const forbiddenReason = explainForbiddenUrl(currentUrl, options.hosts);
    if (forbiddenReason !== undefined)
      return { reason: redirectCount === 0 ? forbiddenReason : `it redirects: ${forbiddenReason}` };
    const { getAgent, userAgent, limits } = options;
    const requestHeaders = { accept: 'image/jpeg, image/png, image/webp', 'user-agent': userAgent };
    const response = await requestWithUniformFailureTime(
      currentUrl,
      { agent: await getAgent(), headers: requestHeaders, ...limits },
      signal,
    );
    const { statusCode, headers, body } = response;
    if (statusCode === 200) return { bytes: await readResponseBody(response, limits.maxPictureBytes) };
    body.on('error', () => {}).destroy();
    const redirectTarget = [headers.location].flat()[0];
    if (!redirectStatuses.has(statusCode) || redirectTarget === undefined)
      return { reason: `its host answered ${statusCode}` };
    if (!URL.canParse(redirectTarget, currentUrl.href)) return { reason: 'it redirects to no web address' };
    currentUrl = new URL(redirectTarget, currentUrl);
  }
  return { reason: `it redirects more than ${maxRedirects} times` };
}

/** The options for a request through `GuardedAgent`, which connects only to allowed hosts. */
interface GuardedRequest extends Pick<FetchLimits, 'nonPublicHostDelayMs'> {
  agent: GuardedAgent;
  headers: Record<string, string>;
}

/**
 * Sends a request. If the host does not exist or is private, the request always fails after the same delay, so that the
 * delay does not reveal which private hosts exist.
 */
export async function requestWithUniformFailureTime(
  url: URL,
  { agent, headers, nonPublicHostDelayMs }: GuardedRequest,
  signal: AbortSignal,
) {
  const earliestFailureMs = performance.now() + nonPublicHostDelayMs;
  const { origin, pathname, search } = url;
  try {
    return await agent.request({ origin, path: pathname + search, method: 'GET', headers, signal });
  } catch (error) {
    if (error instanceof NonPublicHostError) await delay(earliestFailureMs - performance.now(), undefined, { signal });
    throw error;
  }
}

/** Thrown if a picture exceeds the size limit. */
class PictureTooLargeError extends Error {}

type PictureResponse = Awaited<ReturnType<GuardedAgent['request']>>;

/**
 * Reads the body of a response.
 * @throws PictureTooLargeError if the body exceeds `maxBytes`
 */
export async function readResponseBody({ body, headers }: PictureResponse, maxBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let receivedBytes = 0;
  try {
    if (Number(headers['content-length']) > maxBytes) throw new PictureTooLargeError();
    // If the loop throws an error, `for await` closes the connection, so no further cleanup is needed.
    for await (const chunk of body as AsyncIterable<Uint8Array>) {
      receivedBytes += chunk.length;
      if (receivedBytes > maxBytes) throw new PictureTooLargeError();
      chunks.push(chunk);
    }
  } finally {
    body.on('error', () => {}).destroy();
  }
  return Buffer.concat(chunks);
}

/** Explains in a few words why a picture could not be fetched, e.g. `it is larger than 10 MB`. */
function explainFetchError(error: unknown, { maxPictureBytes, fetchTimeoutMs }: FetchLimits): string {
  if (error instanceof NonPublicHostError) return 'its host does not exist, or is not public';
  if (error instanceof PictureTooLargeError) return `it is larger than ${maxPictureBytes / 1_000_000} MB`;
  const { name, code = '' } = error as { name?: string; code?: string };
  if (name === 'TimeoutError') return `it did not come within ${fetchTimeoutMs / 1000} s`;
  if (code.includes('CERT') || code.startsWith('ERR_TLS')) return "its host's certificate is not valid";
  return 'its host could not be reached, or broke off';
}

/** An HTTP agent that connects only to allowed hosts. Created by `createGuardedAgent`. */
export type GuardedAgent = Agent;

/**
 * Thrown for a host that does not exist or has a private IP address. Both cases throw the same error, so that callers
 * cannot find out which private hosts exist.
 */
class NonPublicHostError extends Error {
  override readonly name = 'NonPublicHostError';
}

interface GuardOptions {
  hosts: MediaHosts;
  resolveHost: ResolveHost;
  /** The time limit for looking up the IP addresses of a host, in milliseconds. */
  dnsTimeoutMs: number;
}

/**
 * Creates an HTTP agent that connects only to public IP addresses and to hosts that the `AD_LIBRARY_MEDIA_HOSTS`
 * setting lists by name. The agent checks an IP address when it connects, so that a host name cannot resolve to a
 * different address after the check.
 */
export async function createGuardedAgent({ hosts, ...options }: GuardOptions): Promise<GuardedAgent> {
  // Import the default export, because `undici` is a CommonJS package. No other export works both in the source files
  // and in the bundle.
  const { Agent, buildConnector } = (await import('undici')).default;
  const connectToListedHost = buildConnector({});
  const connectToPublicHost = buildConnector({ lookup: createPublicHostLookup(options) });
  return new Agent({
    connect: (target, callback) => {
      const host = removeBrackets(target.hostname);
      if (isListedHost(hosts, { host, port: getPort(target) })) return connectToListedHost(target, callback);
      // Check hosts that are already IP addresses here. Node looks up only host names, so the lookup of
      // `createPublicHostLookup` never sees these hosts.
      if (isIP(host) !== 0 && isPrivateAddress(host)) return callback(new NonPublicHostError(), null);
      connectToPublicHost(target, callback);
    },
    // Turn off the timeouts of `undici`, because its timers are imprecise. Each request has a time limit of its own.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

/** Creates a DNS lookup that fails with `NonPublicHostError` if any IP address of the host is private. */
const createPublicHostLookup =
  ({ resolveHost, dnsTimeoutMs }: Omit<GuardOptions, 'hosts'>): LookupFunction =>
  (host, { all }, callback) => {
    const lookUp = async () => {
      const addresses = await withDeadline({ signals: [], timeoutMs: dnsTimeoutMs }, (signal) =>
        raceAbort(resolveHost(host, signal), signal),
      ).catch((): string[] => []);
      const [firstAddress] = addresses;
      if (firstAddress === undefined || addresses.some(isPrivateAddress)) callback(new NonPublicHostError(), '');
      else if (all)
        callback(
          null,
          addresses.map((address) => ({ address, family: isIP(address) })),
        );
      else callback(null, firstAddress, isIP(firstAddress));
    };
    void lookUp();
  };

/** The hosts from which pictures may be fetched, as specified by the `AD_LIBRARY_MEDIA_HOSTS` setting. */
export interface MediaHosts {
  /** True if pictures may be fetched from all public hosts over https. */
  allowsPublicHosts: boolean;
  /**
   * The hosts that the setting allows by name, even in a private network or without https. An entry without a port
   * allows all ports of the host.
   */
  listedHosts: readonly { host: string; port?: number }[];
}

/**
 * Returns true if the `AD_LIBRARY_MEDIA_HOSTS` setting lists the host by name. Such a host may be in a private network.
 */
const isListedHost = ({ listedHosts }: MediaHosts, { host, port }: { host: string; port: number }): boolean =>
  listedHosts.some(
    (listedHost) => removeBrackets(listedHost.host) === removeBrackets(host) && (listedHost.port ?? port) === port,
  );

/**
 * Returns the reason why a URL must not be fetched, or undefined if it may be fetched. The HTTP agent checks the host's
 * IP address later, when it connects.
 */
function explainForbiddenUrl(url: URL, hosts: MediaHosts): string | undefined {
  const { protocol, hostname, username, password } = url;
  if (protocol !== 'https:' && protocol !== 'http:') return 'not a web address';
  if (username || password) return 'its address holds a user name';
  if (isListedHost(hosts, { host: hostname, port: getPort(url) })) return undefined;
  if (!hosts.allowsPublicHosts) return 'its host is not in AD_LIBRARY_MEDIA_HOSTS';
  if (protocol !== 'https:') return 'its address is not https';
  return getPort(url) === 443 ? undefined : 'its port is not 443';
}

/** Returns the port of a URL, or the default port of its protocol. */
const getPort = ({ port, protocol }: Pick<URL, 'port' | 'protocol'>): number =>
  Number(port || (protocol === 'https:' ? 443 : 80));

/** Removes the brackets around an IPv6 address. URLs contain these brackets, but `isIP` does not accept them. */
const removeBrackets = (host: string): string => host.replace(/^\[(.*)\]$/, '$1');

/** IPv4 networks that contain no public hosts (RFC 6890 and the IANA registry of special-purpose addresses). */
const reservedNetworks: readonly (readonly [network: string, prefixLength: number])[] = [
  ['0.0.0.0', 8], // this network, and the unspecified address
  ['10.0.0.0', 8], // private
  ['100.64.0.0', 10], // carrier-grade NAT
  ['127.0.0.0', 8], // loopback
  ['169.254.0.0', 16], // link-local; cloud providers serve credentials here
  ['172.16.0.0', 12], // private
  ['192.0.0.0', 24], // protocol assignments
  ['192.0.2.0', 24], // documentation
  ['192.88.99.0', 24], // 6to4 relays
  ['192.168.0.0', 16], // private
  ['198.18.0.0', 15], // benchmarks
  ['198.51.100.0', 24], // documentation
  ['203.0.113.0', 24], // documentation
  ['224.0.0.0', 4], // multicast
  ['240.0.0.0', 4], // reserved, and the broadcast address
];

const reservedIpAddresses = new BlockList();
for (const [network, prefixLength] of reservedNetworks) {
  reservedIpAddresses.addSubnet(network, prefixLength, 'ipv4');
  // Also block the IPv6 forms of these networks: IPv4-mapped addresses and addresses behind NAT64.
  for (const addressPrefix of ['::ffff:', '64:ff9b::'])
    reservedIpAddresses.addSubnet(`${addressPrefix}${network}`, 96 + prefixLength, 'ipv6');
}
reservedIpAddresses.addSubnet('2001::', 23, 'ipv6'); // protocol assignments, including Teredo
reservedIpAddresses.addSubnet('2001:db8::', 32, 'ipv6'); // documentation
reservedIpAddresses.addSubnet('2002::', 16, 'ipv6'); // 6to4, which contains an IPv4 address
reservedIpAddresses.addSubnet('3fff::', 20, 'ipv6'); // documentation

/**
 * The IPv6 networks with public addresses, including the IPv4-mapped (`::ffff:`) and NAT64 (`64:ff9b::`) forms of IPv4
 * addresses. All other IPv6 addresses are local, private, multicast or unassigned.
 */
const publicIpv6Addresses = new BlockList();
publicIpv6Addresses.addSubnet('2000::', 3, 'ipv6');
publicIpv6Addresses.addSubnet('::ffff:0.0.0.0', 96, 'ipv6');
publicIpv6Addresses.addSubnet('64:ff9b::', 96, 'ipv6');

/** Returns true if an IP address cannot belong to a public host. A malformed address counts as private. */
export function isPrivateAddress(ipAddress: string): boolean {
  const ipVersion = isIP(ipAddress);
  // An IPv6 address with a zone, such as `fe80::1%eth0`, is link-local and therefore private.
  if (ipVersion === 0 || ipAddress.includes('%')) return true;
  if (ipVersion === 4) return reservedIpAddresses.check(ipAddress, 'ipv4');
  return !publicIpv6Addresses.check(ipAddress, 'ipv6') || reservedIpAddresses.check(ipAddress, 'ipv6');
}

/** Resolves a host name to its IP addresses. Returns an empty list if the host has no address. */
export type ResolveHost = (host: string, signal: AbortSignal) => Promise<readonly string[]>;

/**
 * Resolves a host name with DNS queries. Ignores the hosts file, because URLs in ads must not reach hosts that only
 * this computer knows. Unlike `dns.lookup`, a DNS query can be canceled and occupies no thread, so that a slow name
 * server does not delay other work.
 */
export const resolveInDns: ResolveHost = async (host, signal) => {
  signal.throwIfAborted();
  const resolver = new Resolver({ timeout: 1000, tries: 2 });
  signal.addEventListener('abort', () => resolver.cancel(), { once: true });
  const lookups = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
  return lookups.flatMap((lookup) => (lookup.status === 'fulfilled' ? lookup.value : []));
};

/** The picture formats that this server can decode. Pictures in other formats are rejected with a reason. */
export type PictureFormat = 'jpeg' | 'png' | 'webp';

/**
 * The format and size of a picture, or the reason why the picture cannot be shown. Both are read without decoding the
 * picture.
 */
type PictureHeader = { format: PictureFormat; width: number; height: number } | { reason: string };

/** The maximum number of pixels of an original picture. Decoding a larger picture would need too much memory. */
const maxPixelCount = 16_000_000;
/** The maximum width and height of an original picture, in pixels. */
const maxOriginalSide = 20_000;

/**
 * Reads the format and size of a picture from its bytes. Returns a reason instead if the file is incomplete, damaged,
 * too large or not supported.
 */
export function readPictureHeader(bytes: Uint8Array): PictureHeader {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const format = detectFormat(buffer);
  if (format === undefined) return { reason: explainUnsupportedFormat(buffer) };
  const sizeOrProblem = sizeReaders[format](buffer) ?? 'damaged';
  if (sizeOrProblem === 'animated') return { reason: 'an animated WebP, which is not shown' };
  if (typeof sizeOrProblem === 'string') return { reason: `the ${formatNames[format]} is ${sizeOrProblem}` };
  const { width, height } = sizeOrProblem;
  if (width === 0 || height === 0) return { reason: `the ${formatNames[format]} is damaged` };
  const isTooLarge = width > maxOriginalSide || height > maxOriginalSide || width * height > maxPixelCount;
  return isTooLarge ? { reason: `it has ${width} x ${height} pixels, which is too many` } : { format, width, height };
}

const formatNames: Record<PictureFormat, string> = { jpeg: 'JPEG', png: 'PNG', webp: 'WebP' };

function detectFormat(bytes: Buffer): PictureFormat | undefined {
  if (bytes.subarray(0, 3).toString('hex') === 'ffd8ff') return 'jpeg';
  if (bytes.subarray(0, 8).toString('hex') === '89504e470d0a1a0a') return 'png';
  return readAscii(bytes, 0) === 'RIFF' && readAscii(bytes, 8) === 'WEBP' ? 'webp' : undefined;
}

const readAscii = (bytes: Buffer, offset: number) => bytes.toString('latin1', offset, offset + 4);

/** Explains why a file is not a supported picture, e.g. `a GIF, which is not shown`. */
function explainUnsupportedFormat(bytes: Buffer): string {
  if (bytes.length === 0) return 'its host sent nothing';
  const firstChars = bytes.toString('latin1', 0, 512).trimStart().toLowerCase();
  const fileBrand = readAscii(bytes, 4) === 'ftyp' ? readAscii(bytes, 8) : '';
  if (firstChars.startsWith('gif8')) return 'a GIF, which is not shown';
  if (fileBrand === 'avif' || fileBrand === 'avis') return 'an AVIF, which is not shown';
  if (fileBrand === 'heic' || fileBrand === 'heix' || fileBrand === 'mif1') return 'a HEIC picture, which is not shown';
  if (fileBrand !== '') return 'a video, not a picture';
  if (firstChars.includes('<svg')) return 'an SVG, which is not shown';
  return firstChars.startsWith('<') ? 'a web page, not a picture' : 'not a picture';
}

/** The size of a picture, or the reason why the picture cannot be shown. Undefined if the picture file is damaged. */
type SizeOrProblem = { width: number; height: number } | 'cut off' | 'animated' | undefined;

const sizeReaders: Record<PictureFormat, (bytes: Buffer) => SizeOrProblem> = {
  jpeg: readJpegSize,
  png: readPngSize,
  webp: readWebpSize,
};

/**
 * Reads the size of a JPEG. Scans all segments to check that the file is complete, because a decoder would fill missing
 * areas with gray.
 */
function readJpegSize(bytes: Buffer): SizeOrProblem {
  let size: SizeOrProblem;
  let offset = 2;
  while (offset + 4 <= bytes.length) {
    if (bytes[offset] !== 0xff) {
      // Skip the compressed image data, which continues until the next marker.
      offset = bytes.indexOf(0xff, offset);
      if (offset < 0) return 'cut off';
      continue;
    }
    const marker = bytes[offset + 1] ?? 0;
    if (marker === 0xd9) return size;
    const hasLength = marker !== 0 && marker !== 0xff && marker !== 0x01 && !(marker >= 0xd0 && marker <= 0xd8);
    if (isFrameMarker(marker) && offset + 9 <= bytes.length) {
      // Reject a JPEG with a second frame, because the size of that frame would not be checked.
      if (size !== undefined) return undefined;
      size = { height: bytes.readUInt16BE(offset + 5), width: bytes.readUInt16BE(offset + 7) };
    }
    offset += !hasLength ? (marker === 0xff ? 1 : 2) : 2 + bytes.readUInt16BE(offset + 2);
  }
  return offset + 2 <= bytes.length && bytes.readUInt16BE(offset) === 0xffd9 ? size : 'cut off';
}

/** Returns true if a JPEG marker starts a frame. The three excluded markers belong to tables and extensions. */
const isFrameMarker = (marker: number) =>
  marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;

/** Reads the size of a PNG. Scans all chunks to check that the file is complete. */
function readPngSize(bytes: Buffer): SizeOrProblem {
  if (bytes.length < 24) return 'cut off';
  if (readAscii(bytes, 12) !== 'IHDR') return undefined;
  const size = { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
  for (let offset = 8; offset + 12 <= bytes.length; offset += 12 + bytes.readUInt32BE(offset))
    if (readAscii(bytes, offset + 4) === 'IEND') return size;
  return 'cut off';
}

function readWebpSize(bytes: Buffer): SizeOrProblem {
  if (bytes.length < 30 || bytes.length < 8 + bytes.readUInt32LE(4)) return 'cut off';
  const chunkType = readAscii(bytes, 12);
  if (chunkType === 'VP8X') {
    if (((bytes[20] ?? 0) & 2) !== 0) return 'animated';
    return { width: 1 + bytes.readUIntLE(24, 3), height: 1 + bytes.readUIntLE(27, 3) };
  }
  if (chunkType === 'VP8L') {
    const bits = bytes.readUInt32LE(21);
    return { width: 1 + (bits & 0x3fff), height: 1 + ((bits >>> 14) & 0x3fff) };
  }
  if (chunkType !== 'VP8 ') return undefined;
  return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
}
