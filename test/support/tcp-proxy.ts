import { connect, createServer, type Socket } from 'node:net';
import { Transform, type TransformCallback } from 'node:stream';
import { onTestFinished } from 'vitest';
import { listenOnLoopback } from './loopback.ts';

/** A network in trouble between a client and a server. */
export async function startTcpProxy(port: number) {
  /** Both ends of all connections. */
  const sockets: Socket[] = [];
  /** Where new connections lead, and by how many milliseconds answers are late. */
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
  const listening = await listenOnLoopback(proxy);
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    return listening.close();
  });
  /** Keeps what is sent next, and breaks that connection. Resolves with what lets it arrive after all. */
  const holdNext = () =>
    new Promise<() => void>((resolve) => {
      onChunk = (letGo) => {
        onChunk = () => false;
        resolve(letGo);
        return true;
      };
    });
  return { port: listening.port, target, delay, sockets, holdNext };
}

const through = (pass: (chunk: Buffer, done: TransformCallback) => void) =>
  new Transform({ transform: (chunk, _, done) => pass(chunk, done) });
