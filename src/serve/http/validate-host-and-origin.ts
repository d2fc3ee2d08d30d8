import { isIP } from 'node:net';
import { localhostAllowedHostnames, validateHostHeader, validateOriginHeader } from '@modelcontextprotocol/server';
import type { MiddlewareHandler } from 'hono';
import { errorResponse } from './refuse.ts';

export interface AllowedNames {
  /** Where the server listens: always one of its names while no others are given. */
  host?: string | undefined;
  /** Host names a request may be addressed to; loopback names when absent. */
  allowedHosts?: readonly string[] | undefined;
  /** Host names of web pages that may call; none when empty. */
  allowedOrigins: readonly string[];
}

type Names = Pick<AllowedNames, 'host' | 'allowedHosts'>;

/** Requests must be addressed to one of our names and, if a web page sent them, come from one we know. */
export function validateHostAndOrigin({ allowedOrigins, ...names }: AllowedNames): MiddlewareHandler {
  const hosts = hostsOf(names);
  const origins = [...allowedOrigins];
  return async ({ req }, next) =>
    wrongHost(req.header('host'), hosts) ?? wrongOrigin(req.header('origin'), origins) ?? next();
}

/** For probes: orchestrators use the address of the machine, and an attack by rebinding DNS needs a name. */
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
    'The host name in the address is not allowed. AD_LIBRARY_ALLOWED_HOSTS lists those that are.',
  );
}

function wrongOrigin(origin: string | undefined, allowed: string[]): Response | undefined {
  if (validateOriginHeader(origin, allowed).ok) return undefined;
  return errorResponse(
    403,
    'Web pages of this origin are not allowed. AD_LIBRARY_ALLOWED_ORIGINS lists those that are.',
  );
}

function isAddress(host = ''): boolean {
  const url = `http://${host}`;
  return URL.canParse(url) && isIP(new URL(url).hostname.replace(/^\[(.*)\]$/, '$1')) !== 0;
}
