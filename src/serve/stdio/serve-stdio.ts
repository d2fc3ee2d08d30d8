import type { Readable, Writable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Credentials } from '../../api/client.ts';
import type { Log } from '../../log/log.ts';
import type { Catalog } from '../../mcp/catalog.ts';
import { claimsModern } from '../messages.ts';
import { EraTransport, type JSONRPCMessage } from './era-transport.ts';
import { LineStream } from './line-stream.ts';

export interface StdioOptions {
  catalog: Catalog;
  payer: Credentials;
  log: Log;
  stdin: Readable;
  stdout: Writable;
}

/**
 * Serves one client over a pair of pipes until its input ends; resolves then, with calls in flight aborted.
 *
 * One `Pipe` owns them. Whoever opens with revision 2026-07-28's envelope gets the SDK line that speaks it,
 * everybody else the line that speaks the revisions before; each is loaded when it is first needed. A
 * `server/discover` is only a question: a client may still go on in the old way (specification, *Lifecycle*).
 */
export async function serveStdio({ catalog, payer, log, stdin, stdout }: StdioOptions): Promise<void> {
  const lanes: { modern?: EraTransport; legacy?: EraTransport } = {};
  let settled: EraTransport | undefined;

  const modern = async () => {
    if (lanes.modern) return lanes.modern;
    const lane = new EraTransport(pipe);
    const [{ bindV2 }, { serveStdio: serveModern }] = await Promise.all([
      import('../../mcp/bind-v2.ts'),
      import('@modelcontextprotocol/server/stdio'),
    ]);
    serveModern(() => bindV2(catalog, payer), { transport: lane, legacy: 'reject' });
    lanes.modern = lane;
    return lane;
  };
  const legacy = async () => {
    const lane = new EraTransport(pipe);
    const { bindV1 } = await import('../../mcp/bind-v1.ts');
    await bindV1(catalog, payer).connect(lane);
    lanes.legacy = lane;
    return lane;
  };
  const laneFor = async (message: JSONRPCMessage): Promise<EraTransport> => {
    if (settled) return settled;
    if (!claimsModern(message)) {
      settled = await legacy();
      return settled;
    }
    const lane = await modern();
    if ('method' in message && 'id' in message && message.method !== 'server/discover') settled = lane;
    return lane;
  };

  // A lane may still be loading when the next message comes in: their order is kept.
  let queue = Promise.resolve();
  const onMessage = (message: JSONRPCMessage) => {
    queue = queue
      .then(async () => (await laneFor(message)).onmessage?.(message))
      .catch((error) => log.error('a message was not handled', { error: String(error) }));
  };
  const onProblem = (problem: string) => log.debug('stdio', { problem });
  const pipe = new LineStream(stdin, stdout, { onMessage, onProblem });
  await pipe.ended;
  // What came before the end is handed on, and what needs no waiting is answered: `echo … | ad-library-mcp` works.
  await queue;
  await nextTurn();
  for (const lane of Object.values(lanes)) lane.onclose?.();
}
