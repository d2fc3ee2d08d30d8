import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import {
  createMcpHandler,
  hostHeaderValidationResponse,
  isLegacyRequest,
  localhostAllowedHostnames,
  originValidationResponse,
} from '@modelcontextprotocol/server';
import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { Log } from '../log.ts';
import { bindV1 } from '../mcp/bind-v1.ts';
import { bindV2 } from '../mcp/bind-v2.ts';
import type { Catalog } from '../mcp/catalog.ts';

export interface HttpOptions {
  catalog: Catalog;
  log: Log;
  /** Host names a request may be addressed to; loopback names when absent. */
  allowedHosts?: readonly string[] | undefined;
  /** Host names of web pages that may call; none when empty. */
  allowedOrigins: readonly string[];
  /** In demo mode every caller shares this key and brings none. */
  demoKey?: string | undefined;
}

/** Arguments of a call are ids and filters: a body past this is not one of ours. */
const largestBody = 1024 * 1024;

/** What a key may look like before it travels anywhere: live keys begin with this prefix (document, *Authentication*). */
const keyShape = /^Bearer (svc_[\x21-\x7e]{1,250})$/i;

/**
 * Streamable HTTP, stateless: a fresh server for every request, chosen by the era the request speaks, with the key
 * that came with it. Nothing of one request outlives it but the answers kept under its key.
 */
export function createHttpApp({ catalog, log, allowedHosts, allowedOrigins, demoKey }: HttpOptions): Hono {
  const hosts = [...(allowedHosts ?? localhostAllowedHostnames())];
  const modern = createMcpHandler(({ authInfo }) => bindV2(catalog, authInfo?.token), {
    legacy: 'reject',
    onerror: (error) => log.debug('modern', { error: error.message }),
  });
  const app = new Hono();
  app.get('/healthz', (context) => context.json({ status: 'ok', version: catalog.serverInfo.version }));
  app.use('/mcp', async (context, next) => {
    const { raw } = context.req;
    return hostHeaderValidationResponse(raw, hosts) ?? originValidationResponse(raw, [...allowedOrigins]) ?? next();
  });
  app.post('/mcp', bodyLimit({ maxSize: largestBody, onError: tooLarge }), async (context) => {
    const key = demoKey ?? keyOf(context);
    if (key === undefined) return unauthorized(context);
    const { raw } = context.req;
    const authInfo = { token: key, clientId: 'caller', scopes: [] };
    return (await isLegacyRequest(raw.clone())) ? serveLegacy(catalog, key, raw) : modern.fetch(raw, { authInfo });
  });
  app.all('/mcp', (context) => {
    context.header('Allow', 'POST');
    return rpcError(
      context,
      405,
      'Only POST is served here: this server is stateless and opens no streams of its own.',
    );
  });
  app.notFound((context) => rpcError(context, 404, 'Nothing is served here. The MCP endpoint is POST /mcp.'));
  app.onError((error, context) => {
    log.error('a request failed', { error: error.stack ?? error.message });
    return rpcError(context, 500, 'The server failed on its own account.');
  });
  return app;
}

async function serveLegacy(catalog: Catalog, key: string, request: Request): Promise<Response> {
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  const server = bindV1(catalog, key);
  await server.connect(transport);
  // A caller who hangs up sends no cancel notice: the closing connection is the signal.
  request.signal.addEventListener('abort', () => void server.close(), { once: true });
  return transport.handleRequest(request);
}

const keyOf = (context: Context): string | undefined => keyShape.exec(context.req.header('authorization') ?? '')?.[1];

function unauthorized(context: Context) {
  context.header('WWW-Authenticate', 'Bearer realm="ad-library-mcp"');
  return rpcError(context, 401, 'Every request needs your API key in the header "Authorization: Bearer svc_live_…".');
}

function tooLarge(context: Context) {
  // The rest of the body is still on its way: only a closed connection ends it.
  context.header('Connection', 'close');
  return rpcError(context, 413, `A request may hold ${largestBody / 1024} KB at most.`);
}

/** JSON-RPC errors without an id, as the transport's specification asks of HTTP-level refusals. */
function rpcError(context: Context, status: 401 | 404 | 405 | 413 | 500, message: string) {
  return context.json({ jsonrpc: '2.0', error: { code: -32_000, message }, id: null }, status);
}
