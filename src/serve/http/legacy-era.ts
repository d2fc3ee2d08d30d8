import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import { bindV1, requestsV1 } from '../../mcp/bind-v1.ts';
import type { Catalog } from '../../mcp/catalog.ts';
import { checkRequest } from '../../mcp/check-request.ts';
import { cancelNoticesIn, isToolCall, type Message, messagesIn, requestsIn } from '../messages.ts';
import { type CancelNotices, createCancelNotices } from './cancel-notices.ts';
import { errorAnswer, type HttpCall, type Serve } from './http-call.ts';

/**
 * Revisions 2024-11-05 to 2025-11-25, without sessions: a server and a transport for each request. The answer is JSON, or
 * a stream of events for one call whose client asks for progress.
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
    const { cancelled, forget } = awaitCancel(call, requests, notices);
    const isStream = messages.length === 1 && requests.some((message) => asksForProgress(message, catalog));
    // A stream begins before the call has ended.
    const callTool: Catalog['callTool'] = (toolCall) => catalog.callTool(toolCall).finally(forget);
    const server = bindV1(isStream ? { ...catalog, callTool } : catalog, credentials);
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: !isStream });
    await server.connect(transport);
    // Notices in a batch would reach the SDK together with the requests they are about.
    const parsedBody = requests.length > 0 && messages.length > 1 ? requests : body;
    const answered = transport.handleRequest(request, { parsedBody });
    // Closing aborts running calls; a server that has answered has none.
    const aborted = cancelled.then(() => server.close()).then(() => cancelled);
    const answer = await Promise.race([answered, aborted]).catch((error) => {
      forget();
      throw error;
    });
    if (!isEvents(answer)) forget();
    return answer;
  };
}

const isEvents = ({ headers }: Response) => headers.get('content-type') === 'text/event-stream';

const asksForProgress = (message: Message, catalog: Catalog): boolean =>
  isToolCall(message) &&
  catalog.reportsProgress(message.params?.name) &&
  message.params?._meta !== undefined &&
  'progressToken' in message.params._meta;

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
