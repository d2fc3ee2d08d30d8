import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import { DEFAULT_NEGOTIATED_PROTOCOL_VERSION, SUPPORTED_PROTOCOL_VERSIONS } from '@modelcontextprotocol/sdk/types.js';
import { createMcpHandler, isLegacyRequest } from '@modelcontextprotocol/server';
import type { Credentials } from '../../api/client.ts';
import type { Catalog, Session } from '../../mcp/catalog.ts';
import type { OutputSetting } from '../../mcp/hosts.ts';
import {
  findEnvelopeError,
  findRequestError,
  isCancelNotification,
  isJsonRpcMessage,
  isRequestId,
  isRevision2026Message,
  isToolCall,
  type JsonRpcMessage,
  type RequestError,
  readProgressToken,
} from '../../mcp/protocol.ts';
import { createSdkV1Server, requestSchemasV1 } from '../../mcp/sdk-v1.ts';
import { createRefusingServer, createSdkV2Server, requestSchemasV2 } from '../../mcp/sdk-v2.ts';

/** An HTTP request that has passed all checks. `request.signal` aborts if the client disconnects early. */
interface HttpMcpRequest {
  request: Request;
  /** The JSON-RPC message that was parsed from the body of the request. */
  body: unknown;
  credentials: Credentials;
  /** The origin of download links that the user can open in a browser. Undefined if results must not contain links. */
  linkOrigin?: string | undefined;
  userAgent?: string | undefined;
  output?: OutputSetting | undefined;
  /** Resolves when the response has been sent to the client. */
  responseSent: Promise<void>;
}

type HandleMcpRequest = (mcpRequest: HttpMcpRequest) => Promise<Response>;

/**
 * Creates a function that serves MCP requests over HTTP. Each request is passed to the MCP SDK (v1 or v2) that supports
 * its protocol revision.
 * @param onError called with each error that the SDK for the latest revision reports
 */
export function createMcpRequestHandler(catalog: Catalog, onError: (error: Error) => void): HandleMcpRequest {
  const serveEarlierRevisions = createEarlierHandler(catalog);
  const serveLatestRevision = createLatestHandler(catalog, onError);
  return async (mcpRequest) => {
    const { request, body } = mcpRequest;
    const isLatest = isRevision2026Message(body) || !(await isLegacyRequest(request, body));
    return isLatest ? serveLatestRevision(mcpRequest) : serveEarlierRevisions(mcpRequest);
  };
}

/** Creates the handler for MCP revision 2026-07-28. The handler creates a new MCP server object for each request. */
function createLatestHandler(catalog: Catalog, onError: (error: Error) => void): HandleMcpRequest {
  const { fetch } = createMcpHandler(
    ({ authInfo }) => {
      const { extra } = authInfo ?? {};
      const { credentials, responseSent, linkOrigin, userAgent, output, paramsError } = extra as LatestRequestContext;
      if (paramsError) return createRefusingServer(catalog, paramsError);
      const session: Session = {
        ...credentials,
        waitUntilSent: () => responseSent,
        linkOrigin,
        userAgent,
        output,
        handlesSingleRequest: true,
      };
      return createSdkV2Server(catalog, session);
    },
    { legacy: 'reject', onerror: onError },
  );
  return async ({ request, body, ...extra }) => {
    const message = findRequest(body);
    const envelopeError = message && pickInvalidParamsError(findEnvelopeError(requestSchemasV2, message));
    if (envelopeError) return createErrorResponse(message, envelopeError);
    const paramsError = message && pickInvalidParamsError(findRequestError(requestSchemasV2, message));
    const { apiKey: token = '', tenantId: clientId } = extra.credentials;
    // The SDK passes only `authInfo` to the function that creates the MCP server object. Therefore, put all other
    // values into the `extra` field of `authInfo`.
    const authInfo = { token, clientId, scopes: [], extra: { ...extra, paramsError } satisfies LatestRequestContext };
    return fetch(request, { parsedBody: body, authInfo });
  };
}

/** The values that `createLatestHandler` passes through the SDK to the function that creates the MCP server object. */
type LatestRequestContext = Omit<HttpMcpRequest, 'request' | 'body'> & {
  /**
   * Set if the parameters of the request are invalid. The server object returns this error, so that the SDK first
   * compares the headers with the body (MCP specification 2026-07-28, *Streamable HTTP*, *Server Validation*).
   */
  paramsError: RequestError | undefined;
};

/**
 * Returns the error if it is about the parameters of a request, and otherwise undefined. The SDK rejects all other
 * invalid requests, because the SDK also chooses their HTTP status.
 */
const pickInvalidParamsError = (error: RequestError | undefined): RequestError | undefined =>
  error?.code === -32_602 ? error : undefined;

/**
 * Creates the handler for MCP revisions 2024-11-05 to 2025-11-25. There are no sessions, so the handler creates a new
 * server and transport for each request. The response is JSON, or an event stream if the client asks for progress.
 */
