import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import { isJSONRPCRequest, SUPPORTED_PROTOCOL_VERSIONS } from '@modelcontextprotocol/sdk/types.js';
import { bindV1 } from '../../mcp/bind-v1.ts';
import type { Catalog } from '../../mcp/catalog.ts';
import { cancelNoticesIn, claimsModern, messagesIn, requestsIn } from '../messages.ts';
import { createCancelNotices } from './cancel-notices.ts';
import { answered, authInfoOf, type Exchange, type PlainExchange, type Serve } from './exchange.ts';
import { keptServers } from './kept-servers.ts';

/** Revisions 2024-11-05 to 2025-11-25, without sessions. A stream would carry progress; no tool reports any, so all is JSON. */
export interface LegacyEra {
  ask(exchange: PlainExchange): Promise<Response>;
  /** Whatever is not plain gets a server and a transport of its own. */
  serve: Serve;
}

export function legacyEra(catalog: Catalog): LegacyEra {
  const ask = keptServers((lane) => bindV1(catalog).connect(lane));
  const notices = createCancelNotices();

  /** Whoever hangs up sends no notice, and whoever sends one may stay connected. */
  const listen = (exchange: Exchange, { id }: { id: unknown }, callOff: () => void) => {
    const stop = exchange.onHangUp(callOff);
    const ended = notices.listen(exchange.owner, id, callOff);
    return () => {
      stop();
      ended();
    };
  };

  return {
    async ask(exchange) {
      const { body: request } = exchange;
      const underWay = (callOff: () => void) => listen(exchange, request, callOff);
      const answer = await ask({ request, underWay, ...authInfoOf(exchange) });
      return answered(answer?.message ?? cancelled(request));
    },
    async serve(exchange) {
      const messages = messagesIn(exchange.body);
      for (const { params } of cancelNoticesIn(messages)) notices.arrived(exchange.owner, params?.requestId);
      const requests = requestsIn(messages);
      const [first] = requests;
      const server = bindV1(catalog);
      const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
      await server.connect(transport);
      // In a batch, notices would come beside what they are about.
      const parsedBody = requests.length > 0 && messages.length > 1 ? requests : exchange.body;
      let stop = () => {};
      const calledOff = new Promise<Response>((resolve) => {
        stop = exchange.onHangUp(() => resolve(answered(cancelled(first))));
      });
      try {
        const answer = transport.handleRequest(exchange.request, { ...authInfoOf(exchange), parsedBody });
        return await Promise.race([answer, calledOff]);
      } finally {
        stop();
        await server.close();
      }
    },
  };
}

/** Whether it is a request that can only be of this era, and that the SDK's transport would hand on as it is. */
export function isPlain(exchange: Exchange): exchange is PlainExchange {
  const { request, body } = exchange;
  const version = request.headers.get('mcp-protocol-version');
  const accept = request.headers.get('accept') ?? '';
  return (
    (version === null || SUPPORTED_PROTOCOL_VERSIONS.includes(version)) &&
    accept.includes('application/json') &&
    accept.includes('text/event-stream') &&
    !claimsModern(body) &&
    isJSONRPCRequest(body) &&
    // It tells a server who its caller is.
    body.method !== 'initialize'
  );
}

/** Nobody waits for it any more, but HTTP ends with an answer. */
const cancelled = (message: { id?: unknown } | undefined): object => ({
  jsonrpc: '2.0',
  id: message?.id ?? null,
  error: { code: -32_000, message: 'Cancelled' },
});
