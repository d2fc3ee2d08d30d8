import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import { bindV1, requestsV1 } from '../../mcp/bind-v1.ts';
import type { Catalog } from '../../mcp/catalog.ts';
import { checkRequest } from '../../mcp/check-request.ts';
import { cancelNoticesIn, type Message, messagesIn, requestsIn } from '../messages.ts';
import { type CancelNotices, createCancelNotices } from './cancel-notices.ts';
import { errorAnswer, type HttpCall, type Serve } from './http-call.ts';

/**
 * Revisions 2024-11-05 to 2025-11-25, without sessions: a server and a transport for each request. A stream would carry
 * progress; no tool reports any, so every answer is JSON.
 */
export function legacyEra(catalog: Catalog): Serve {
  const notices = createCancelNotices();
  return async (call) => {
    const { request, body, credentials } = call;
    const messages = messagesIn(body);
    const requests = requestsIn(messages);
    for (const { params } of cancelNoticesIn(messages)) notices.arrived(credentials.tenantId, params?.requestId);
    for (const message of requests) {
      const error = checkRequest(requestsV1, message);
      if (error) return errorAnswer(message, error);
    }
    const server = bindV1(catalog, credentials);
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
    await server.connect(transport);
    const { cancelled, forget } = awaitCancel(call, requests, notices);
    // In a batch, notices would come beside what they are about.
    const parsedBody = requests.length > 0 && messages.length > 1 ? requests : body;
    const answered = transport.handleRequest(request, { parsedBody });
    // Closing aborts what runs; of a server that has answered nothing does.
    const aborted = cancelled.then(() => server.close()).then(() => cancelled);
    return Promise.race([answered, aborted]).finally(forget);
  };
}

/** Resolves when the client disconnects or sends a notice; a batch is answered as a whole, or not at all. */
function awaitCancel({ request, credentials }: HttpCall, requests: Message[], notices: CancelNotices) {
  const [first, ...others] = requests;
  let forget = () => {};
  const cancelled = new Promise<Response>((resolve) => {
    const cancel = () => resolve(errorAnswer(first, { code: -32_000, message: 'Cancelled' }));
    request.signal.addEventListener('abort', cancel, { once: true });
    if (request.signal.aborted) cancel();
    if (first && others.length === 0) forget = notices.listen(credentials.tenantId, first.id, cancel);
  });
  return { cancelled, forget };
}
