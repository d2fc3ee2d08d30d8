import { hash, randomBytes } from 'node:crypto';
import { BlockList, isIP } from 'node:net';
import { getConnInfo } from '@hono/node-server/conninfo';
import { localhostAllowedHostnames, validateHostHeader, validateOriginHeader } from '@modelcontextprotocol/server';
import type { Context, MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';
import { LRUCache } from 'lru-cache';
import type { Credentials } from '../../api/client.ts';
import { AdLibraryError } from '../../api/errors.ts';
import type { CallEvent } from '../../logging/log.ts';
import { hostInAddress } from './server.ts';

type Status = 400 | 401 | 403 | 404 | 405 | 413 | 415 | 429 | 500 | 503;

const errorOf = (message: string, code = -32_000) => ({ jsonrpc: '2.0', error: { code, message }, id: null });

/** Refuses a request with a JSON-RPC error without an id, as the transport's specification has it. */
export const refuse = (context: Context, status: Status, message: string, code?: number) =>
  context.json(errorOf(message, code), status);

export interface AllowedNames {
  /** Where the server listens, which is an allowed name unless others are given. */
  host?: string | undefined;
  /** Host names a request may be addressed to; loopback names when absent. */
  allowedHosts?: readonly string[] | undefined;
  allowedOrigins: readonly string[];
  /** The host by which people reach this server from outside, in either list. */
  publicHost?: string | undefined;
}

/** Requests must be addressed to one of our names and, if a web page sent them, come from an allowed origin. */
export function validateHostAndOrigin(names: AllowedNames): MiddlewareHandler {
  const hosts = hostsOf(names);
  const origins = originsOf(names);
  const loopback = localhostAllowedHostnames();
  const isLocal = loopback.includes(hostInAddress(names.host ?? 'localhost'));
  return async ({ req }, next) => {
    const [host, origin] = [req.header('host'), req.header('origin')];
    // The address that the request was sent to, on a server that only this machine reaches.
    const isOwn = isLocal && origin === `http://${host}` && validateHostHeader(host, loopback).ok;
    return wrongHost(host, hosts) ?? (isOwn ? undefined : wrongOrigin(origin, origins)) ?? next();
  };
}

/**
 * Checks the host alone, for paths that pages of any origin may read.
 * @param addresses whether an IP address will do: probes of orchestrators use one, and DNS rebinding needs a name
 */
export function validateHost(names: AllowedNames, { addresses = false } = {}): MiddlewareHandler {
  const hosts = hostsOf(names);
  return async ({ req }, next) => {
    const host = req.header('host');
    return (addresses && isAddress(host) ? undefined : wrongHost(host, hosts)) ?? next();
  };
}

/** What only operators may ask for is not there under the name that people reach this server by. */
export const notUnder =
  (publicHost: string | undefined): MiddlewareHandler =>
  async ({ req, notFound }, next) =>
    publicHost !== undefined && validateHostHeader(req.header('host'), [publicHost]).ok ? notFound() : next();

/** The same for a handler without middleware: requests must be addressed to one of these names, or to loopback. */
export function onlyForHosts(names: readonly string[], fetch: (request: Request) => Promise<Response>) {
  const hosts = [...names, ...localhostAllowedHostnames()];
  return async (request: Request): Promise<Response> =>
    wrongHost(request.headers.get('host') ?? undefined, hosts) ?? fetch(request);
}

const hostsOf = ({ allowedHosts, host = 'localhost', publicHost }: AllowedNames): string[] =>
  [allowedHosts ?? [...localhostAllowedHostnames(), host], publicHost ?? []].flat();

export const originsOf = ({ allowedOrigins, publicHost }: AllowedNames): string[] =>
  [allowedOrigins, publicHost ?? []].flat();

/** The address that a request comes from, for counting tries. For IPv6, its network (/64). */
export type AddressOf = ReturnType<typeof createAddressOf>;

interface Network {
  address: string;
  prefix: number;
  family: 'ipv4' | 'ipv6';
}

/** The address of a connection as it is counted; undefined for the proxy, behind which anybody may be. */
export function createPeerOf(proxy: Network | undefined): (remote: string | undefined) => string | undefined {
  const proxies = new BlockList();
  if (proxy) proxies.addSubnet(proxy.address, proxy.prefix, proxy.family);
  return (remote) => {
    const address = plainAddress(remote);
    const isProxy = address !== '' && proxies.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6');
    return isProxy ? undefined : networkOf(address);
  };
}

/** @param proxy that is believed: the last entry of its `X-Forwarded-For` is the address of the caller */
export function createAddressOf(proxy: Network | undefined) {
  const peerOf = createPeerOf(proxy);
  return (context: Context): string => {
    const { address } = getConnInfo(context).remote;
    const forwarded = context.req.header('x-forwarded-for')?.split(',').at(-1);
    return peerOf(address) ?? networkOf(plainAddress(forwarded) || plainAddress(address));
  };
}

/** A person with one IPv6 address has 2^64 of them, so the first four groups stand for a person. */
function networkOf(address: string): string {
  if (isIP(address) !== 6) return address;
  // The parser writes all addresses alike: zeros left out once, IPv4 in hexadecimal.
  const { hostname } = new URL(`http://[${address.replace(/%.*/, '')}]`);
  const [head = [], tail = []] = hostname
    .slice(1, -1)
    .split('::')
    .map((side) => side.split(':'));
  const zeros = hostname.includes('::') ? Array(8 - head.length - tail.length).fill('0') : [];
  return [...head.map((group) => group || '0'), ...zeros, ...tail].slice(0, 4).join(':');
}

/** Without port, brackets, and the prefix of an IPv4 address inside an IPv6 one; empty if it is none. */
function plainAddress(text = ''): string {
  const trimmed = text.trim().replace(/^\[(.*)\](?::\d+)?$|^([\d.]+):\d+$/, '$1$2');
  const address = trimmed.replace(/^::ffff:(?=[\d.]+$)/i, '');
  return isIP(address) === 0 ? '' : address;
}

const wrongHost = (host: string | undefined, allowed: string[]) =>
  validateHostHeader(host, allowed).ok
    ? undefined
    : notAllowed('The host name in the address is not allowed: AD_LIBRARY_ALLOWED_HOSTS (--allowed-hosts)');

const wrongOrigin = (origin: string | undefined, allowed: string[]) =>
  validateOriginHeader(origin, allowed).ok
    ? undefined
    : notAllowed('Web pages of this origin are not allowed: AD_LIBRARY_ALLOWED_ORIGINS (--allowed-origins)');

const notAllowed = (problem: string) => Response.json(errorOf(`${problem} does not list it.`), { status: 403 });

function isAddress(host = ''): boolean {
  const url = `http://${host}`;
  return URL.canParse(url) && isIP(new URL(url).hostname.replace(/^\[(.*)\]$/, '$1')) !== 0;
}

export const corsFor = (allowedOrigins: readonly string[]): MiddlewareHandler =>
  cors({
    origin: (origin) => (validateOriginHeader(origin, [...allowedOrigins]).ok ? origin : null),
    allowMethods: ['POST'],
    allowHeaders: ['Authorization', 'Content-Type', 'Mcp-Protocol-Version', 'Mcp-Method', 'Mcp-Name'],
    exposeHeaders: ['WWW-Authenticate', 'Retry-After'],
    maxAge: 600,
  });

export type CallerKeys = ReturnType<typeof createCallerKeys>;

interface CallerKeysOptions {
  /** 0 for no limit. */
  perMinute: number;
  /** A monotonic clock, in milliseconds. */
  now: () => number;
  isKnown(tenantId: string): Promise<boolean>;
}

const minute = 60_000;
const maxAddresses = 10_000;
/** Keys that wait for their first answer: until it comes, or for a minute, they are not counted again. */
const maxPending = 10_000;

/** An address may try `perMinute` keys a minute. A key counts when it arrives, until the service accepts it. */
export function createCallerKeys({ perMinute, now, isKnown }: CallerKeysOptions) {
  const addresses = new LRUCache<string, string>({ max: maxPending, ...expiring(now) });
  const deciding = new Map<string, Promise<number | undefined>>();
  const tried = triesOfMinute(now);

  const decide = async (tenantId: string, address: string): Promise<number | undefined> => {
    if (perMinute === 0 || addresses.has(tenantId) || (await isKnown(tenantId))) return undefined;
    const count = tried.add(address, 1);
    if (count.tried > perMinute) {
      tried.add(address, -1);
      return Math.max(1, Math.ceil(count.msLeft / 1000));
    }
    addresses.set(tenantId, address);
    return undefined;
  };

  return {
    isKnown,
    /** Counts a key that is not known yet; returns the seconds to wait if the address has tried too many. */
    admit(tenantId: string, address: string): Promise<number | undefined> {
      // Concurrent calls with one key count once.
      const decision = deciding.get(tenantId) ?? decide(tenantId, address).finally(() => deciding.delete(tenantId));
      deciding.set(tenantId, decision);
      return decision;
    },
    /** Takes a key off the count if it was not rejected. */
    onCall(event: CallEvent): void {
      const address = addresses.get(event.tenantId);
      if (address === undefined || !showsKey(event)) return;
      addresses.delete(event.tenantId);
      if (event.kind !== 'unauthorized') tried.add(address, -1);
    },
  };
}

export function triesOfMinute(now: () => number) {
  const counts = new LRUCache<string, number>({ max: maxAddresses, ...expiring(now) });
  return {
    /** Adds to the count of an address, which ends a minute after its first try. */
    add(address: string, more: 1 | -1) {
      const tried = Math.max(0, (counts.get(address) ?? 0) + more);
      counts.set(address, tried);
      return { tried, msLeft: counts.getRemainingTTL(address) };
    },
  };
}

const expiring = (now: () => number) => ({ ttl: minute, ttlResolution: 0, noUpdateTTL: true, perf: { now } });

/** Whether a call shows if its key is valid: not if it never reached the service, or if its caller disconnected. */
const showsKey = ({ kind = '', status }: CallEvent): boolean =>
  status !== undefined || !['busy', 'cancelled', 'credit_budget', 'internal', 'invalid_request'].includes(kind);

/**
 * What a key must look like before it is sent anywhere: the live prefix, then RFC 6750's characters (document,
 * *Authentication* 2).
 */
const keyForm = String.raw`svc_live_[\w.~+/-]{1,256}=*`;
const wholeKey = new RegExp(`^${keyForm}$`);
const keyShape = new RegExp(`^[Bb][Ee][Aa][Rr][Ee][Rr] +(${keyForm})$`);
/** What sign-in issues. */
const tokenShape = /^bearer +([\w-]{40,4096})$/i;

export const isKey = (text: string): boolean => wholeKey.test(text);

export type Authenticated = { Variables: { credentials: Credentials } };

interface AccessTokens {
  challenge: string;
  credentials(token: string): Promise<Credentials | undefined>;
}

/** Refuses requests without a well-formed key or a good token, and keys in the address, where logs would keep them. */
export function requireApiKey(tenantIdOf: TenantIdOf, tokens?: AccessTokens): MiddlewareHandler<Authenticated> {
  return async (context, next) => {
    if (hasKeyIn(context)) {
      return refuse(context, 400, 'A key must not be in the address: send it in the header "Authorization: Bearer …".');
    }
    const given = context.req.header('authorization') ?? '';
    const apiKey = keyShape.exec(given)?.[1];
    const token = tokenShape.exec(given)?.[1];
    try {
      const credentials = apiKey
        ? { apiKey, tenantId: tenantIdOf(apiKey) }
        : token && (await tokens?.credentials(token));
      if (!credentials) return unauthorized(context, tokens);
      context.set('credentials', credentials);
    } catch (error) {
      if (!(error instanceof AdLibraryError) || error.failure.kind !== 'unavailable') throw error;
      context.header('Retry-After', '5');
      return refuse(context, 503, 'The shared state of this server cannot be reached, so no token can be checked.');
    }
    return next();
  };
}

export function hasKeyIn({ req }: Context): boolean {
  const query = Object.entries(req.query()).flat();
  return query.some((part) => ['access_token', 'api_key'].includes(part) || /svc_[a-z]+_/i.test(part));
}

function unauthorized(context: Context, tokens: AccessTokens | undefined) {
  // Several such headers are joined with a comma and a space, which no key contains.
  const given = context.req.header('authorization') === undefined ? '' : ', error="invalid_token"';
  context.header('WWW-Authenticate', `Bearer ${tokens?.challenge ?? 'realm="ad-library-mcp"'}${given}`);
  const signIn = tokens ? ', or a token of its sign-in' : '';
  return refuse(
    context,
    401,
    `Every request needs your API key in one header "Authorization: Bearer svc_live_…"${signIn}.`,
  );
}

/** The tenant id of a key: it separates what is remembered of one key from all others, without storing the key. */
export type TenantIdOf = (apiKey: string) => string;

/** A hash that nobody else can compute. @param secret of all replicas; by default one of this process alone */
export const createTenantIds =
  (secret = randomBytes(32).toString('hex')): TenantIdOf =>
  (apiKey) =>
    hash('sha256', `${secret}${apiKey}`, 'base64url');
