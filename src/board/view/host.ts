/** The host as the view sees it: JSON-RPC over `postMessage` (MCP Apps, *Communication Protocol*). */
export interface Host {
  request(method: string, params: object): Promise<Message>;
  notify(method: string, params: object): void;
}

export type Message = Record<string, unknown>;
export type Handlers = Record<string, (params: Message) => void>;

/** Answers to requests of the host; any other is refused. */
const answers: Record<string, object> = { ping: {}, 'ui/resource-teardown': {} };
const methodNotFound = { code: -32_601, message: 'The board does not know this method.' };

/** Connects to the window that shows this one. Messages of any other window are ignored. */
export function connectHost(handlers: Handlers): Host {
  const waiting = new Map<number, { resolve(result: Message): void; reject(error: Error): void }>();
  let lastId = 0;
  const send = (message: object) => window.parent.postMessage({ jsonrpc: '2.0', ...message }, '*');
  const answer = (id: unknown, method: string) => {
    const result = Object.hasOwn(answers, method) ? answers[method] : undefined;
    send(result === undefined ? { id, error: methodNotFound } : { id, result });
  };
  window.addEventListener('message', ({ source, data }: MessageEvent) => {
    if (source !== window.parent || data?.jsonrpc !== '2.0') return;
    const { id, method, result, error } = data;
    const params: Message = data.params ?? {};
    if (typeof method === 'string' && id !== undefined) return answer(id, method);
    if (typeof method === 'string') return Object.hasOwn(handlers, method) ? handlers[method]?.(params) : undefined;
    const call = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) call?.resolve(result ?? {});
    else call?.reject(new Error(typeof error?.message === 'string' ? error.message : 'The host refused.'));
  });
  return {
    notify: (method, params) => send({ method, params }),
    request: (method, params) =>
      new Promise((resolve, reject) => {
        const id = ++lastId;
        waiting.set(id, { resolve, reject });
        send({ id, method, params });
      }),
  };
}
