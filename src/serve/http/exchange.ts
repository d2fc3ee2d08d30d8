import type { Credentials } from '../../api/client.ts';

/** One HTTP request, read and let in. Its signal aborts when the client disconnects before the answer. */
export interface Exchange {
  request: Request;
  /** The request's JSON. */
  body: unknown;
  credentials: Credentials;
}

export type Serve = (exchange: Exchange) => Promise<Response>;
