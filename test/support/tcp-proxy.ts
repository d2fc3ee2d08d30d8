import { connect, createServer, type Socket } from 'node:net';
import { Transform, type TransformCallback } from 'node:stream';
import { onTestFinished } from 'vitest';

/** A network in trouble between a client and a server. */
export interface TcpProxy {
  port: number;
  /** Where new connections lead. */
  target: { port: number };
  /** By how much answers are late, in milliseconds. */
  delay: { ms: number };
  /** Both ends of all connections. */
  sockets: Socket[];
  /** Keeps what is sent next, and breaks that connection. Resolves with what lets it arrive after all. */
  holdNext(): Promise<() => void>;
}

export async function startTcpProxy(port: number): Promise<TcpProxy> {
  const sockets: Socket[] = [];
  const [target, delay] = [{ port }, { ms: 0 }];
  let onChunk: (letGo: () => void) => boolean = () => false;
  const proxy = createServer((socket) => {
    const onward = connect(target.port, '127.0.0.1');
    const requests = through((chunk, done) => {
      if (onChunk(() => done(null, chunk))) socket.destroy();
      else done(null, chunk);
    });
    const answers = through((chunk, done) => void setTimeout(() => done(null, chunk), delay.ms));
    socket.on('error', () => {}).pipe(requests);
    requests.pipe(onward);
    onward.on('error', () => {}).pipe(answers);
    answers.pipe(socket);
    sockets.push(socket, onward);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  });
  const holdNext = () =>
    new Promise<() => void>((resolve) => {
      onChunk = (letGo) => {
        onChunk = () => false;
        resolve(letGo);
        return true;
      };
    });
  return { port: (proxy.address() as { port: number }).port, target, delay, sockets, holdNext };
}

const through = (pass: (chunk: Buffer, done: TransformCallback) => void) =>
  new Transform({ transform: (chunk, _, done) => pass(chunk, done) });
