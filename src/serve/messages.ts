/** A JSON-RPC message as far as routing looks at it; the SDKs check the rest. */
export interface Message {
  method: string;
  id?: unknown;
  params?: { requestId?: unknown; _meta?: object };
}

/** What a body holds: one message, or several in a batch (revision 2025-03-26). */
export const messagesIn = (body: unknown): Message[] => (Array.isArray(body) ? body : [body]).filter(isMessage);

export const requestsIn = (messages: Message[]): Message[] => messages.filter(({ id }) => id !== undefined);

export const cancelNoticesIn = (messages: Message[]): Message[] =>
  messages.filter(({ method, id }) => method === 'notifications/cancelled' && id === undefined);

/** Where revision 2026-07-28 says in every request which revision it is of. Its SDK names it too, but is not loaded to ask. */
export const versionKey = 'io.modelcontextprotocol/protocolVersion';

/** Revision 2026-07-28 puts its name into every message. */
export function claimsModern(message: unknown): boolean {
  const meta = (message as Partial<Message> | null)?.params?._meta;
  return typeof meta === 'object' && meta !== null && versionKey in meta;
}

const isMessage = (value: unknown): value is Message =>
  typeof value === 'object' && value !== null && 'method' in value && typeof value.method === 'string';
