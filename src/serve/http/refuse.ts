import type { Context } from 'hono';

type Status = 400 | 401 | 403 | 404 | 405 | 413 | 415 | 429 | 500 | 503;

const errorOf = (message: string, code = -32_000) => ({ jsonrpc: '2.0', error: { code, message }, id: null });

/** Refuses a request with a JSON-RPC error without an id, as the transport's specification has it. */
export const refuse = (context: Context, status: Status, message: string, code?: number) =>
  context.json(errorOf(message, code), status);

/** The same where there is no context. */
export const errorResponse = (status: Status, message: string) => Response.json(errorOf(message), { status });
