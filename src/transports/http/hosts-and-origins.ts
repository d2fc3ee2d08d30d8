import { isIP } from 'node:net';
import { localhostAllowedHostnames, validateHostHeader, validateOriginHeader } from '@modelcontextprotocol/server';
import type { MiddlewareHandler } from 'hono';
import { jsonRpcError } from './refusals.ts';
import { hostInAddress } from './server.ts';

export interface AllowedNames {
  /** The host on which the server listens. It is an allowed name unless `allowedHosts` is given. */
  host?: string | undefined;
  /** Host names to which a request may be addressed. By default, the loopback names and `host`. */
  allowedHosts?: readonly string[] | undefined;
  allowedOrigins: readonly string[];
  /** The host of the public URL. It is an allowed host and an allowed origin. */
  publicHost?: string | undefined;
}

/**
 * Refuses requests that are addressed to a host that is not allowed, and requests of web pages whose origin is not
 * allowed. A server that listens on loopback also allows its own origin.
 */
export function validateHostAndOrigin(names: AllowedNames): MiddlewareHandler {
  const hosts = allowedHostsOf(names);
  const origins = allowedOriginsOf(names);
  const loopback = localhostAllowedHostnames();
  const isLocal = loopback.includes(hostInAddress(names.host ?? 'localhost'));
  return async ({ req }, next) => {
    const [host, origin] = [req.header('host'), req.header('origin')];
    const isOwnOrigin = isLocal && origin === `http://${host}` && validateHostHeader(host, loopback).ok;
    return refuseHost(host, hosts) ?? (isOwnOrigin ? undefined : refuseOrigin(origin, origins)) ?? next();
  };
}

/**
 * Checks only the host of a request, for paths that web pages of any origin may read.
 * @param options with `addresses`, an IP address is accepted as host: health checks of orchestrators use one, and DNS
 * rebinding needs a name
 */
export function validateHost(names: AllowedNames, { addresses = false } = {}): MiddlewareHandler {
  const hosts = allowedHostsOf(names);
  return async ({ req }, next) => {
    const host = req.header('host');
    return (addresses && isAddress(host) ? undefined : refuseHost(host, hosts)) ?? next();
  };
}

/** Answers 404 under the public host, for paths that only operators may read. */
export const notUnder =
  (publicHost: string | undefined): MiddlewareHandler =>
  async ({ req, notFound }, next) =>
    publicHost !== undefined && validateHostHeader(req.header('host'), [publicHost]).ok ? notFound() : next();

/** Wraps a fetch handler, so that only requests addressed to one of the names or to loopback reach it. */
export function onlyForHosts(names: readonly string[], fetch: (request: Request) => Promise<Response>) {
  const hosts = [...names, ...localhostAllowedHostnames()];
  return async (request: Request): Promise<Response> =>
    refuseHost(request.headers.get('host') ?? undefined, hosts) ?? fetch(request);
}

/** Returns the origin under which a request was sent. Beyond this machine, a proxy in front of the server speaks TLS. */
export function originOfHost(host = ''): string {
  return `${isLoopbackName(host) ? 'http' : 'https'}://${host}`;
}

export const isLoopbackName = (host: string | undefined): boolean =>
  validateHostHeader(host, localhostAllowedHostnames()).ok;

const allowedHostsOf = ({ allowedHosts, host = 'localhost', publicHost }: AllowedNames): string[] =>
  [allowedHosts ?? [...localhostAllowedHostnames(), host], publicHost ?? []].flat();

export const allowedOriginsOf = ({ allowedOrigins, publicHost }: AllowedNames): string[] =>
  [allowedOrigins, publicHost ?? []].flat();

const refuseHost = (host: string | undefined, allowed: string[]) =>
  validateHostHeader(host, allowed).ok
    ? undefined
    : notAllowed('The host name in the address is not allowed: AD_LIBRARY_ALLOWED_HOSTS (--allowed-hosts)');

const refuseOrigin = (origin: string | undefined, allowed: string[]) =>
  validateOriginHeader(origin, allowed).ok
    ? undefined
    : notAllowed('Web pages of this origin are not allowed: AD_LIBRARY_ALLOWED_ORIGINS (--allowed-origins)');

const notAllowed = (problem: string) => Response.json(jsonRpcError(`${problem} does not list it.`), { status: 403 });

function isAddress(host = ''): boolean {
  const url = `http://${host}`;
  return URL.canParse(url) && isIP(new URL(url).hostname.replace(/^\[(.*)\]$/, '$1')) !== 0;
}
