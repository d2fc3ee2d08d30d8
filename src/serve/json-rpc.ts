/** The part of a JSON-RPC message that routing reads; the SDKs check the rest. */
export interface Message {
  method: string;
  id?: unknown;
  params?: { requestId?: unknown; name?: unknown; _meta?: object };
}

/** What a body holds: one message, or several in a batch. */
export const messagesIn = (body: unknown): Message[] => (Array.isArray(body) ? body : [body]).filter(isMessage);

export const requestsIn = (messages: Message[]): Message[] => messages.filter(({ id }) => id !== undefined);

export const cancelNoticesIn = (messages: Message[]): Message[] =>
  messages.filter(({ method, id }) => method === 'notifications/cancelled' && id === undefined);

export const isToolCall = ({ method }: Message): boolean => method === 'tools/call';

/** What is queued and counted. */
export const isWork = (message: Message): boolean => isToolCall(message) || message.method === 'resources/read';

/** The key under which revision 2026-07-28 names itself in every message. Its SDK exports it too, but takes time to load. */
export const versionKey = 'io.modelcontextprotocol/protocolVersion';

/** Whether a message says that it is of revision 2026-07-28. */
export function claimsModern(message: unknown): boolean {
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

const isMessage = (value: unknown): value is Message =>
  typeof value === 'object' && value !== null && 'method' in value && typeof value.method === 'string';

/** The only revision that has batches: the ones before and after it send one message at a time. */
export const batchRevision = '2025-03-26';

/** A batch is one request, but makes many calls. */
const maxBatch = 10;

/** What is wrong with a body of several messages under the revision of its request. */
export function batchProblem(messages: readonly unknown[], revision: string | undefined): string | undefined {
  if (revision !== batchRevision) return `Only revision ${batchRevision} has batches: send one message at a time.`;
  if (messages.length === 0 || messages.length > maxBatch) return `A batch holds 1 to ${maxBatch} messages.`;
  // The client could not tell two answers with the same id apart.
  const ids = requestsIn(messagesIn(messages)).map(({ id }) => id);
  return new Set(ids).size < ids.length ? 'Each request of a batch needs an id of its own.' : undefined;
}