function createEarlierHandler(catalog: Catalog): HandleMcpRequest {
  const cancellationRegistry = createCancellationRegistry();
  return async (mcpRequest) => {
    const { request, body, credentials, responseSent, linkOrigin, userAgent, output } = mcpRequest;
    if (isJsonRpcMessage(body) && isCancelNotification(body))
      cancellationRegistry.cancelRequest(credentials.tenantId, body.params?.requestId);
    const message = findRequest(body);
    const error = message && findRequestError(requestSchemasV1, message);
    if (error && hasSupportedRevision(request)) return createErrorResponse(message, error);
    const { cancellationResponse, stopListening } = listenForCancellation(mcpRequest, message, cancellationRegistry);
    const usesEventStream = message !== undefined && asksForProgress(message, catalog);
    // The response with an event stream is returned before the call has ended. This wrapper therefore stops listening
    // for a cancellation when the call ends.
    const callTool: Catalog['callTool'] = (toolCall) => catalog.callTool(toolCall).finally(stopListening);
    const server = createSdkV1Server(usesEventStream ? { ...catalog, callTool } : catalog, {
      waitUntilSent: () => responseSent,
      linkOrigin,
      userAgent,
      output,
      handlesSingleRequest: true,
      ...credentials,
    });
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: !usesEventStream });
    await server.connect(transport);
    const pendingResponse = transport.handleRequest(request, { parsedBody: body });
    // When the client cancels the request, close the server, because this aborts the running call.
    const responseAfterClose = cancellationResponse.then(() => server.close()).then(() => cancellationResponse);
    const response = await Promise.race([pendingResponse, responseAfterClose]).catch((error) => {
      stopListening();
      throw error;
    });
    // Check `usesEventStream` first, because the first access to `response.headers` creates an object that most
    // responses do not need.
    if (!usesEventStream || !isEventStream(response)) stopListening();
    return response;
  };
}

/**
 * Returns false if the `MCP-Protocol-Version` header names an unsupported revision. The SDK rejects such a request with
 * status 400 (MCP specification 2025-11-25, *Transports*, *Protocol Version Header*).
 */
const hasSupportedRevision = ({ headers }: Request): boolean =>
  SUPPORTED_PROTOCOL_VERSIONS.includes(headers.get('mcp-protocol-version') ?? DEFAULT_NEGOTIATED_PROTOCOL_VERSION);

const isEventStream = ({ headers }: Response) => headers.get('content-type') === 'text/event-stream';

const asksForProgress = (message: JsonRpcMessage, catalog: Catalog): boolean =>
  isToolCall(message) &&
  catalog.canToolReportProgress(message.params?.name) &&
  readProgressToken(message.params?._meta) !== undefined;

/** Returns the JSON-RPC request in a body. Returns undefined if the body contains a notification or a response. */
const findRequest = (body: unknown): JsonRpcMessage | undefined =>
  isJsonRpcMessage(body) && body.id !== undefined ? body : undefined;

/**
 * Listens for the client to disconnect or to send a cancel notification. The promise `cancellationResponse` then
 * resolves with an error response for the request.
 *
 * The caller must call `stopListening` when the request has ended. Until then, the pending promise
 * `cancellationResponse` keeps the response in memory, because both take part in `Promise.race`.
 */
function listenForCancellation(
  { request, credentials }: HttpMcpRequest,
  message: JsonRpcMessage | undefined,
  cancellationRegistry: ReturnType<typeof createCancellationRegistry>,
) {
  let stopListeningToSignal = () => {};
  let stopListeningToNotifications = () => {};
  const cancellationResponse = new Promise<Response>((resolve) => {
    const cancel = () => resolve(createErrorResponse(message, { code: -32_000, message: 'Cancelled' }));
    request.signal.addEventListener('abort', cancel, { once: true });
    if (request.signal.aborted) cancel();
    stopListeningToSignal = () => request.signal.removeEventListener('abort', cancel);
    if (message)
      stopListeningToNotifications = cancellationRegistry.registerRequest(credentials.tenantId, message.id, cancel);
  });
  return {
    cancellationResponse,
    stopListening: () => {
      stopListeningToSignal();
      stopListeningToNotifications();
    },
  };
}

/**
 * Creates a registry of running requests. A cancel notification arrives in a separate HTTP request, so the server finds
 * the request to cancel in this registry.
 */
function createCancellationRegistry() {
  const cancelFunctions = new Map<string, Set<() => void>>();
  const buildRequestKey = (tenantId: string, requestId: unknown) => `${tenantId} ${JSON.stringify(requestId)}`;
  return {
    /**
     * Calls `cancel` when a cancel notification names the request `requestId` of this API key. Returns a function that
     * the caller must call when the request has ended.
     */
    registerRequest(tenantId: string, requestId: unknown, cancel: () => void): () => void {
      const requestKey = buildRequestKey(tenantId, requestId);
      const cancelFunctionsOfRequest = cancelFunctions.get(requestKey) ?? new Set();
      cancelFunctions.set(requestKey, cancelFunctionsOfRequest.add(cancel));
      return () => {
        cancelFunctionsOfRequest.delete(cancel);
        if (cancelFunctionsOfRequest.size === 0) cancelFunctions.delete(requestKey);
      };
    },
    /**
     * Cancels the request with this id. Does nothing if several requests of the API key have the same id. Clients that
     * share a key choose their ids independently, so the notification could refer to any of these requests.
     */
    cancelRequest(tenantId: string, requestId: unknown): void {
      const [cancel, ...otherCancels] = cancelFunctions.get(buildRequestKey(tenantId, requestId)) ?? [];
      if (otherCancels.length === 0) cancel?.();
    },
  };
}

const createErrorResponse = ({ id }: Partial<JsonRpcMessage> = {}, error: RequestError): Response =>
  Response.json({ jsonrpc: '2.0', id: isRequestId(id) ? id : null, error });
