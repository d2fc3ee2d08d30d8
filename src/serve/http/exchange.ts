import type { ServerResponse } from 'node:http';
import type { JSONRPCRequest } from '@modelcontextprotocol/sdk/types.js';

/** One HTTP request, read and let in. */
export interface Exchange {
  request: Request;
  /** The request's JSON. */
  body: unknown;
  /** Whose request it is: names the key's share of what the process keeps. */
  owner: string;
  /** The key calls are made with. */
  key: string;
  /** Has `callOff` called when the caller hangs up before the answer; returns what undoes that. */
  onHangUp(callOff: () => void): () => void;
}

/** One that a kept server can be asked, because its SDK would take it as it is. */
export type PlainExchange = Exchange & { body: JSONRPCRequest };

export type Serve = (exchange: Exchange) => Promise<Response>;

/** How the SDKs hand a key from the request to the handler. */
export const authInfoOf = ({ key, owner }: Exchange) => ({
  authInfo: { token: key, clientId: owner, scopes: [] },
});

export const answered = (message: object): Response =>
  new Response(JSON.stringify(message), { headers: { 'content-type': 'application/json' } });

/**
 * For an exchange on this response: told by the connection itself, because the signal of a web `Request` costs more
 * than all else that is done to serve one.
 */
export const hangUpOf =
  (response: ServerResponse): Exchange['onHangUp'] =>
  (callOff) => {
    if (response.closed) callOff();
    response.once('close', callOff);
    return () => response.off('close', callOff);
  };
