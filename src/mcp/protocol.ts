import type { Progress } from '../dataset/gather.ts';

/**
 * The fields of a JSON-RPC message that the server needs to route the message. The MCP SDKs validate the other fields.
 */
export interface JsonRpcMessage {
  method: string;
  id?: unknown;
  params?: { requestId?: unknown; name?: unknown; _meta?: object };
}

/** Returns true if a value is a JSON-RPC request or notification. */
export const isJsonRpcMessage = (value: unknown): value is JsonRpcMessage =>
  typeof value === 'object' && value !== null && 'method' in value && typeof value.method === 'string';

/** Returns true for a request id that MCP allows. JSON-RPC 2.0 also allows null, but MCP does not. */
export const isRequestId = (id: unknown): id is string | number => typeof id === 'string' || typeof id === 'number';

/** Returns true if a message cancels a request. */
export const isCancelNotification = ({ method, id }: JsonRpcMessage): boolean =>
  method === 'notifications/cancelled' && id === undefined;

/** Returns true if a message calls a tool. */
export const isToolCall = ({ method }: JsonRpcMessage): boolean => method === 'tools/call';

/**
 * Returns true if a request needs a slot of the concurrency limiter, because its response can take long or be large.
 */
export const needsCallSlot = (message: JsonRpcMessage): boolean =>
  isToolCall(message) || message.method === 'resources/read';

/**
 * The `_meta` key of the protocol revision. Messages contain this key since revision 2026-07-28. The SDK exports the
 * same constant, but importing the SDK would slow down the start.
 */
export const protocolVersionKey = 'io.modelcontextprotocol/protocolVersion';

/** Returns true if a message states protocol revision 2026-07-28 in its `_meta`. */
export function isRevision2026Message(message: unknown): boolean {
  const meta = (message as Partial<JsonRpcMessage> | null)?.params?._meta;
  return typeof meta === 'object' && meta !== null && protocolVersionKey in meta;
}

/**
 * Converts a message to the form that the MCP SDKs expect. Removes null parameters, which many clients send. Replaces
 * empty lists with empty objects, because PHP clients encode an empty object as a list. Removes the `task` parameter of
 * a tool call: a server that does not support tasks must run the call as if the parameter were missing (MCP
 * specification, *Tasks*), and the SDK for earlier revisions would reject the call.
 */
export function normalizeMessage<Value>(message: Value): Value {
  if (!isJsonRpcMessage(message) || message.params === undefined) return message;
  const { params, ...messageWithoutParams } = message;
  if (params === null) return messageWithoutParams as Value;
  if (isEmptyList(params)) return { ...message, params: {} };
  if (!isPlainObject(params)) return message;
  const normalizedParams: Record<string, unknown> = replaceEmptyLists(removeNullEntries(params));
  if (isPlainObject(normalizedParams._meta)) normalizedParams._meta = normalizeMeta(normalizedParams._meta);
  if (isPlainObject(normalizedParams.capabilities))
    normalizedParams.capabilities = replaceEmptyLists(normalizedParams.capabilities);
  if (isToolCall(message)) delete normalizedParams.task;
  return { ...message, params: normalizedParams };
}

function normalizeMeta(receivedMeta: Record<string, unknown>): Record<string, unknown> {
  const { progressToken, ...meta } = replaceEmptyLists(removeNullEntries(receivedMeta));
  if (progressToken === undefined) return meta;
  const isFraction = typeof progressToken === 'number' && !Number.isInteger(progressToken);
  return { ...meta, [isFraction ? fractionalProgressTokenKey : 'progressToken']: progressToken };
}

/**
 * The `_meta` key to which the server moves a fractional progress token, e.g. 1.5. MCP allows any number as a token,
 * but the schemas of the SDKs accept only integers and would reject the request.
 */
const fractionalProgressTokenKey = 'ad-library/progressToken';

/**
 * Reads the progress token of a request. Returns undefined if the client does not want progress notifications.
 * @param meta `_meta` of the request, as returned by `normalizeMessage`
 */
export function readProgressToken(meta: object | undefined): string | number | undefined {
  const { progressToken, [fractionalProgressTokenKey]: fractionalToken } = (meta ?? {}) as Record<string, unknown>;
  if (typeof fractionalToken === 'number') return fractionalToken;
  return isRequestId(progressToken) ? progressToken : undefined;
}

