import { LRUCache } from 'lru-cache';
import * as z from 'zod';
import { withDeadline } from '../../../api/abort.ts';
import { parseJson } from '../../../api/json.ts';
import {
  type GuardedAgent,
  openGuardedAgent,
  readBody,
  requestWithUniformDelay,
  resolveInDns,
} from '../../../pictures/fetch-picture.ts';
import { createEncryption, decodeToken } from '../../../storage/store/encryption.ts';
import { sanitizeLine } from '../../../views/safe-text.ts';
import { Semaphore } from '../../../workers/semaphore.ts';
import { createMinuteCounter } from '../key-attempts.ts';

/** A program that asks for a connection (an OAuth client). Its name is never verified, only its host can be. */
export interface Client {
  id: string;
  name: string | undefined;
  /** The host of the client's metadata document. Undefined for a client that registered itself, which proves nothing. */
  host: string | undefined;
  redirectUris: readonly string[];
}

/** A client, or the problem that the sign-in page shows. `retryAfter` is in seconds. */
type ClientLookup = Client | { problem: string; retryAfter?: number };

/** What registering and finding clients depends on. */
export interface ClientsOptions {
  /** Encrypts the registrations. All replicas share the secret. */
  secret: string;
  userAgent: string;
  /** A monotonic clock, in milliseconds. */
  now: () => number;
  /** Opens the agent that fetches metadata documents. By default, the agent reaches public hosts only. */
  openAgent?: (() => Promise<GuardedAgent>) | undefined;
}

/** The most characters of a client's name on the page. */
const maxNameLength = 60;
const maxRedirectUris = 10;
const maxUriLength = 500;
/**
 * The most characters of all redirect URIs of a registration. The client id contains the registration and is part of
 * every URL and request, so it must stay short.
 */
const maxTotalUriLength = 2000;

/**
 * The limits for fetching metadata documents: the bytes of a document, the time for a fetch, the time that a fetch waits
 * for a slot, and the fetches in a minute, in total and for one address. One address can never use up the total.
 */
const documentLimits = { bytes: 5 * 1024, ms: 5000, waitMs: 15_000, perMinute: 240, perMinutePerAddress: 20 };
/** The most metadata documents that are fetched at the same time, in total and for one address. */
const [maxFetches, maxFetchesPerAddress] = [4, 2];
/** How long a metadata document is used before it is fetched again, in milliseconds. */
const cacheMs = 600_000;
const maxCachedDocuments = 1000;
/**
 * The time after which a lookup of a host without a public address fails, in milliseconds. Names that do not exist and
 * names inside the network take the same time, so the time does not reveal which names exist inside.
 */
const nonPublicAnswerMs = 2000;

const Metadata = z.looseObject({
  client_name: z.string().optional().catch(undefined),
  redirect_uris: z.array(z.string()).min(1),
});
/** The content of the client id of a registered client: its name and its redirect URIs. */
const Registration = z.object({ n: z.string().optional(), r: z.array(z.string()) });
const MetadataDocument = Metadata.extend({
  client_id: z.string(),
  token_endpoint_auth_method: z.string().optional(),
  token_endpoint_auth_methods_supported: z.array(z.string()).optional().catch(undefined),
});

