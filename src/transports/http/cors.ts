import { validateOriginHeader } from '@modelcontextprotocol/server';
import type { MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';

/** How long a browser may reuse the answer to a preflight request, in seconds. */
const maxAge = 600;

/** Lets programs on web pages of the allowed origins call the MCP endpoint. */
export const corsForOrigins = (allowedOrigins: readonly string[]): MiddlewareHandler =>
  cors({
    origin: (origin) => (validateOriginHeader(origin, [...allowedOrigins]).ok ? origin : null),
    allowMethods: ['POST'],
    allowHeaders: ['Authorization', 'Content-Type', 'Mcp-Protocol-Version', 'Mcp-Method', 'Mcp-Name'],
    exposeHeaders: ['WWW-Authenticate', 'Retry-After'],
    maxAge,
  });

/**
 * Lets programs on any web page read the answers of sign-in's endpoints for programs. Browsers send no credentials to
 * these endpoints by themselves.
 */
export const corsForAnyOrigin: MiddlewareHandler = cors({ origin: '*', allowMethods: ['GET', 'POST'], maxAge });
