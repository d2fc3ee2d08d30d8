import { LRUCache } from 'lru-cache';
import * as z from 'zod';
import { withDeadline } from '../../../api/abort.ts';
import { parseJson } from '../../../api/json.ts';
import {
  type GuardedAgent,
  openGuardedAgent,
  readBody,
  requestPublic,
  resolveInDns,
} from '../../../pictures/fetch-picture.ts';
import { createSeal, sealedIn } from '../../../storage/store/seal.ts';
import { sanitizeLine } from '../../../views/safe-text.ts';
import { Semaphore } from '../../../workers/semaphore.ts';
import { countPerMinute } from '../key-attempts.ts';

/** A program that asks for a connection. Only its host is verified, not its name. */
export interface Client {
  id: string;
  name: string | undefined;
  /** The host of the client's metadata document; undefined if the client registered itself, which proves nothing. */
  host: string | undefined;
  redirectUris: readonly string[];
}

type Found = Client | { problem: string; retryAfter?: number };

export interface ClientsOptions {
  secret: string;
  userAgent: string;
  /** A monotonic clock, in milliseconds. */
  now: () => number;
  /** The agent that fetches metadata documents; by default, it reaches public hosts only. */
  openAgent?: (() => Promise<GuardedAgent>) | undefined;
}

const maxName = 60;
const maxRedirects = 10;
const maxUriLength = 500;
/** The most characters of all redirect addresses of a registration, because its id is part of every address and request. */
const maxUris = 2000;

/**
 * Of metadata documents: bytes, milliseconds, how many at once and how long others wait, how many in a minute. Of both
 * numbers, one address has a part that leaves room for others.
 */
const limits = { bytes: 5 * 1024, ms: 5000, waitMs: 15_000, perMinute: 240, perMinuteOfAddress: 20 };
const [fetchesAtOnce, fetchesOfAddress] = [4, 2];
/** How long a document is used before it is fetched again, in milliseconds. */
const cacheMs = 600_000;
const maxCached = 1000;
/** After that, names that do not exist and names inside the network are answered: nobody learns which of the two holds. */
const notPublicMs = 2000;

const Metadata = z.looseObject({
  client_name: z.string().optional().catch(undefined),
  redirect_uris: z.array(z.string()).min(1),
});
const Registration = z.object({ n: z.string().optional(), r: z.array(z.string()) });
const MetadataDocument = Metadata.extend({
  client_id: z.string(),
  token_endpoint_auth_method: z.string().optional(),
  token_endpoint_auth_methods_supported: z.array(z.string()).optional().catch(undefined),
});

export function createClients(options: ClientsOptions) {
  const { secret, now } = options;
  const seal = createSeal({ secret, use: 'sign-in' });
  const documents = new LRUCache<string, Client>({ max: maxCached, ttl: cacheMs, ttlResolution: 0, perf: { now } });
  const inFlight = new Map<string, Promise<Found>>();
  const fetches = countPerMinute(now);
  const slots = new Semaphore({ maxRunning: fetchesAtOnce, perKey: fetchesOfAddress, name: 'apps' });
  const { openAgent = openPublicAgent } = options;
  let agent: Promise<GuardedAgent> | undefined;

  const registeredClient = (id: string): Client | undefined => {
    const text = seal.open('client', sealedIn(id));
    const registration = Registration.safeParse(text && parseJson(String(text)));
    if (!registration.success) return undefined;
    const { n: name, r: redirectUris } = registration.data;
    return { id, name, host: undefined, redirectUris };
  };

  const fetchDescription = async (url: URL, address: string): Promise<Found> => {
    agent ??= openAgent();
    try {
      const opened = await agent;
      const request = () => documentAt(url, opened, options.userAgent);
      const text = await slots.run(address, AbortSignal.timeout(limits.waitMs), request);
      const client = clientIn(text, url);
      if (!('problem' in client)) documents.set(url.href, client);
      return client;
    } catch {
      return { problem: `Its description at ${url.host} could not be read.` };
    }
  };

  const tooMany = (name: string, max: number): number | undefined => {
    const { count, remainingMs } = fetches.add(name, 1);
    return count > max ? remainingMs : undefined;
  };

  return {
    /**
     * Registers a client without storing anything: the client's id is the encrypted registration. Registers only the
     * redirect addresses that this server accepts, and returns them: a server may replace what a client asks for
     * (RFC 7591, 3.2.1). Some hosts also list an address of an app, which any program of the machine can take.
     * @returns the status and the answer
     */
    register(given: unknown) {
      const refuse = (error: string, problem: string) => [400, { error, error_description: problem }] as const;
      const metadata = Metadata.safeParse(given);
      if (!metadata.success) return refuse('invalid_client_metadata', 'redirect_uris must list at least one address');
      const { client_name: name, redirect_uris: listed } = metadata.data;
      const uris = [...new Set(listed.filter(isRedirectUri))];
      if (uris.length === 0)
        return refuse(
          'invalid_redirect_uri',
          `redirect_uris must list an https: address, or an http: address on loopback, without a user name, a fragment, or code, state, iss and error in the query, of ${maxUriLength} characters at most`,
        );
      if (uris.length > maxRedirects || uris.join('').length > maxUris)
        return refuse(
          'invalid_redirect_uri',
          `redirect_uris may list ${maxRedirects} addresses at most, of ${maxUris} characters in all`,
        );
      const shown = nameOf(name);
      const registered = {
        client_id: seal.close('client', JSON.stringify({ n: shown, r: uris })).toString('base64url'),
        ...(shown && { client_name: shown }),
        redirect_uris: uris,
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
      };
      return [201, registered] as const;
    },
    /** @param id a registration of this server, or the address of a metadata document; `address` is the caller's */
    async find(id: string, address: string): Promise<Found> {
      const url = documentUrl(id);
      if (url === undefined) return registeredClient(id) ?? { problem: 'This server does not know the app that asks.' };
      const found = documents.get(url.href) ?? inFlight.get(url.href);
      if (found) return found;
      const msLeft = tooMany(`of ${address}`, limits.perMinuteOfAddress) ?? tooMany('in all', limits.perMinute);
      if (msLeft !== undefined) {
        const retryAfter = Math.max(1, Math.ceil(msLeft / 1000));
        return { problem: 'Too many new apps have asked in the last minute. Try again later.', retryAfter };
      }
      const finding = fetchDescription(url, address).finally(() => inFlight.delete(url.href));
      inFlight.set(url.href, finding);
      return finding;
    },
    /** Whether an id could be that of a client, without asking anybody. */
    isPossible: (id: string) => documentUrl(id) !== undefined || registeredClient(id) !== undefined,
    close: async () => void (await agent)?.destroy(),
  };
}

