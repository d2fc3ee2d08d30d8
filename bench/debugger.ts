import { WebSocket } from 'undici';

/** What Node's debugger tells of a process that was started with `inspected`; nothing of it is in the process's code. */
export interface Debugger {
  /** Bytes of objects that are still reachable. */
  heapUsed(): Promise<number>;
  close(): void;
}

/** For the environment of a process that shall have a debugger, on a free port of loopback. */
export const inspected = { NODE_OPTIONS: '--inspect=127.0.0.1:0' };

/** What such a process says of it on standard error, at once. */
export const debuggerAddress = /^Debugger listening on (\S+)$/m;

interface Message {
  id?: number;
  result?: { usedSize?: number };
  error?: { message: string };
}

/** Attaches by the Chrome DevTools protocol. */
export async function attach(address: string): Promise<Debugger> {
  const socket = new WebSocket(address);
  const waiting = new Map<number, (message: Message) => void>();
  socket.addEventListener('close', () => {
    for (const settle of waiting.values()) settle({ error: { message: 'the process is gone' } });
  });
  let id = 0;
  socket.addEventListener('message', ({ data }) => {
    const message = JSON.parse(String(data)) as Message;
    if (message.id !== undefined) waiting.get(message.id)?.(message);
  });
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener('open', () => resolve());
    socket.addEventListener('error', () => reject(new Error(`There is no debugger at ${address}.`)));
  });

  const ask = (method: string, params: object = {}) =>
    new Promise<NonNullable<Message['result']>>((resolve, reject) => {
      const question = ++id;
      waiting.set(question, ({ result = {}, error }) => {
        waiting.delete(question);
        if (error) reject(new Error(`${method}: ${error.message}`));
        else resolve(result);
      });
      socket.send(JSON.stringify({ id: question, method, params }));
    });
  await ask('HeapProfiler.enable');
  return {
    heapUsed: async () => {
      // Twice: what finalizers let go of in the first is garbage in the second.
      for (let time = 0; time < 2; time++) await ask('HeapProfiler.collectGarbage');
      return (await ask('Runtime.getHeapUsage')).usedSize ?? Number.NaN;
    },
    close: () => socket.close(),
  };
}
