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

export const isWork = (message: Message): boolean => isToolCall(message) || message.method === 'resources/read';

/** The key under which revision 2026-07-28 names itself in every message. Its SDK exports it too, but takes time to load. */
export const versionKey = 'io.modelcontextprotocol/protocolVersion';

export function isLatestRevision(message: unknown): boolean {
  const meta = (message as Partial<Message> | null)?.params?._meta;
  return typeof meta === 'object' && meta !== null && versionKey in meta;
}

/** The same message without parameters that are null: many clients send null for a parameter they do not use. */
export function withoutNulls<Value>(message: Value): Value {
  if (!isMessage(message) || message.params === undefined) return message;
  const { params, ...rest } = message;
  if (params === null) return rest as Value;
  if (typeof params !== 'object' || !Object.values(params).includes(null as never)) return message;
  const kept = Object.entries(params).filter(([, value]) => value !== null);
  return { ...message, params: Object.fromEntries(kept) };
}

interface Schema {
  '~standard': { validate(value: unknown): unknown };
}

export type RequestSchemas = Readonly<Record<string, Schema>>;

export interface RequestError {
  code: number;
  message: string;
}

/** The code of a read that is not possible now: the first of the codes that JSON-RPC leaves to servers. */
export const refusedRead = -32_000;

/** Describes what is wrong with a request in one line: the SDKs dump their validation issues, or do not answer. */
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

/** While a notification waits for its reader, only the newest report is held: a slow reader delays nothing. */
export function progressReporter(
  progressToken: string | number | undefined,
  notify: (params: ProgressParams) => Promise<void>,
) {
  if (progressToken === undefined) return undefined;
  let isSending = false;
  let waiting: Progress | undefined;
  let last = -1;
  const sendNext = () => {
    isSending = waiting !== undefined;
    if (waiting === undefined) return;
    const sent = notify({ progressToken, ...waiting });
    waiting = undefined;
    // If the reader has left, the call's signal aborts.
    void sent.then(sendNext, sendNext);
  };
  return {
    report: (progress: Progress) => {
      // The protocol requires that progress grows with each notification.
      if (progress.progress <= last) return;
      last = progress.progress;
      waiting = progress;
      if (!isSending) sendNext();
    },
    /** To be called before the call is answered: after that, the protocol allows no report. */
    end: () => {
      waiting = undefined;
    },
  };
}
