import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  createMcpHandler,
  isJSONRPCRequest,
  PROTOCOL_VERSION_META_KEY,
  type Server,
} from '@modelcontextprotocol/server';
import { bindV2 } from '../../mcp/bind-v2.ts';
import type { Catalog } from '../../mcp/catalog.ts';
import { answered, authInfoOf, type Exchange, type PlainExchange, type Serve } from './exchange.ts';
import { keptServers } from './kept-servers.ts';

const revision = '2026-07-28';

/** Nobody is there to read it: what the SDK answers then, too. */
const clientClosedRequest = 499;

/** Revision 2026-07-28. */
export function modernEra(catalog: Catalog, onerror: (error: Error) => void): Serve {
  const handler = createMcpHandler(() => bindV2(catalog), { legacy: 'reject', onerror });
  const ask = keptServers(async (lane) => (await introduced(bindV2(catalog))).connect(lane));
  const classification = { era: 'modern', revision } as const;

  return async (exchange) => {
    const besides = authInfoOf(exchange);
    if (isPlain(exchange)) {
      const underWay = (callOff: () => void) => exchange.onHangUp(callOff);
      const answer = await ask({ request: exchange.body, underWay, classification, ...besides });
      if (!answer) return new Response(null, { status: clientClosedRequest });
      if (!answer.refused) return answered(answer.message);
      // Nothing has run yet; in this era a refusal has an HTTP status too, which the SDK knows.
    }
    return handler.fetch(exchange.request, { ...besides, parsedBody: exchange.body });
  };
}

/** Whether its headers say of it what its body does (specification, *Streamable HTTP*); the SDK checks the rest. */
function isPlain(exchange: Exchange): exchange is PlainExchange {
  const { headers } = exchange.request;
  const { body } = exchange;
  return (
    isJSONRPCRequest(body) &&
    headers.get('mcp-protocol-version') === revision &&
    body.params?._meta?.[PROTOCOL_VERSION_META_KEY] === revision &&
    headers.get('mcp-method') === body.method &&
    headers.get('mcp-name') === (body.params.name ?? null)
  );
}

/** A server takes the revision it speaks from its first exchange, which only the SDK can hold; this one is nobody's. */
async function introduced(server: Server): Promise<Server> {
  const closed = new Promise<void>((resolve) => {
    server.onclose = resolve;
  });
  const method = 'server/discover';
  const _meta = {
    [PROTOCOL_VERSION_META_KEY]: revision,
    [CLIENT_INFO_META_KEY]: { name: 'nobody', version: '0' },
    [CLIENT_CAPABILITIES_META_KEY]: {},
  };
  const headers = { 'content-type': 'application/json', 'mcp-protocol-version': revision, 'mcp-method': method };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 0, method, params: { _meta } });
  const request = new Request('http://localhost/mcp', { method: 'POST', headers, body });
  await createMcpHandler(() => server, { legacy: 'reject' }).fetch(request);
  await closed;
  return server;
}
