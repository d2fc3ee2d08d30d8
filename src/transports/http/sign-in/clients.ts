import { LRUCache } from 'lru-cache';
import * as z from 'zod';
import { withDeadline } from '../../../api/abort.ts';
import { parseJson } from '../../../api/json.ts';
import { createLazyGetter } from '../../../lazy-getter.ts';
import {
  createGuardedAgent,
  type GuardedAgent,
  readResponseBody,
  requestWithUniformFailureTime,
  resolveInDns,
} from '../../../pictures/fetch-picture.ts';
import { createEncryption, decodeToken } from '../../../storage/store/encryption.ts';
import { sanitizeLine } from '../../../views/safe-text.ts';
import { Semaphore } from '../../../workers/semaphore.ts';
import { createMinuteCounter } from '../key-attempts.ts';

/**
 * An OAuth client, i.e. an app that wants to use a user's API key. The name of the app is never verified, but its host
 * may be.
 */
export interface Client {
  id: string;
  name: string | undefined;
  /**
   * The host of the client's metadata document. Undefined for a client that registered itself, because the host of such
   * a client is unverified.
   */
  host: string | undefined;
  redirectUris: readonly string[];
}

/** The client that was found, or a problem to show on the sign-in page. */
type ClientOrProblem = Client | { problem: string; retryAfterSeconds?: number };

/** The options of `createClientRegistry`, which registers and finds OAuth clients. */
export interface ClientsOptions {
  /** The secret that encrypts the registrations of clients. All replicas share it. */
  secret: string;
  userAgent: string;
  /** Returns milliseconds from a clock that is never set back. Used to measure durations. */
  monotonicNow: () => number;
  /**
   * Opens the HTTP agent for fetching the metadata documents in which OAuth clients describe themselves. The default
   * agent reaches only public hosts.
   */
  openAgent?: (() => Promise<GuardedAgent>) | undefined;
}

/** The maximum length of a client's name on the sign-in page, in characters. */
const maxNameLength = 60;
const maxRedirectUris = 10;
const maxUriLength = 500;
/**
 * The maximum total length of a client's redirect URIs, in characters. The client id contains the whole registration
 * and is part of every authorization URL, so the registration must stay short.
 */
const maxTotalUriLength = 2000;

/**
 * Limits for fetching the metadata documents of clients. `maxBytes` is the maximum size of a document. `timeoutMs` is
 * the time that a fetch may take, and `maxWaitMs` the time that a fetch may wait for other fetches.
 * `maxFetchesPerMinute` and `maxFetchesPerMinutePerAddress` limit the number of fetches, in total and per IP address.
 */
const documentLimits = {
  maxBytes: 5 * 1024,
  timeoutMs: 5000,
  maxWaitMs: 15_000,
  maxFetchesPerMinute: 240,
  maxFetchesPerMinutePerAddress: 20,
};
/**
 * The maximum number of metadata documents that are fetched at the same time, in total and per IP address of a caller.
 */
const [maxConcurrentFetches, maxConcurrentFetchesPerIp] = [4, 2];
/** How long the server caches the metadata document of a client, in milliseconds. */
const documentCacheMs = 600_000;
const maxCachedDocuments = 1000;
/**
 * How long a fetch takes to fail if its host is unknown or has no public IP address, in milliseconds. The delay is the
 * same in both cases, so that callers cannot find out which internal host names exist.
 */
const nonPublicHostDelayMs = 2000;

const ClientMetadata = z.looseObject({
  client_name: z.string().optional().catch(undefined),
  // Replace a redirect URI that is not a string with an empty string, so that the other URIs remain valid. The empty
  // string is omitted later, because `isAllowedRedirectUri` rejects it.
  redirect_uris: z.array(z.string().catch('')).min(1),
});
/** The registration that a client id contains in encrypted form. */
const ClientRegistration = z.object({ name: z.string().optional(), redirectUris: z.array(z.string()) });
const MetadataDocument = ClientMetadata.extend({
  client_id: z.string(),
  token_endpoint_auth_method: z.string().optional(),
  token_endpoint_auth_methods_supported: z.array(z.string()).optional().catch(undefined),
});