/** Documents come from public hosts only, whatever hosts pictures may be fetched from. */
const openPublicAgent = () =>
  openGuardedAgent({
    hosts: { public: true, listed: [] },
    resolve: resolveInDns,
    resolveMs: notPublicMs * 0.9,
  });

/** The address of a client's metadata document, if the id is one (draft-ietf-oauth-client-id-metadata-document, 3). */
function documentUrl(id: string): URL | undefined {
  const url = id.length <= maxUriLength && URL.canParse(id) ? new URL(id) : undefined;
  // The address must be in normal form: no dot segments, no capitals in the host, no port 443.
  if (url?.href !== id || url.protocol !== 'https:' || url.port !== '' || url.pathname === '/') return undefined;
  return url.username || url.password || url.hash || !plainHost.test(url.hostname) ? undefined : url;
}

const plainHost = /^(?:[a-z\d.-]+|\[[\da-f:]+\])$/;

function documentAt(url: URL, agent: GuardedAgent, userAgent: string): Promise<string> {
  return withDeadline({ signals: [], ms: limits.ms }, async (signal) => {
    const headers = { accept: 'application/json', 'user-agent': userAgent };
    const answer = await requestPublic(url, { agent, headers, notPublicMs }, signal);
    if (answer.statusCode !== 200) {
      answer.body.on('error', () => {}).destroy();
      throw new Error('no document');
    }
    return new TextDecoder('utf-8', { fatal: true }).decode(await readBody(answer, limits.bytes));
  });
}

function clientIn(text: string, url: URL): Found {
  const metadata = MetadataDocument.safeParse(parseJson(text));
  const refuse = (problem: string) => ({ problem: `The description of the app at ${url.host} ${problem}.` });
  if (!metadata.success) return refuse('is not complete');
  const { client_id: id, client_name: name, redirect_uris: redirectUris, ...methods } = metadata.data;
  if (id !== url.href) return refuse('belongs to another address');
  // A client may prefer a method that this server does not have, if it lists the one that it has.
  const { token_endpoint_auth_method: method = 'none', token_endpoint_auth_methods_supported: others = [] } = methods;
  if (method !== 'none' && !others.includes('none'))
    return refuse('asks for a way to authenticate that this server does not have');
  // Addresses that are not for the web are useless here, and harmless.
  return { id, name: nameOf(name), host: url.hostname, redirectUris: redirectUris.filter(isRedirectUri) };
}

/** A name is shown, so it holds nothing invisible and is no longer than a line. */
function nameOf(name = ''): string | undefined {
  const clean = sanitizeLine(name.slice(0, 4 * maxName));
  return clean.length > maxName ? `${clean.slice(0, maxName - 1).toWellFormed()}…` : clean || undefined;
}

const isLoopbackHost = (host: string) => ['localhost', '127.0.0.1', '[::1]'].includes(host);

/** Whether an answer may go to an address: `https:`, or `http:` on the caller's own machine (RFC 8252, 7.3). */
function isRedirectUri(uri: string): boolean {
  // The URL parser would drop characters that a reader of the text sees.
  if (uri.length > maxUriLength || !/^[\x21-\x7e]+$/.test(uri) || uri.includes('\\') || !URL.canParse(uri))
    return false;
  const { protocol, hostname, username, password, hash, searchParams } = new URL(uri);
  // The address must not hold the parameters of the answer already.
  if (['code', 'state', 'iss', 'error'].some((name) => searchParams.has(name))) return false;
  if (username || password || hash || uri.includes('#') || !plainHost.test(hostname)) return false;
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname));
}

/** Whether a client may have its answer sent there: exactly as it is listed, but for the port on loopback (RFC 8252, 7.3). */
export function mayRedirectTo({ redirectUris }: Client, uri: string): boolean {
  if (!isRedirectUri(uri)) return false;
  const withoutPort = (text: string): string => {
    const url = new URL(text);
    if (url.protocol !== 'http:') return text;
    url.port = '';
    return url.href;
  };
  return redirectUris.some((listed) => listed === uri || withoutPort(listed) === withoutPort(uri));
}
