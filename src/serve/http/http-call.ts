import type { Credentials } from '../../api/client.ts';
import type { RequestError } from '../../mcp/check-request.ts';
import type { Message } from '../messages.ts';

/** One HTTP request, read and let in. Its signal aborts when the client disconnects before the answer. */
export interface HttpCall {
  request: Request;
  /** The request's JSON. */
  body: unknown;
  credentials: Credentials;
}

export type Serve = (call: HttpCall) => Promise<Response>;

export const errorAnswer = ({ id = null }: Partial<Message> = {}, error: RequestError): Response =>
  Response.json({ jsonrpc: '2.0', id, error });
