import { validateOriginHeader } from '@modelcontextprotocol/server';
import type { MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';

/** How long a browser may reuse the answer to a preflight request, in seconds. */
const maxAgeSeconds = 600;

/** Creates a middleware that lets scripts on web pages of the allowed origins call the MCP endpoint. */
export const allowOrigins = (allowedOrigins: readonly string[]): MiddlewareHandler =>
  cors({
    origin: (origin) => (validateOriginHeader(origin, [...allowedOrigins]).ok ? origin : null),
    allowMethods: ['POST'],
    allowHeaders: ['Authorization', 'Content-Type', 'Mcp-Protocol-Version', 'Mcp-Method', 'Mcp-Name'],
    exposeHeaders: ['WWW-Authenticate', 'Retry-After'],
    maxAge: maxAgeSeconds,
  });

/**
 * Lets scripts on any web page call the sign-in endpoints that are meant for programs. This is safe, because these
 * endpoints use no cookies: a browser adds no credentials to a request by itself.
 */
export const allowAnyOrigin: MiddlewareHandler = cors({
  origin: '*',
  allowMethods: ['GET', 'POST'],
  maxAge: maxAgeSeconds,
});