/** Creates the functions that register clients and find clients by their ids. */
export function createClients(options: ClientsOptions) {
  const { secret, now } = options;
  const encryption = createEncryption({ secret, use: 'sign-in' });
  const documentCache = new LRUCache<string, Client>({
    max: maxCachedDocuments,
    ttl: cacheMs,
    ttlResolution: 0,
    perf: { now },
  });
  const pendingLookups = new Map<string, Promise<ClientLookup>>();
  const fetchCounter = createMinuteCounter(now);
  const fetchSlots = new Semaphore({
    maxRunning: maxFetches,
    maxRunningPerKey: maxFetchesPerAddress,
    workName: 'apps',
  });
  const { openAgent = openPublicAgent } = options;
  let agent: Promise<GuardedAgent> | undefined;

  const decryptRegistration = (id: string): Client | undefined => {
    const text = encryption.decrypt('client', decodeToken(id));
    const registration = Registration.safeParse(text && parseJson(String(text)));
    if (!registration.success) return undefined;
    const { n: name, r: redirectUris } = registration.data;
    return { id, name, host: undefined, redirectUris };
  };

  const fetchClient = async (url: URL, address: string): Promise<ClientLookup> => {
    agent ??= openAgent();
    try {
      const openedAgent = await agent;
      const request = () => fetchDocument(url, openedAgent, options.userAgent);
      const text = await fetchSlots.run(address, AbortSignal.timeout(documentLimits.waitMs), request);
      const client = parseClient(text, url);
      if (!('problem' in client)) documentCache.set(url.href, client);
      return client;
    } catch {
      return { problem: `The description of the app at ${url.host} could not be read.` };
    }
  };

  /** Counts a fetch. Returns the milliseconds to wait if there were more than `max` fetches in the last minute. */
  const countFetch = (name: string, max: number): number | undefined => {
    const { count, remainingMs } = fetchCounter.add(name, 1);
    return count > max ? remainingMs : undefined;
  };

  return {
    /**
     * Registers a client without storing anything: the client id is the encrypted registration (RFC 7591).
     *
     * Registers only the redirect URIs that this server accepts, and returns them. A server may replace what a client
     * requests (RFC 7591, 3.2.1). Some hosts also list the URI of a desktop app, which any program on the machine can
     * claim; this server does not accept such URIs.
     * @returns the HTTP status and the JSON body of the response
     */
    registerClient(requestBody: unknown) {
      const refuse = (error: string, problem: string) => [400, { error, error_description: problem }] as const;
      const metadata = Metadata.safeParse(requestBody);
      if (!metadata.success) return refuse('invalid_client_metadata', 'redirect_uris must list at least one URI');
      const { client_name: name, redirect_uris: listedUris } = metadata.data;
      const uris = [...new Set(listedUris.filter(isRedirectUri))];
      if (uris.length === 0)
        return refuse(
          'invalid_redirect_uri',
          `redirect_uris must list an https: URI, or an http: URI on loopback, of at most ${maxUriLength} characters. It must not contain a user name or a fragment, or code, state, iss or error in its query`,
        );
      if (uris.length > maxRedirectUris || uris.join('').length > maxTotalUriLength)
        return refuse(
          'invalid_redirect_uri',
          `redirect_uris may list at most ${maxRedirectUris} URIs, with at most ${maxTotalUriLength} characters in total`,
        );
      const displayName = shortenName(name);
      const registration = {
        client_id: encryption.encrypt('client', JSON.stringify({ n: displayName, r: uris })).toString('base64url'),
        ...(displayName && { client_name: displayName }),
        redirect_uris: uris,
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
      };
      return [201, registration] as const;
    },
    /**
     * Returns the client with an id. Fetches the metadata document of the client if the id is the URL of one.
     * @param id a client id that this server issued, or the URL of a metadata document
     * @param address the address of the caller, which the limits count
     */
    async findClient(id: string, address: string): Promise<ClientLookup> {
      const url = parseDocumentUrl(id);
      if (url === undefined)
        return decryptRegistration(id) ?? { problem: 'This server does not know the app that asks.' };
      const knownClient = documentCache.get(url.href) ?? pendingLookups.get(url.href);
      if (knownClient) return knownClient;
      const remainingMs =
        countFetch(`of ${address}`, documentLimits.perMinutePerAddress) ??
        countFetch('in all', documentLimits.perMinute);
      if (remainingMs !== undefined) {
        const retryAfter = Math.max(1, Math.ceil(remainingMs / 1000));
        return { problem: 'Too many new apps have asked in the last minute. Try again later.', retryAfter };
      }
      const lookup = fetchClient(url, address).finally(() => pendingLookups.delete(url.href));
      pendingLookups.set(url.href, lookup);
      return lookup;
    },
    /** Returns whether an id has the form of a client id. Fetches nothing. */
    canBeClientId: (id: string) => parseDocumentUrl(id) !== undefined || decryptRegistration(id) !== undefined,
    close: async () => void (await agent)?.destroy(),
  };
}

/** Opens an agent that reaches public hosts only. The setting for hosts of pictures has no effect on the agent. */
const openPublicAgent = () =>
  openGuardedAgent({
    hosts: { public: true, listed: [] },
    resolve: resolveInDns,
    resolveMs: nonPublicAnswerMs * 0.9,
  });

