import { isIP } from 'node:net';
import { localhostAllowedHostnames, validateHostHeader, validateOriginHeader } from '@modelcontextprotocol/server';
import type { MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';
import { hostInAddress } from './listen.ts';
import { errorResponse } from './refuse.ts';

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