/**
 * Returns a request without its progress token. Used for clients that accept no event stream and therefore cannot
 * receive progress notifications.
 */
export function removeProgressToken<Value>(message: Value): Value {
  const receivedMeta = isJsonRpcMessage(message) ? message.params?._meta : undefined;
  if (!isJsonRpcMessage(message) || readProgressToken(receivedMeta) === undefined) return message;
  const { progressToken: _, [fractionalProgressTokenKey]: __, ...meta } = receivedMeta as Record<string, unknown>;
  return { ...message, params: { ...message.params, _meta: meta } };
}

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

/** Returns true if a value is an object, but not an array or null. */
export const isPlainObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const removeNullEntries = (parameters: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== null));

/**
 * Replaces empty lists with empty objects, because PHP clients encode an empty object as `[]`. This cannot change a
 * real list, because no request parameter of this server is a list.
 */
const replaceEmptyLists = (parameters: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, isEmptyList(value) ? {} : value]));

interface Schema {
  '~standard': { validate(value: unknown): unknown };
}

/** The schemas of requests, by the name of the method. */
export type RequestSchemas = Readonly<Record<string, Schema>>;

/** A JSON-RPC error that rejects a request. */
export interface RequestError {
  code: number;
  message: string;
}

/**
 * The error code for a resource that the server refuses to read, e.g. because too many resources are being read. It is
 * the first code that JSON-RPC reserves for server errors.
 */
export const refusedReadErrorCode = -32_000;

/**
 * Validates a request and describes the first problem in one line. The SDKs would instead return all problems, or send
 * no response at all.
 * @returns undefined if the request is valid
 */
export const findRequestError = (schemas: RequestSchemas, request: { method: string }): RequestError | undefined =>
  findSchemaError(Object.hasOwn(schemas, request.method) ? schemas[request.method] : schemas.request, request);

/**
 * Validates the members that all JSON-RPC requests have, e.g. the id, and describes the first problem in one line. Over
 * stdio, the SDKs send no response to a request with an invalid id or an unknown member.
 * @returns undefined if the members are valid
 */
export const findEnvelopeError = (schemas: RequestSchemas, request: object): RequestError | undefined =>
  findSchemaError(schemas.request, request);

function findSchemaError(schema: Schema | undefined, request: object): RequestError | undefined {
  const [issue] = (schema?.['~standard'].validate(request) as ValidationResult | undefined)?.issues ?? [];
  if (issue === undefined) return undefined;
  const path = (issue.path ?? []).join('.').slice(0, 100);
  const isParamsError = path.startsWith('params');
  return {
    code: isParamsError ? -32_602 : -32_600,
    message: `${isParamsError ? 'Invalid params' : 'Invalid request'}: ${path === '' ? '' : `${path}: `}${issue.message}.`,
  };
}

interface ValidationResult {
  issues?: readonly { message: string; path?: readonly (string | number)[] }[];
}

type ProgressParams = Progress & { progressToken: string | number };

/**
 * Creates a progress reporter for a request. Returns undefined if the client does not want progress notifications. A
 * slow client does not delay the call: while one notification is being sent, only the newest report waits.
 * @param meta `_meta` of the request, as returned by `normalizeMessage`
 */
export function createProgressReporter(
  meta: object | undefined,
  sendNotification: (params: ProgressParams) => Promise<void>,
) {
  const progressToken = readProgressToken(meta);
  if (progressToken === undefined) return undefined;
  let isSending = false;
  let waitingReport: Progress | undefined;
  let lastProgress = -1;
  const sendNextReport = () => {
    isSending = waitingReport !== undefined;
    if (waitingReport === undefined) return;
    const pendingNotification = sendNotification({ progressToken, ...waitingReport });
    waitingReport = undefined;
    // Ignore failed notifications. If the client has disconnected, the call is aborted through its abort signal anyway.
    void pendingNotification.then(sendNextReport, sendNextReport);
  };
  return {
    reportProgress: (progress: Progress) => {
      // The protocol requires the progress value to increase with each notification.
      if (progress.progress <= lastProgress) return;
      lastProgress = progress.progress;
      waitingReport = progress;
      if (!isSending) sendNextReport();
    },
    /**
     * Stops the progress notifications. Must be called before the response is sent, because the protocol forbids
     * progress notifications after the response.
     */
    stopReporting: () => {
      waitingReport = undefined;
    },
  };
}
