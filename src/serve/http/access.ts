import { hash, randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import { localhostAllowedHostnames, validateHostHeader, validateOriginHeader } from '@modelcontextprotocol/server';
import type { Context, MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';
import { LRUCache } from 'lru-cache';
import type { Credentials } from '../../api/client.ts';
import type { CallEvent } from '../../log/log.ts';
import { hostInAddress } from './server.ts';

type Status = 400 | 401 | 403 | 404 | 405 | 413 | 415 | 429 | 500 | 503;

const errorOf = (message: string, code = -32_000) => ({ jsonrpc: '2.0', error: { code, message }, id: null });

/** Refuses a request with a JSON-RPC error without an id, as the transport's specification has it. */
export const refuse = (context: Context, status: Status, message: string, code?: number) =>
  context.json(errorOf(message, code), status);

/** The same where there is no context. */
const errorResponse = (status: Status, message: string) => Response.json(errorOf(message), { status });

export interface AllowedNames {
  /** Where the server listens, which is an allowed name unless others are given. */
  host?: string | undefined;
  /** Host names a request may be addressed to; loopback names when absent. */
  allowedHosts?: readonly string[] | undefined;
  /** Host names of web pages that may call; none when empty. */
  allowedOrigins: readonly string[];
}

type Names = Pick<AllowedNames, 'host' | 'allowedHosts'>;

/** Requests must be addressed to one of our names and, if a web page sent them, come from an allowed origin. */
export function validateHostAndOrigin({ allowedOrigins, ...names }: AllowedNames): MiddlewareHandler {
  const hosts = hostsOf(names);
  const origins = [...allowedOrigins];
  const isOwn = ownLoopbackOrigin(names.host);
  return async ({ req }, next) => {
    const [host, origin] = [req.header('host'), req.header('origin')];
    return wrongHost(host, hosts) ?? (isOwn(origin, host) ? undefined : wrongOrigin(origin, origins)) ?? next();
  };
}

/** Whether an origin is the address that the request was sent to, on a server that only this machine reaches. */
function ownLoopbackOrigin(bound = 'localhost') {
  const loopback = localhostAllowedHostnames();
  const isBound = loopback.includes(hostInAddress(bound));
  return (origin: string | undefined, host: string | undefined): boolean =>
    isBound && origin === `http://${host}` && validateHostHeader(host, loopback).ok;
}

/** For probes: orchestrators use the address of the machine, and DNS rebinding attacks need a name. */
export function validateHostUnlessAddress(names: Names): MiddlewareHandler {
  const hosts = hostsOf(names);
  return async ({ req }, next) => {
    const host = req.header('host');
    return isAddress(host) ? next() : (wrongHost(host, hosts) ?? next());
  };
}

/** The same for a handler without middleware: requests must be addressed to one of these names, or to loopback. */
export function onlyForHosts(names: readonly string[], fetch: (request: Request) => Promise<Response>) {
  const hosts = [...names, ...localhostAllowedHostnames()];
  return async (request: Request): Promise<Response> =>
    wrongHost(request.headers.get('host') ?? undefined, hosts) ?? fetch(request);
}

const hostsOf = ({ allowedHosts, host = 'localhost' }: Names): string[] => [
  ...(allowedHosts ?? [...localhostAllowedHostnames(), host]),
];

function wrongHost(host: string | undefined, allowed: string[]): Response | undefined {
  if (validateHostHeader(host, allowed).ok) return undefined;
  return errorResponse(
    403,
    'The host name in the address is not allowed: AD_LIBRARY_ALLOWED_HOSTS (--allowed-hosts) does not list it.',
  );
}

function wrongOrigin(origin: string | undefined, allowed: string[]): Response | undefined {
  if (validateOriginHeader(origin, allowed).ok) return undefined;
  return errorResponse(
    403,
    'Web pages of this origin are not allowed: AD_LIBRARY_ALLOWED_ORIGINS (--allowed-origins) does not list it.',
  );
}

function isAddress(host = ''): boolean {
  const url = `http://${host}`;
  return URL.canParse(url) && isIP(new URL(url).hostname.replace(/^\[(.*)\]$/, '$1')) !== 0;
}

/** Lets web pages of the allowed origins read answers; browsers ask first. */
export const corsFor = (allowedOrigins: readonly string[]): MiddlewareHandler =>
  cors({
    origin: (origin) => (validateOriginHeader(origin, [...allowedOrigins]).ok ? origin : null),
    allowMethods: ['POST'],
    allowHeaders: ['Authorization', 'Content-Type', 'Mcp-Protocol-Version', 'Mcp-Method', 'Mcp-Name'],
    exposeHeaders: ['WWW-Authenticate', 'Retry-After'],
    maxAge: 600,
  });

/** Keys that the service accepted lately, and how many others each address may try in a minute. */
export interface CallerKeys {
  isKnown(tenantId: string): Promise<boolean>;
  /** Counts a key that is not known yet; returns the seconds to wait if the address has tried too many. */
  admit(tenantId: string, address: string): Promise<number | undefined>;
  /** Learns whether a key is accepted, and takes it off the count if it was not rejected. */
  onCall(event: CallEvent): void;
}

/** Accepted keys by tenant id, in this process or shared by all replicas. */
interface KnownKeys {
  has(tenantId: string): Promise<boolean>;
  add(tenantId: string): void;
  remove(tenantId: string): void;
}

/** How many unknown keys addresses have tried, in this process or at all replicas. */
interface TriedKeys {
  /** Adds to the count of an address, which ends a minute after its first key. */
  add(address: string, more: 1 | -1): Promise<{ tried: number; msLeft: number }>;
}

interface CallerKeysOptions {
  /** 0 for no limit. */
  perMinute: number;
  /** A clock that only goes on. */
  now: () => number;
  known?: KnownKeys | undefined;
  tried?: TriedKeys | undefined;
}

/** How long accepted keys are remembered, in milliseconds, and how many; the least used go first. */
const knownMs = 15 * 60_000;
const maxKnown = 10_000;
const minute = 60_000;
const maxAddresses = 10_000;
/** Keys that wait for their first answer; until it comes, they are not counted again. */
const maxPending = 10_000;

export function createCallerKeys(options: CallerKeysOptions): CallerKeys {
  const { perMinute, now, known = knownHere(now), tried = triedHere(now) } = options;
  const pending = new LRUCache<string, string>({ max: maxPending, ...forAMinute(now) });
  return {
    isKnown: (tenantId) => known.has(tenantId),
    async admit(tenantId, address) {
      if (perMinute === 0 || pending.has(tenantId) || (await known.has(tenantId))) return undefined;
      // Concurrent calls with one key count once.
      if (pending.has(tenantId)) return undefined;
      pending.set(tenantId, address);
      const count = await tried.add(address, 1);
      if (count.tried <= perMinute) return undefined;
      pending.delete(tenantId);
      await tried.add(address, -1);
      return Math.max(1, Math.ceil(count.msLeft / 1000));
    },
    onCall(event) {
      const { tenantId } = event;
      if (isAccepted(event)) known.add(tenantId);
      else if (isRefused(event)) known.remove(tenantId);
      const address = pending.get(tenantId);
      if (address === undefined || !tellsOfKey(event)) return;
      pending.delete(tenantId);
      if (!isRefused(event)) void tried.add(address, -1);
    },
  };
}

function knownHere(now: () => number): KnownKeys {
  const accepted = new LRUCache<string, true>({ max: maxKnown, ttl: knownMs, ttlResolution: 0, perf: { now } });
  return {
    has: async (tenantId) => accepted.has(tenantId),
    add: (tenantId) => void accepted.set(tenantId, true),
    remove: (tenantId) => void accepted.delete(tenantId),
  };
}

/** The count of this process. */
export function triedHere(now: () => number): TriedKeys {
  const counts = new LRUCache<string, number>({ max: maxAddresses, ...forAMinute(now) });
  return {
    add: async (address, more) => {
      const tried = Math.max(0, (counts.get(address) ?? 0) + more);
      counts.set(address, tried);
      return { tried, msLeft: counts.getRemainingTTL(address) };
    },
  };
}

const forAMinute = (now: () => number) => ({ ttl: minute, ttlResolution: 0, noUpdateTTL: true, perf: { now } });

/** The document's errors about the account or what was asked for: the service checks the key before. */
const authenticated = [402, 403, 404, 422, 429];

/**
 * An answer of the service to a good key: a success that is not from the cache, or an error. Only the service gives its
 * errors a request id: a gateway that answers 403 or 429 has not seen the key, and neither has a service that this
 * server did not ask.
 */
const isAccepted = ({ kind, cached, status = 0, requestId }: CallEvent): boolean =>
  kind === undefined ? cached !== true : authenticated.includes(status) && Boolean(requestId);

const isRefused = ({ kind }: CallEvent): boolean => kind === 'unauthorized';

/** Whether a call shows if its key is valid: not if it never reached the service, or if its caller left. */
const tellsOfKey = ({ kind = '', status }: CallEvent): boolean =>
  status !== undefined || !['busy', 'cancelled', 'credit_budget', 'internal', 'invalid_request'].includes(kind);

/** What a key must look like before it is sent anywhere: the live prefix, then RFC 6750's characters (document, *Authentication* 2). */
const keyShape = /^[Bb][Ee][Aa][Rr][Ee][Rr] +(svc_live_[\w.~+/-]{1,256}=*)$/;

/** Whose request it is, once its key has been read. */
export type Authenticated = { Variables: { credentials: Credentials } };

/** Refuses requests without a well-formed key, and keys in the address, where logs would keep them. */
export function requireApiKey(tenantIdOf: TenantIdOf): MiddlewareHandler<Authenticated> {
  return async (context, next) => {
    if (hasKeyInQuery(context)) {
      return refuse(context, 400, 'A key must not be in the address: send it in the header "Authorization: Bearer …".');
    }
    const apiKey = keyShape.exec(context.req.header('authorization') ?? '')?.[1];
    if (apiKey === undefined) return unauthorized(context);
    context.set('credentials', { apiKey, tenantId: tenantIdOf(apiKey) });
    return next();
  };
}

function hasKeyInQuery({ req }: Context): boolean {
  const query = Object.entries(req.query()).flat();
  return query.some((part) => part === 'access_token' || /svc_[a-z]+_/i.test(part));
}

function unauthorized(context: Context) {
  // Several such headers are joined with a comma and a space, which no key contains.
  const given = context.req.header('authorization') === undefined ? '' : ', error="invalid_token"';
  context.header('WWW-Authenticate', `Bearer realm="ad-library-mcp"${given}`);
  return refuse(context, 401, 'Every request needs your API key in one header "Authorization: Bearer svc_live_…".');
}

/** Tenant id of a key: keeps what is remembered of one key apart from all others, without keeping the key. */
type TenantIdOf = (apiKey: string) => string;

/**
 * A hash with a secret, so that nobody else can make one. It is never shown.
 * @param secret of all replicas; by default one of this process alone
 */
export const createTenantIds =
  (secret = randomBytes(32).toString('hex')): TenantIdOf =>
  (apiKey) =>
    hash('sha256', `${secret}${apiKey}`, 'base64url');
