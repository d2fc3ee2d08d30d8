import type { ServerResponse } from 'node:http';
import { getConnInfo } from '@hono/node-server/conninfo';
import {
  hostHeaderValidationResponse,
  isJsonContentType,
  localhostAllowedHostnames,
  originValidationResponse,
  validateOriginHeader,
} from '@modelcontextprotocol/server';
import type { Context, MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';
import type { RefusalLimit } from './auth-rate-limit.ts';
import type { KeyStandings } from './known-keys.ts';
import type { Partition } from './tenant-id.ts';

/** What a key must look like before it travels anywhere: the live prefix, then RFC 6750's characters (document, *Authentication* 2). */
const keyShape = /^[Bb][Ee][Aa][Rr][Ee][Rr] +(svc_live_[\w.~+/-]{1,256}=*)$/;

/** Requests must be addressed to one of our names and, if a web page sent them, come from one we know. */
export function addressedToUs(
  allowedHosts: readonly string[] | undefined,
  allowedOrigins: readonly string[],
  host = 'localhost',
) {
  const hosts = [...(allowedHosts ?? [...localhostAllowedHostnames(), host])];
  const origins = [...allowedOrigins];
  const guard: MiddlewareHandler = async ({ req }, next) =>
    hostHeaderValidationResponse(req.raw, hosts) ?? originValidationResponse(req.raw, origins) ?? next();
  return guard;
}

/** The same for the local library: requests must be addressed to one of its names, or come from this machine. */
export function addressedTo(ours: readonly string[], fetch: (request: Request) => Promise<Response>) {
  const hosts = [...ours, ...localhostAllowedHostnames()];
  return async (request: Request): Promise<Response> => hostHeaderValidationResponse(request, hosts) ?? fetch(request);
}

/** Lets the pages of allowed origins read answers, as browsers ask of us first. */
export const readableBy = (allowedOrigins: readonly string[]): MiddlewareHandler =>
  cors({
    origin: (origin) => (validateOriginHeader(origin, [...allowedOrigins]).ok ? origin : null),
    allowMethods: ['POST'],
    allowHeaders: ['Authorization', 'Content-Type', 'Mcp-Protocol-Version', 'Mcp-Method', 'Mcp-Name'],
    exposeHeaders: ['WWW-Authenticate', 'Retry-After'],
    maxAge: 600,
  });

/** Whose request it is, once its key was looked at. */
export type Keyed = { Bindings: { outgoing: ServerResponse }; Variables: { caller: { key: string; owner: string } } };

export interface KeyGuards {
  limit: RefusalLimit;
  standings: KeyStandings;
  partition: Partition;
}

/**
 * Refuses requests without a key that can be one, and keys where logs would keep them. An address whose keys were
 * refused too often, here or by the service, has to wait before another key of it is looked at.
 */
export function keyed({ limit, standings, partition }: KeyGuards): MiddlewareHandler<Keyed> {
  return async (context, next) => {
    const address = getConnInfo(context).remote.address ?? '';
    const key = keyShape.exec(context.req.header('authorization') ?? '')?.[1];
    const owner = key === undefined ? '' : partition(key);
    const seconds = standings.wasTaken(owner) ? undefined : await limit.secondsToWait(address);
    if (seconds !== undefined) {
      context.header('Retry-After', String(seconds));
      return refuse(context, 429, 'Too many keys of this address were refused.');
    }
    if (hasKeyInQuery(context)) {
      return refuse(context, 400, 'A key must not be in the address: send it in the header "Authorization: Bearer …".');
    }
    if (key === undefined) {
      await limit.refused(address);
      return unauthorized(context);
    }
    standings.cameFrom(owner, address);
    context.set('caller', { key, owner });
    return next();
  };
}

function hasKeyInQuery({ req }: Context): boolean {
  const query = Object.entries(req.query()).flat();
  return query.some((part) => part === 'access_token' || /svc_[a-z]+_/i.test(part));
}

function unauthorized(context: Context) {
  // Several such headers read as one with a comma and a space, which no key has.
  const given = context.req.header('authorization') === undefined ? '' : ', error="invalid_token"';
  context.header('WWW-Authenticate', `Bearer realm="ad-library-mcp"${given}`);
  return refuse(context, 401, 'Every request needs your API key in one header "Authorization: Bearer svc_live_…".');
}

export const json: MiddlewareHandler = async (context, next) =>
  isJsonContentType(context.req.header('content-type') ?? null)
    ? next()
    : refuse(context, 415, 'The body must be application/json.');

type Refusal = 400 | 401 | 404 | 405 | 413 | 415 | 429 | 500 | 503;

/** JSON-RPC errors without an id, as the transport's specification has it for refusals of HTTP. */
export const refuse = (context: Context, status: Refusal, message: string, code = -32_000) =>
  context.json({ jsonrpc: '2.0', error: { code, message }, id: null }, status);
