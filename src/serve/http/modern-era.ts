import { createMcpHandler } from '@modelcontextprotocol/server';
import { bindV2 } from '../../mcp/bind-v2.ts';
import type { Catalog } from '../../mcp/catalog.ts';
import type { Serve } from './exchange.ts';

/** Revision 2026-07-28: a server for each request. */
export function modernEra(catalog: Catalog, onerror: (error: Error) => void): Serve {
  const { fetch } = createMcpHandler(
    ({ authInfo }) => bindV2(catalog, { apiKey: authInfo?.token, tenantId: authInfo?.clientId ?? '' }),
    { legacy: 'reject', onerror },
  );
  return ({ request, body, credentials: { apiKey = '', tenantId } }) =>
    fetch(request, { parsedBody: body, authInfo: { token: apiKey, clientId: tenantId, scopes: [] } });
}