/** Creates the functions that register OAuth clients and find registered clients by id. */
export function createClientRegistry(options: ClientsOptions) {
  const { secret, monotonicNow } = options;
  const encryption = createEncryption({ secret, purpose: 'sign-in' });
  const documentCache = new LRUCache<string, Client>({
    max: maxCachedDocuments,
    ttl: documentCacheMs,
    ttlResolution: 0,
    perf: { now: monotonicNow },
  });
  const pendingLookups = new Map<string, Promise<ClientOrProblem>>();
  const documentFetchCounter = createMinuteCounter(monotonicNow);
  const documentFetchSlots = new Semaphore({
    maxRunningCalls: maxConcurrentFetches,
    maxRunningCallsPerKey: maxConcurrentFetchesPerIp,
    workName: 'apps',
  });
  const { openAgent = openPublicAgent } = options;
  const getAgent = createLazyGetter(openAgent);

  const decryptRegistration = (id: string): Client | undefined => {
    const decryptedText = encryption.decrypt('client', decodeClientId(id));
    const registration = ClientRegistration.safeParse(decryptedText && parseJson(String(decryptedText)));
    if (!registration.success) return undefined;
    const { name, redirectUris } = registration.data;
    return { id, name, host: undefined, redirectUris };
  };

  const fetchClient = async (url: URL, ipAddress: string): Promise<ClientOrProblem> => {
    try {
      const agent = await getAgent();
      const waitTimeoutSignal = AbortSignal.timeout(documentLimits.maxWaitMs);
      const documentText = await documentFetchSlots.runInSlot(ipAddress, waitTimeoutSignal, () =>
        fetchDocument(url, agent, options.userAgent),
      );
      const client = parseClient(documentText, url);
      if (!('problem' in client)) documentCache.set(url.href, client);
      return client;
    } catch {
      return { problem: `The description of the app at ${url.host} could not be read.` };
    }
  };

  /**
   * Counts a fetch of a metadata document and checks the count against `maxPerMinute`. Returns undefined if the fetch
   * is allowed, and otherwise the time that the caller must wait, in milliseconds.
   */
  const checkDocumentFetchLimit = (counterName: string, maxPerMinute: number): number | undefined => {
    const { count, remainingMs } = documentFetchCounter.add(counterName, 1);
    return count > maxPerMinute ? remainingMs : undefined;
  };

  return {
    /**
     * Registers a client. Nothing is stored, because the client id is the encrypted registration (RFC 7591).
     *
     * Only the redirect URIs that this server accepts are registered and returned, which RFC 7591 (section 3.2.1)
     * allows. Some hosts also list the URI of a desktop app. This server does not accept such URIs, because any program
     * on the machine can claim them.
     * @returns the HTTP status and the JSON body of the response
     */
    registerClient(requestBody: unknown) {
      const createErrorResponse = (error: string, problem: string) =>
        [400, { error, error_description: problem }] as const;
      const metadata = ClientMetadata.safeParse(requestBody);
      if (!metadata.success)
        return createErrorResponse('invalid_client_metadata', 'redirect_uris must list at least one URI');
      const { client_name: clientName, redirect_uris: requestedUris } = metadata.data;
      const allowedUris = [...new Set(requestedUris.filter(isAllowedRedirectUri))];
      if (allowedUris.length === 0)
        return createErrorResponse(
          'invalid_redirect_uri',
          `redirect_uris must list an https: URI, or an http: URI on loopback, of at most ${maxUriLength} characters. It must not contain a user name or a fragment, or code, state, iss or error in its query`,
        );
      if (allowedUris.length > maxRedirectUris || allowedUris.join('').length > maxTotalUriLength)
        return createErrorResponse(
          'invalid_redirect_uri',
          `redirect_uris may list at most ${maxRedirectUris} URIs, with at most ${maxTotalUriLength} characters in total`,
        );
      const displayName = sanitizeClientName(clientName);
      const registration = {
        client_id: encodeClientId(
          encryption.encrypt('client', JSON.stringify({ name: displayName, redirectUris: allowedUris })),
        ),
        ...(displayName && { client_name: displayName }),
        redirect_uris: allowedUris,
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
      };
      return [201, registration] as const;
    },
    /**
     * Finds a client by its id. If the id is the URL of a metadata document, fetches the document.
     * @param clientId a client id that this server issued, or the URL of a metadata document
     * @param ipAddress the IP address of the caller, to which the limits apply
     */
    async findClient(clientId: string, ipAddress: string): Promise<ClientOrProblem> {
      const documentUrl = parseDocumentUrl(clientId);
      if (documentUrl === undefined)
        return decryptRegistration(clientId) ?? { problem: 'This server does not know the app that asks.' };
      const knownClient = documentCache.get(documentUrl.href) ?? pendingLookups.get(documentUrl.href);
      if (knownClient) return knownClient;
      const remainingMs =
        checkDocumentFetchLimit(`of ${ipAddress}`, documentLimits.maxFetchesPerMinutePerAddress) ??
        checkDocumentFetchLimit('in all', documentLimits.maxFetchesPerMinute);
      if (remainingMs !== undefined) {
        const retryAfterSeconds = Math.max(1, Math.ceil(remainingMs / 1000));
        return {
          problem: 'Too many new apps have asked in the last minute. Try again later.',
          retryAfterSeconds,
        };
      }
      const lookup = fetchClient(documentUrl, ipAddress).finally(() => pendingLookups.delete(documentUrl.href));
      pendingLookups.set(documentUrl.href, lookup);
      return lookup;
    },
    /**
     * Returns true if this server issued the client id, or if the id could be the URL of a metadata document. The
     * document itself is not fetched.
     */
    canBeClientId: (clientId: string) =>
      parseDocumentUrl(clientId) !== undefined || decryptRegistration(clientId) !== undefined,
    close: async () => void (await getAgent.getIfCreated())?.destroy(),
  };
}

