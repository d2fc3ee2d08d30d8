import type { Readable, Writable } from 'node:stream';
import { setTimeout as after, setImmediate as nextTurn } from 'node:timers/promises';
import type { Credentials } from '../../api/client.ts';
import type { Log, OnCall } from '../../log/log.ts';
import type { Catalog } from '../../mcp/catalog.ts';
import { Answers } from '../answers.ts';
import { Limits, type WorkLimits } from '../limits.ts';
import { batchProblem } from '../messages.ts';
import { createEras } from './eras.ts';
import { LineStream } from './line-stream.ts';

export interface StdioOptions {
  catalog: Catalog;
  credentials: Credentials;
  log: Log;
  now: () => number;
  onCall: OnCall;
  stdin: Readable;
  stdout: Writable;
  /** Resolves when the process is asked to stop, which counts as the end of the input. */
  stopRequested: Promise<void>;
  /** Called when the input has ended or the process is asked to stop. */
  onEnd?(): void;
  /** How long running calls may go on after the end of the input, in milliseconds. */
  drainMs: number;
}

/** A host makes a few calls at once; one that makes more is stuck in a loop. */
const limits: WorkLimits = { atOnce: 32, perKey: 32, waiting: 256, waitingPerKey: 256 };
/** Of answers that are being made or are not read yet, and of the result of a call. */
const answerBytes = 96 * 1024 * 1024;
const resultBytes = 256 * 1024;

/**
 * Serves one client over a pair of streams until its input ends or the process is asked to stop. Then waits for running
 * calls, and aborts those that take too long.
 */
export async function serveStdio(options: StdioOptions): Promise<void> {
  const { catalog, credentials, log, stdin, stdout, stopRequested, drainMs } = options;
  const answers = new Answers<unknown>({ maxBytes: answerBytes, maxPerTenant: answerBytes });
  const calls = new Limits(catalog, { limits, answers, resultBytes, now: options.now, onCall: options.onCall });
  const lines = new LineStream(stdin, stdout, {
    onMessage: async (message) => {
      const transport = await eras.transportFor(message);
      transport.receive(message);
      // An answer that is at hand is written first, so that it counts among those that are unread.
      await nextTurn();
    },
    onBatch: (messages) =>
      eras.settled() ? eras.settled()?.receiveBatch(messages) : batchProblem(messages, undefined),
    onProblem: (problem) => log.debug('stdio', { problem }),
  });
  const eras = createEras({ catalog: calls.catalog, credentials, output: lines, answers });
  await Promise.race([lines.readAll(), lines.outputClosed, stopRequested]);
  options.onEnd?.();
  // Messages before the end are still answered if somebody reads the answers: `echo … | ad-library-mcp` works.
  await nextTurn();
  const answered = calls
    .idle()
    .then(() => nextTurn())
    .then(() => lines.flushed());
  await Promise.race([answered, lines.outputClosed, after(drainMs, undefined, { ref: false })]);
  eras.close();
}