/**
 * Returns the URL of a client's metadata document if the client id is such a URL
 * (draft-ietf-oauth-client-id-metadata-document, 3).
 */
function parseDocumentUrl(id: string): URL | undefined {
  const url = id.length <= maxUriLength && URL.canParse(id) ? new URL(id) : undefined;
  // The URL must be in its normal form: without dot segments, capitals in the host, or port 443.
  if (url?.href !== id || url.protocol !== 'https:' || url.port !== '' || url.pathname === '/') return undefined;
  return url.username || url.password || url.hash || !plainHostPattern.test(url.hostname) ? undefined : url;
}

const plainHostPattern = /^(?:[a-z\d.-]+|\[[\da-f:]+\])$/;

function fetchDocument(url: URL, agent: GuardedAgent, userAgent: string): Promise<string> {
  return withDeadline({ signals: [], ms: documentLimits.ms }, async (signal) => {
    const headers = { accept: 'application/json', 'user-agent': userAgent };
    const answer = await requestWithUniformDelay(url, { agent, headers, nonPublicAnswerMs }, signal);
    if (answer.statusCode !== 200) {
      answer.body.on('error', () => {}).destroy();
      throw new Error('The server did not answer with status 200.');
    }
    return new TextDecoder('utf-8', { fatal: true }).decode(await readBody(answer, documentLimits.bytes));
  });
}

function parseClient(text: string, url: URL): ClientLookup {
  const metadata = MetadataDocument.safeParse(parseJson(text));
  const refuse = (problem: string) => ({ problem: `The description of the app at ${url.host} ${problem}.` });
  if (!metadata.success) return refuse('is not complete');
  const { client_id: id, client_name: name, redirect_uris: redirectUris, ...methods } = metadata.data;
  if (id !== url.href) return refuse('belongs to another address');
  // A client may prefer a method that this server does not support, as long as the client also lists `none`.
  const { token_endpoint_auth_method: method = 'none', token_endpoint_auth_methods_supported: others = [] } = methods;
  if (method !== 'none' && !others.includes('none'))
    return refuse('requires a way to authenticate that this server does not support');
  // Other redirect URIs, for example of a desktop app, are left out: this server never redirects to them.
  return { id, name: shortenName(name), host: url.hostname, redirectUris: redirectUris.filter(isRedirectUri) };
}

/** Returns a name without invisible characters and short enough for one line. Undefined if nothing is left. */
function shortenName(name = ''): string | undefined {
  const cleanName = sanitizeLine(name.slice(0, 4 * maxNameLength));
  if (cleanName.length > maxNameLength) return `${cleanName.slice(0, maxNameLength - 1).toWellFormed()}…`;
  return cleanName || undefined;
}

const isLoopbackHost = (host: string) => ['localhost', '127.0.0.1', '[::1]'].includes(host);

/** Returns whether a URI is `https:`, or `http:` on the caller's own machine (RFC 8252, 7.3), and safe to redirect to. */
function isRedirectUri(uri: string): boolean {
  // The URL parser would drop characters that a reader of the text sees.
  if (uri.length > maxUriLength || !/^[\x21-\x7e]+$/.test(uri) || uri.includes('\\') || !URL.canParse(uri))
    return false;
  const { protocol, hostname, username, password, hash, searchParams } = new URL(uri);
  // The server adds these parameters. If the URI already had them, the client could read the wrong value.
  if (['code', 'state', 'iss', 'error'].some((name) => searchParams.has(name))) return false;
  if (username || password || hash || uri.includes('#') || !plainHostPattern.test(hostname)) return false;
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackHost(hostname));
}

/**
 * Returns whether the server may redirect to a URI for a client. The URI must equal a URI that the client listed. Only
 * the port on loopback may differ (RFC 8252, 7.3).
 */
export function canRedirectTo({ redirectUris }: Client, uri: string): boolean {
  if (!isRedirectUri(uri)) return false;
  const removeLoopbackPort = (text: string): string => {
    const url = new URL(text);
    if (url.protocol !== 'http:') return text;
    url.port = '';
    return url.href;
  };
  return redirectUris.some((listed) => listed === uri || removeLoopbackPort(listed) === removeLoopbackPort(uri));
}
