import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import { createMcpHandler, isLegacyRequest } from '@modelcontextprotocol/server';
import { bindV1 } from '../mcp/bind-v1.ts';
import { bindV2 } from '../mcp/bind-v2.ts';
import type { Catalog } from '../mcp/catalog.ts';
import { createCancelNotices } from './cancel-notices.ts';
import { idleServers } from './idle-servers.ts';
import { cancelNoticesIn, claimsModern, type Message, messagesIn, requestsIn } from './messages.ts';

export interface Exchange {
  request: Request;
  /** The request's JSON. */
  body: unknown;
  /** Whose request it is. */
  key: string;
  /** What calls are made with: the key, or nothing where there is no address to send it to. */
  token: string | undefined;
}

type Serve = (exchange: Exchange) => Promise<Response>;

/**
 * Answers each request in the era it speaks. The key comes with every message, so no server holds one, and a server
 * serves one exchange at a time. It is used again after an exchange of one request that was answered to its end:
 * closing it clears what the SDK keeps of an exchange. Only `initialize` tells a server of 2025 who its caller is,
 * and notices may be handled after their exchange has ended, so servers that saw either are not used again.
 */
export function serveBothEras(catalog: Catalog, onerror: (error: Error) => void): Serve {
  const legacy = legacyEra(catalog);
  const modern = modernEra(catalog, onerror);
  return async (exchange) => {
    const isModern = messagesIn(exchange.body).some(claimsModern);
    return isModern || !(await isLegacyRequest(exchange.request, exchange.body)) ? modern(exchange) : legacy(exchange);
  };
}

const authInfoOf = ({ token }: Exchange) => token !== undefined && { authInfo: { token, clientId: '', scopes: [] } };

/** 2026-07-28. The SDK closes a server when its exchange ends, also when the caller hangs up. */
function modernEra(catalog: Catalog, onerror: (error: Error) => void): Serve {
  const servers = idleServers(() => bindV2(catalog));
  const options = { legacy: 'reject', onerror } as const;
  const forNotices = createMcpHandler(() => bindV2(catalog), options);
  const forRequests = createMcpHandler(({ requestInfo }) => {
    const server = servers.take();
    server.onclose = () => {
      if (requestInfo?.signal.aborted === false) servers.giveBack(server);
    };
    return server;
  }, options);
  return (exchange) => {
    const handler = requestsIn(messagesIn(exchange.body)).length === 1 ? forRequests : forNotices;
    return handler.fetch(exchange.request, { ...authInfoOf(exchange), parsedBody: exchange.body });
  };
}

/** 2024-11-05 to 2025-11-25, without sessions. A stream would carry progress; no tool reports any, so all is JSON. */
function legacyEra(catalog: Catalog): Serve {
  const servers = idleServers(() => bindV1(catalog));
  const notices = createCancelNotices();

  return async (exchange) => {
    const { request, body, key } = exchange;
    const messages = messagesIn(body);
    const requests = requestsIn(messages);
    for (const { params } of cancelNoticesIn(messages)) notices.arrived(key, params?.requestId);
    const [only] = requests.length === 1 && messages.length === 1 ? requests : [];

    const server = only ? servers.take() : bindV1(catalog);
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
    await server.connect(transport);
    // Whoever hangs up sends no notice, and whoever sends one may stay connected.
    const call = new AbortController();
    request.signal.addEventListener('abort', () => call.abort(), { once: true });
    if (request.signal.aborted) call.abort();
    const ended = only && notices.listen(key, only.id, call);
    try {
      // In a batch, notices would come beside what they are about.
      const parsedBody = requests.length > 0 && messages.length > 1 ? requests : body;
      const answer = transport.handleRequest(request, { ...authInfoOf(exchange), parsedBody });
      return await Promise.race([answer, cancelled(call.signal, only)]);
    } finally {
      ended?.();
      const again = only !== undefined && only.method !== 'initialize' && !call.signal.aborted;
      // A turn later the SDK has noted the request's end, and closing has nothing left to abort.
      setImmediate(async () => {
        await server.close();
        if (again) servers.giveBack(server);
      });
    }
  };
}

/** Nobody waits for it any more, but HTTP ends with an answer. */
function cancelled(signal: AbortSignal, message: Message | undefined): Promise<Response> {
  const error = { code: -32_000, message: 'Cancelled' };
  return new Promise((resolve) => {
    const answer = () => resolve(Response.json({ jsonrpc: '2.0', id: message?.id ?? null, error }));
    signal.addEventListener('abort', answer, { once: true });
    if (signal.aborted) answer();
  });
}
