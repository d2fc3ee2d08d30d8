import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import { createMcpHandler, isLegacyRequest } from '@modelcontextprotocol/server';
import type { Credentials } from '../../api/client.ts';
import type { OutputSetting } from '../../mcp/hosts.ts';
import {
  checkRequest,
  isCancelNotice,
  isId,
  isLatestRevision,
  isMessage,
  isToolCall,
  type Message,
  progressTokenIn,
  type RequestError,
} from '../../mcp/protocol.ts';
import { bindV1, requestsV1 } from '../../mcp/sdk-v1.ts';
import { bindV2, requestsV2 } from '../../mcp/sdk-v2.ts';
import type { Catalog } from '../../mcp/served.ts';

/** One HTTP request that has passed all checks. Its signal aborts when the client disconnects before the answer. */
interface HttpCall {
  request: Request;
  body: unknown;
  credentials: Credentials;
  /** The origin under which the caller can open links to files. */
  linkOrigin?: string | undefined;
  userAgent?: string | undefined;
  output?: OutputSetting | undefined;
  /** Resolves when the answer has left the process. */
  sent: Promise<void>;
}

type Serve = (call: HttpCall) => Promise<Response>;

export function serveAllRevisions(catalog: Catalog, onerror: (error: Error) => void): Serve {
  const earlier = earlierRevisions(catalog);
  const latest = latestRevision(catalog, onerror);
  return async (call) => {
    const { request, body } = call;
    const isLatest = isLatestRevision(body) || !(await isLegacyRequest(request, body));
    return isLatest ? latest(call) : earlier(call);
  };
}

/** Revision 2026-07-28: a server for each request. */
function latestRevision(catalog: Catalog, onerror: (error: Error) => void): Serve {
  const { fetch } = createMcpHandler(
    ({ authInfo }) => {
      const { extra } = authInfo ?? {};
      const { credentials, sent, linkOrigin, userAgent, output } = extra as Omit<HttpCall, 'request' | 'body'>;
      return bindV2(catalog, { sentOf: () => sent, linkOrigin, userAgent, output, ...credentials });
    },
    { legacy: 'reject', onerror },
  );
  return async ({ request, body, ...extra }) => {
    const message = requestIn(body);
    const error = message && checkRequest(requestsV2, message);
    if (error?.code === invalidParams) return errorAnswer(message, error);
    const { apiKey: token = '', tenantId: clientId } = extra.credentials;
    const authInfo = { token, clientId, scopes: [], extra };
    return fetch(request, { parsedBody: body, authInfo });
  };
}

/** Other errors have an HTTP status as well, which the SDK sets. */
const invalidParams = -32_602;

/**
 * Revisions 2024-11-05 to 2025-11-25, without sessions: a server and a transport for each request. The answer is JSON, or
 * a stream of events for one call whose client asks for progress.
 */
function earlierRevisions(catalog: Catalog): Serve {
  const notices = createCancelNotices();
  return async (call) => {
    const { request, body, credentials, sent, linkOrigin, userAgent, output } = call;
    if (isMessage(body) && isCancelNotice(body)) notices.arrived(credentials.tenantId, body.params?.requestId);
    const message = requestIn(body);
    const error = message && checkRequest(requestsV1, message);
    if (error) return errorAnswer(message, error);
    const { cancelled, forget } = awaitCancel(call, message, notices);
    const isStream = message !== undefined && asksForProgress(message, catalog);
    // A stream begins before the call has ended.
    const callTool: Catalog['callTool'] = (toolCall) => catalog.callTool(toolCall).finally(forget);
    const server = bindV1(isStream ? { ...catalog, callTool } : catalog, {
      sentOf: () => sent,
      linkOrigin,
      userAgent,
      output,
      ...credentials,
    });
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: !isStream });
    await server.connect(transport);
    const answered = transport.handleRequest(request, { parsedBody: body });
    // Closing aborts running calls; a server that has answered has none.
    const aborted = cancelled.then(() => server.close()).then(() => cancelled);
    const answer = await Promise.race([answered, aborted]).catch((error) => {
      forget();
      throw error;
    });
    // Reading the headers of an answer makes an object of them, and most are no stream.
    if (!isStream || !isEvents(answer)) forget();
    return answer;
  };
}

const isEvents = ({ headers }: Response) => headers.get('content-type') === 'text/event-stream';

const asksForProgress = (message: Message, catalog: Catalog): boolean =>
  isToolCall(message) &&
  catalog.reportsProgress(message.params?.name) &&
  progressTokenIn(message.params?._meta) !== undefined;

/** The request that a body holds, unless it is a notification or a response. */
const requestIn = (body: unknown): Message | undefined => (isMessage(body) && body.id !== undefined ? body : undefined);

/**
 * Resolves when the client disconnects or sends a notice. Until the promise is forgotten, it keeps the answer in memory
 * that it was raced with.
 */
function awaitCancel(
  { request, credentials }: HttpCall,
  message: Message | undefined,
  notices: ReturnType<typeof createCancelNotices>,
) {
  let leave = () => {};
  let forget = () => {};
  const cancelled = new Promise<Response>((resolve) => {
    const cancel = () => resolve(errorAnswer(message, { code: -32_000, message: 'Cancelled' }));
    request.signal.addEventListener('abort', cancel, { once: true });
    if (request.signal.aborted) cancel();
    leave = () => request.signal.removeEventListener('abort', cancel);
    if (message) forget = notices.listen(credentials.tenantId, message.id, cancel);
  });
  return {
    cancelled,
    forget: () => {
      leave();
      forget();
    },
  };
}

/** Running requests, so that a cancel notice, which comes in a request of its own, finds the one that it cancels. */
function createCancelNotices() {
  const running = new Map<string, Set<() => void>>();
  const nameOf = (tenantId: string, id: unknown) => `${tenantId} ${JSON.stringify(id)}`;
  return {
    /** Calls `cancel` when a notice names this request; returns a function to call when the request has ended. */
    listen(tenantId: string, id: unknown, cancel: () => void): () => void {
      const name = nameOf(tenantId, id);
      const sameName = running.get(name) ?? new Set();
      running.set(name, sameName.add(cancel));
      return () => {
        sameName.delete(cancel);
        if (sameName.size === 0) running.delete(name);
      };
    },
    /** Cancels the request with this id, unless callers who share a key have several running. */
    arrived(tenantId: string, id: unknown): void {
      const [only, ...others] = running.get(nameOf(tenantId, id)) ?? [];
      if (others.length === 0) only?.();
    },
  };
}

const errorAnswer = ({ id }: Partial<Message> = {}, error: RequestError): Response =>
  Response.json({ jsonrpc: '2.0', id: isId(id) ? id : null, error });