/**
 * Encodes a client id in base64url, with dots instead of underscores. Without underscores, no client id looks like an
 * API key such as `svc_live_…`, which this server refuses in URLs.
 */
const encodeClientId = (encryptedRegistration: Buffer) =>
  encryptedRegistration.toString('base64url').replaceAll('_', '.');
const decodeClientId = (clientId: string) => decodeToken(clientId.replaceAll('.', '_'));

/**
 * Opens an HTTP agent that connects only to public hosts. Ignores the `AD_LIBRARY_MEDIA_HOSTS` setting, which can allow
 * internal hosts for pictures.
 */
const openPublicAgent = () =>
  createGuardedAgent({
    hosts: { allowsPublicHosts: true, listedHosts: [] },
    resolveHost: resolveInDns,
    dnsTimeoutMs: nonPublicHostDelayMs * 0.9,
  });

/**
 * Parses a client id that is the URL of a metadata document (draft-ietf-oauth-client-id-metadata-document, section 3).
 * Returns undefined for all other client ids.
 */
function parseDocumentUrl(clientId: string): URL | undefined {
  const documentUrl = clientId.length <= maxUriLength && URL.canParse(clientId) ? new URL(clientId) : undefined;
  // Accept only normalized URLs: no dot segments, no capital letters in the host, and no port 443. Otherwise, the same
  // client could have several ids.
  if (
    documentUrl?.href !== clientId ||
    documentUrl.protocol !== 'https:' ||
    documentUrl.port !== '' ||
    documentUrl.pathname === '/'
  )
    return undefined;
  return documentUrl.username ||
    documentUrl.password ||
    documentUrl.hash ||
    !plainHostPattern.test(documentUrl.hostname)
    ? undefined
    : documentUrl;
}

const plainHostPattern = /^(?:[a-z\d.-]+|\[[\da-f:]+\])$/;

