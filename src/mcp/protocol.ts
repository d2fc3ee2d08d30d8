import type { Progress } from '../dataset/gather.ts';

/** The part of a JSON-RPC message that routing reads; the SDKs check the rest. */
export interface Message {
  method: string;
  id?: unknown;
  params?: { requestId?: unknown; name?: unknown; _meta?: object };
}

export const isMessage = (value: unknown): value is Message =>
  typeof value === 'object' && value !== null && 'method' in value && typeof value.method === 'string';

/** The id of a request (JSON-RPC 2.0; MCP allows no null). */
export const isId = (id: unknown): id is string | number => typeof id === 'string' || typeof id === 'number';

export const isCancelNotice = ({ method, id }: Message): boolean =>
  method === 'notifications/cancelled' && id === undefined;

export const isToolCall = ({ method }: Message): boolean => method === 'tools/call';

export const isLongRequest = (message: Message): boolean => isToolCall(message) || message.method === 'resources/read';

/** The key under which revision 2026-07-28 names itself in every message. Its SDK exports it too, but takes time to load. */
export const versionKey = 'io.modelcontextprotocol/protocolVersion';

export function isLatestRevision(message: unknown): boolean {
  const meta = (message as Partial<Message> | null)?.params?._meta;
  return typeof meta === 'object' && meta !== null && versionKey in meta;
}

/**
 * Returns the same message in the form that the SDKs expect. Many clients send null for a parameter that they do not
 * use, and PHP encodes an empty object as an empty list.
 */
export function normalizeMessage<Value>(message: Value): Value {
  if (!isMessage(message) || message.params === undefined) return message;
  const { params, ...rest } = message;
  if (params === null) return rest as Value;
  if (isEmptyList(params)) return { ...message, params: {} };
  if (!isPlainObject(params)) return message;
  const normalized: Record<string, unknown> = replaceEmptyLists(removeNullEntries(params));
  if (isPlainObject(normalized._meta)) normalized._meta = normalizeMeta(normalized._meta);
  if (isPlainObject(normalized.capabilities)) normalized.capabilities = replaceEmptyLists(normalized.capabilities);
  return { ...message, params: normalized };
}

function normalizeMeta(receivedMeta: Record<string, unknown>): Record<string, unknown> {
  const { progressToken, ...meta } = replaceEmptyLists(removeNullEntries(receivedMeta));
  if (progressToken === undefined) return meta;
  const isFraction = typeof progressToken === 'number' && !Number.isInteger(progressToken);
  return { ...meta, [isFraction ? fractionTokenKey : 'progressToken']: progressToken };
}

/** Holds a progress token that is no integer. The specification allows any number, and the schemas of the SDKs do not. */
const fractionTokenKey = 'ad-library/progressToken';

/** Returns the token under which a client wants reports of progress, from the `_meta` of a normalized request. */
export function readProgressToken(meta: object | undefined): string | number | undefined {
  const { progressToken, [fractionTokenKey]: fraction } = (meta ?? {}) as Record<string, unknown>;
  if (typeof fraction === 'number') return fraction;
  return isId(progressToken) ? progressToken : undefined;
}

/** Returns the same request without its progress token, for a client that accepts no stream of events. */
export function removeProgressToken<Value>(message: Value): Value {
  const receivedMeta = isMessage(message) ? message.params?._meta : undefined;
  if (!isMessage(message) || readProgressToken(receivedMeta) === undefined) return message;
  const { progressToken: _, [fractionTokenKey]: __, ...meta } = receivedMeta as Record<string, unknown>;
  return { ...message, params: { ...message.params, _meta: meta } };
}

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

export const isPlainObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const removeNullEntries = (object: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null));

/** Replaces empty lists by empty objects. This is safe, because this server accepts no request parameter that is a list. */
const replaceEmptyLists = (object: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(object).map(([name, value]) => [name, isEmptyList(value) ? {} : value]));

interface Schema {
  '~standard': { validate(value: unknown): unknown };
}

export type RequestSchemas = Readonly<Record<string, Schema>>;

export interface RequestError {
  code: number;
  message: string;
}

/** The code of a read that is not possible now: the first of the codes that JSON-RPC leaves to servers. */
export const refusedReadCode = -32_000;

/** Describes the problem of an invalid request in one line. The SDKs would dump their validation issues, or not answer. */
export function checkRequest(schemas: RequestSchemas, request: { method: string }): RequestError | undefined {
  const schema = Object.hasOwn(schemas, request.method) ? schemas[request.method] : schemas.request;
  const [issue] = (schema?.['~standard'].validate(request) as Validated | undefined)?.issues ?? [];
  if (issue === undefined) return undefined;
  const path = (issue.path ?? []).join('.').slice(0, 100);
  const isParams = path.startsWith('params');
  return {
    code: isParams ? -32_602 : -32_600,
    message: `${isParams ? 'Invalid params' : 'Invalid request'}: ${path}: ${issue.message}.`,
  };
}

interface Validated {
  issues?: readonly { message: string; path?: readonly (string | number)[] }[];
}

type ProgressParams = Progress & { progressToken: string | number };

/**
 * Creates a reporter of progress for a request, or returns undefined if its client wants no reports. While a notification
 * waits for its reader, the reporter stores only the newest report, so a slow reader delays nothing.
 * @param meta the `_meta` of the normalized request
 */
export function createProgressReporter(meta: object | undefined, notify: (params: ProgressParams) => Promise<void>) {
  const progressToken = readProgressToken(meta);
  if (progressToken === undefined) return undefined;
  let isSending = false;
  let waitingReport: Progress | undefined;
  let lastProgress = -1;
  const sendNext = () => {
    isSending = waitingReport !== undefined;
    if (waitingReport === undefined) return;
    const sending = notify({ progressToken, ...waitingReport });
    waitingReport = undefined;
    // If the reader has left, the call's signal aborts.
    void sending.then(sendNext, sendNext);
  };
  return {
    report: (progress: Progress) => {
      // The protocol requires that progress grows with each notification.
      if (progress.progress <= lastProgress) return;
      lastProgress = progress.progress;
      waitingReport = progress;
      if (!isSending) sendNext();
    },
    /** Ends the reports. It must be called before the answer is sent, because the protocol allows no report afterwards. */
    end: () => {
      waitingReport = undefined;
    },
  };
}
