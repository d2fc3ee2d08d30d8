import { setTimeout as delay } from 'node:timers/promises';
import { withDeadline } from '../api/abort.ts';
import { type GuardedAgent, NotPublic } from './guarded-agent.ts';
import { type MediaHosts, whyForbidden } from './media-rule.ts';

/** Pictures that this process serves itself: those whose address begins with `address`. */
export interface OwnPictures {
  address: string;
  answer(request: Request): Promise<Response>;
}

export type Fetched = { bytes: Uint8Array } | { reason: string };

export interface FetchLimits {
  maxBytes: number;
  /** For all requests of one picture together, in milliseconds. */
  fetchMs: number;
  /**
   * When the answer comes that a host does not exist or is not public, in milliseconds after the request: always the
   * same, so that nobody learns from the time which of the two it is.
   */
  notPublicMs: number;
}

export interface FetchOptions {
  hosts: MediaHosts;
  /** Opened with the first request. */
  agent(): Promise<GuardedAgent>;
  own: OwnPictures | undefined;
  userAgent: string;
  limits: FetchLimits;
}

const maxRedirects = 3;
const redirects = new Set([301, 302, 303, 307, 308]);

/** The bytes at an address, or why they are not fetched. Rejects only if the signal aborts. */
export async function fetchPicture(address: string, options: FetchOptions, signal: AbortSignal): Promise<Fetched> {
  if (!URL.canParse(address)) return { reason: 'not a web address' };
  const { own, limits } = options;
  if (own && address.startsWith(own.address)) return ownPicture(address, own);
  const work = (deadline: AbortSignal) => follow(new URL(address), options, deadline);
  return withDeadline({ signals: [signal], ms: limits.fetchMs }, work).catch((error) => {
    signal.throwIfAborted();
    return { reason: reasonOf(error, limits) };
  });
}

async function ownPicture(address: string, own: OwnPictures): Promise<Fetched> {
  const response = await own.answer(new Request(address));
  if (response.status !== 200) return { reason: `its host answered ${response.status}` };
  return { bytes: new Uint8Array(await response.arrayBuffer()) };
}

/** Each address on the way is checked anew. */
async function follow(start: URL, options: FetchOptions, signal: AbortSignal): Promise<Fetched> {
  let url = start;
  for (let hops = 0; hops <= maxRedirects; hops++) {
    const problem = whyForbidden(url, options.hosts);
    if (problem !== undefined) return { reason: hops === 0 ? problem : `it redirects: ${problem}` };
    const answer = await request(url, options, signal);
    const { statusCode, headers, body } = answer;
    if (statusCode === 200) return readBody(answer, options.limits);
    body.on('error', () => {}).destroy();
    const location = [headers.location].flat()[0];
    if (!redirects.has(statusCode) || location === undefined) return { reason: `its host answered ${statusCode}` };
    if (!URL.canParse(location, url.href)) return { reason: 'it redirects to no web address' };
    url = new URL(location, url);
  }
  return { reason: `it redirects more than ${maxRedirects} times` };
}

async function request({ origin, pathname, search }: URL, options: FetchOptions, signal: AbortSignal) {
  const { agent, userAgent, limits } = options;
  const answerAt = performance.now() + limits.notPublicMs;
  const headers = { accept: 'image/jpeg, image/png, image/webp', 'user-agent': userAgent };
  try {
    return await (await agent()).request({ origin, path: pathname + search, method: 'GET', headers, signal });
  } catch (error) {
    if (error instanceof NotPublic) await delay(answerAt - performance.now(), undefined, { signal });
    throw error;
  }
}

class TooLarge extends Error {}

type HostResponse = Awaited<ReturnType<GuardedAgent['request']>>;

async function readBody({ body, headers }: HostResponse, { maxBytes }: FetchLimits): Promise<Fetched> {
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
  return { bytes: Buffer.concat(parts) };
}

function reasonOf(error: unknown, { maxBytes, fetchMs }: FetchLimits): string {
  if (error instanceof NotPublic) return 'its host does not exist, or is not public';
  if (error instanceof TooLarge) return `it is larger than ${maxBytes / 1_000_000} MB`;
  const { name, code = '' } = error as { name?: string; code?: string };
  if (name === 'TimeoutError') return `it did not come within ${fetchMs / 1000} s`;
  if (code.includes('CERT') || code.startsWith('ERR_TLS')) return "its host's certificate is not valid";
  return 'its host could not be reached, or broke off';
}
