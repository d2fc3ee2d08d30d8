/** A JSON-RPC message as far as routing looks at it; the SDKs check the rest. */
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

/** Where revision 2026-07-28 says in every request which revision it is of. Its SDK names it too, but is not loaded to ask. */
export const versionKey = 'io.modelcontextprotocol/protocolVersion';

/** Revision 2026-07-28 puts its name into every message. */
export function claimsModern(message: unknown): boolean {
  const meta = (message as Partial<Message> | null)?.params?._meta;
  return typeof meta === 'object' && meta !== null && versionKey in meta;
}

/** The same message, with parameters that are null taken as absent: many clients write null for what they leave out. */
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
