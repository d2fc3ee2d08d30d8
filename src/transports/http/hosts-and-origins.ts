import { isIP } from 'node:net';
import { localhostAllowedHostnames, validateHostHeader, validateOriginHeader } from '@modelcontextprotocol/server';
import type { MiddlewareHandler } from 'hono';
import { createJsonRpcError } from './refusals.ts';
import { formatUrlHost } from './server.ts';

/**
 * The host names and origins that requests may use. To prevent DNS rebinding attacks, requests with other names are
 * rejected.
 */
export interface AllowedNames {
  /** The host on which the server listens. Requests may use this host name unless `allowedHosts` is set. */
  host?: string | undefined;
  /** The allowed host names in the `Host` header. The default is `host` and the loopback names. */
  allowedHosts?: readonly string[] | undefined;
  /** The host names (without scheme and port) of the web pages that may call the server. */
  allowedOrigins: readonly string[];
  /** The host of the public URL. It is always an allowed host and an allowed origin. */
  publicHost?: string | undefined;
}

/**
 * Creates a middleware that checks the `Host` and `Origin` headers against the allowed names. A server that listens on
 * a loopback address also accepts its own origin, i.e. requests from its web pages.
 */
export function validateHostAndOrigin(allowedNames: AllowedNames): MiddlewareHandler {
  const allowedHosts = listAllowedHosts(allowedNames);
  const allowedOrigins = listAllowedOrigins(allowedNames);
  const loopbackNames = localhostAllowedHostnames();
  const listensOnLoopback = loopbackNames.includes(formatUrlHost(allowedNames.host ?? 'localhost'));
  return async ({ req }, next) => {
    const [host, origin] = [req.header('host'), req.header('origin')];
    const isOwnOrigin = listensOnLoopback && origin === `http://${host}` && validateHostHeader(host, loopbackNames).ok;
    return refuseHost(host, allowedHosts) ?? (isOwnOrigin ? undefined : refuseOrigin(origin, allowedOrigins)) ?? next();
  };
}

/**
 * Creates a middleware that checks only the `Host` header, for paths that web pages of any origin may read.
 * @param options If `allowIpAddresses` is true, every IP address is an allowed host, because orchestrators and
 * Prometheus send IP addresses. This is safe, because a DNS rebinding attack needs a host name.
 */
export function validateHost(allowedNames: AllowedNames, { allowIpAddresses = false } = {}): MiddlewareHandler {
  const allowedHosts = listAllowedHosts(allowedNames);
  return async ({ req }, next) => {
    const host = req.header('host');
    return (allowIpAddresses && isIpAddress(host) ? undefined : refuseHost(host, allowedHosts)) ?? next();
  };
}

/**
 * Creates a middleware that responds with status 404 to requests for the public host. The middleware protects paths
 * that only operators may read.
 */
export const hideFromPublicHost =
  (publicHost: string | undefined): MiddlewareHandler =>
  async ({ req, notFound }, next) =>
    publicHost !== undefined && validateHostHeader(req.header('host'), [publicHost]).ok ? notFound() : next();

/**
 * Wraps a fetch handler so that it receives only requests for allowed hosts, i.e. for `allowedHosts` and the loopback
 * names.
 */
export function restrictToHosts(
  allowedHosts: readonly string[],
  fetchHandler: (request: Request) => Promise<Response>,
) {
  const acceptedHosts = [...allowedHosts, ...localhostAllowedHostnames()];
  return async (request: Request): Promise<Response> =>
    refuseHost(request.headers.get('host') ?? undefined, acceptedHosts) ?? fetchHandler(request);
}

/**
 * Returns the origin for a `Host` header, e.g. `https://ads.example.com`. The scheme is `https:`, because a proxy in
 * front of a public server handles TLS. For a loopback name, the scheme is `http:`.
 */
export function getOriginOfHost(host = ''): string {
  return `${isLoopbackName(host) ? 'http' : 'https'}://${host}`;
}

/** Returns true if a `Host` header names this machine, e.g. `localhost:3000` or `127.0.0.1`. */
export const isLoopbackName = (host: string | undefined): boolean =>
  validateHostHeader(host, localhostAllowedHostnames()).ok;

const listAllowedHosts = ({ allowedHosts, host = 'localhost', publicHost }: AllowedNames): string[] =>
  [allowedHosts ?? [...localhostAllowedHostnames(), host], publicHost ?? []].flat();

/** Returns the host names of all web pages that may call the server, including the host of the public URL. */
export const listAllowedOrigins = ({ allowedOrigins, publicHost }: AllowedNames): string[] =>
  [allowedOrigins, publicHost ?? []].flat();

const refuseHost = (host: string | undefined, allowedHosts: string[]) =>
  validateHostHeader(host, allowedHosts).ok
    ? undefined
    : createForbiddenResponse(
        'The host name in the address is not allowed: AD_LIBRARY_ALLOWED_HOSTS (--allowed-hosts)',
      );

const refuseOrigin = (origin: string | undefined, allowedOrigins: string[]) =>
  validateOriginHeader(origin, allowedOrigins).ok
    ? undefined
    : createForbiddenResponse(
        'Web pages of this origin are not allowed: AD_LIBRARY_ALLOWED_ORIGINS (--allowed-origins)',
      );

const createForbiddenResponse = (problem: string) =>
  Response.json(createJsonRpcError(`${problem} does not list it.`), { status: 403 });

function isIpAddress(host = ''): boolean {
  const url = `http://${host}`;
  return URL.canParse(url) && isIP(new URL(url).hostname.replace(/^\[(.*)\]$/, '$1')) !== 0;
}