function fetchDocument(url: URL, agent: GuardedAgent, userAgent: string): Promise<string> {
  return withDeadline({ signals: [], timeoutMs: documentLimits.timeoutMs }, async (signal) => {
    const headers = { accept: 'application/json', 'user-agent': userAgent };
    const response = await requestWithUniformFailureTime(url, { agent, headers, nonPublicHostDelayMs }, signal);
    if (response.statusCode !== 200) {
      response.body.on('error', () => {}).destroy();
      throw new Error('The server did not answer with status 200.');
    }
    return new TextDecoder('utf-8', { fatal: true }).decode(await readResponseBody(response, documentLimits.maxBytes));
  });
}

function parseClient(documentText: string, url: URL): ClientOrProblem {
  const metadata = MetadataDocument.safeParse(parseJson(documentText));
  const createProblem = (problem: string) => ({ problem: `The description of the app at ${url.host} ${problem}.` });
  if (!metadata.success) return createProblem('is not complete');
  const { client_id: id, client_name: name, redirect_uris: redirectUris, ...authenticationMethods } = metadata.data;
  if (id !== url.href) return createProblem('belongs to another address');
  // A client may prefer an authentication method that this server does not support, as long as it also lists `none`.
  const { token_endpoint_auth_method: method = 'none', token_endpoint_auth_methods_supported: supportedMethods = [] } =
    authenticationMethods;
  if (method !== 'none' && !supportedMethods.includes('none'))
    return createProblem('requires a way to authenticate that this server does not support');
  // Omit redirect URIs that this server does not support, such as the URIs of desktop apps. The server never
  // redirects to such a URI.
  return {
    id,
    name: sanitizeClientName(name),
    host: url.hostname,
    redirectUris: redirectUris.filter(isAllowedRedirectUri),
  };
}

/**
 * Removes invisible characters from a client's name, puts the name on one line, and shortens it to `maxNameLength`
 * characters. Returns undefined if no visible character remains.
 */
function sanitizeClientName(clientName = ''): string | undefined {
  const cleanName = sanitizeLine(clientName.slice(0, 4 * maxNameLength));
  if (cleanName.length > maxNameLength) return `${cleanName.slice(0, maxNameLength - 1).toWellFormed()}…`;
  return cleanName || undefined;
}

const isLoopbackRedirectHost = (host: string) => ['localhost', '127.0.0.1', '[::1]'].includes(host);

/**
 * Returns true if the server may safely redirect a browser to the URI. The URI must use `https:`, or `http:` on the
 * user's own machine (RFC 8252, section 7.3).
 */
function isAllowedRedirectUri(uri: string): boolean {
  // Allow only printable ASCII. The URL parser removes or replaces some other characters, so the browser could
  // otherwise open a different URL than the user sees.
  if (uri.length > maxUriLength || !/^[\x21-\x7e]+$/.test(uri) || uri.includes('\\') || !URL.canParse(uri))
    return false;
  const { protocol, hostname, username, password, hash, searchParams } = new URL(uri);
  // Reject a URI that already contains a response parameter, such as `code`. The server adds these parameters later,
  // and the client could then read the wrong value.
  if (['code', 'state', 'iss', 'error'].some((name) => searchParams.has(name))) return false;
  if (username || password || hash || uri.includes('#') || !plainHostPattern.test(hostname)) return false;
  return protocol === 'https:' || (protocol === 'http:' && isLoopbackRedirectHost(hostname));
}

/**
 * Returns true if the server may redirect to the URI on behalf of this client. The URI must be one of the client's
 * redirect URIs. Only the port of a loopback URI may differ (RFC 8252, section 7.3).
 */
export function canRedirectTo({ redirectUris }: Client, uri: string): boolean {
  if (!isAllowedRedirectUri(uri)) return false;
  const removeLoopbackPort = (redirectUri: string): string => {
    const redirectUrl = new URL(redirectUri);
    if (redirectUrl.protocol !== 'http:') return redirectUri;
    redirectUrl.port = '';
    return redirectUrl.href;
  };
  return redirectUris.some(
    (registeredUri) => registeredUri === uri || removeLoopbackPort(registeredUri) === removeLoopbackPort(uri),
  );
}
