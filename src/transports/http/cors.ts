import { validateOriginHeader } from '@modelcontextprotocol/server';
import type { MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';

/** How long a browser may cache the response to a preflight request, in seconds. */
const maxAgeSeconds = 600;

/** Creates a middleware that lets scripts on the allowed origins call the MCP endpoint. */
export const allowOrigins = (allowedOrigins: readonly string[]): MiddlewareHandler =>
  cors({
    origin: (origin) => (validateOriginHeader(origin, [...allowedOrigins]).ok ? origin : null),
    allowMethods: ['POST'],
    allowHeaders: ['Authorization', 'Content-Type', 'Mcp-Protocol-Version', 'Mcp-Method', 'Mcp-Name'],
    exposeHeaders: ['WWW-Authenticate', 'Retry-After'],
    maxAge: maxAgeSeconds,
  });

/**
 * A middleware that lets scripts on any web page call the sign-in endpoints for programs. This is safe because these
 * endpoints use no cookies, so a browser never adds credentials automatically.
 */
export const allowAnyOrigin: MiddlewareHandler = cors({
  origin: '*',
  allowMethods: ['GET', 'POST'],
  maxAge: maxAgeSeconds,
});
