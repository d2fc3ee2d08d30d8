import { createMcpHandler } from '@modelcontextprotocol/server';
import { bindV2, requestsV2 } from '../../mcp/bind-v2.ts';
import type { Catalog } from '../../mcp/catalog.ts';
import { checkRequest } from '../../mcp/check-request.ts';
import { messagesIn, requestsIn } from '../messages.ts';
import { errorAnswer, type Serve } from './http-call.ts';

/** Revision 2026-07-28: a server for each request. */
export function modernEra(catalog: Catalog, onerror: (error: Error) => void): Serve {
  const { fetch } = createMcpHandler(
    ({ authInfo }) => bindV2(catalog, { apiKey: authInfo?.token, tenantId: authInfo?.clientId ?? '' }),
    { legacy: 'reject', onerror },
  );
  return async ({ request, body, credentials: { apiKey = '', tenantId } }) => {
    const [message] = requestsIn(messagesIn(body));
    const error = message && checkRequest(requestsV2, message);
    if (error?.code === invalidParams) return errorAnswer(message, error);
    return fetch(request, { parsedBody: body, authInfo: { token: apiKey, clientId: tenantId, scopes: [] } });
  };
}

/** Whatever else is wrong has an HTTP status too, which the SDK knows. */
const invalidParams = -32_602;
