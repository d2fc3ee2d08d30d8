import type { Context } from 'hono';

type Status = 400 | 401 | 403 | 404 | 405 | 406 | 413 | 415 | 429 | 500 | 503;

/**
 * Creates a JSON-RPC error without an id, for a request that is rejected before its message is read. -32000 is the
 * first code that JSON-RPC reserves for servers.
 */
export const createJsonRpcError = (message: string, code = -32_000) => ({
  jsonrpc: '2.0',
  error: { code, message },
  id: null,
});

/** Rejects an HTTP request with a status and a JSON-RPC error without an id (MCP specification, *Transports*). */
export const refuse = (context: Context, status: Status, message: string, code?: number) =>
  context.json(createJsonRpcError(message, code), status);
