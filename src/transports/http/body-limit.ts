import type { IncomingMessage } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import { readRequestBody } from '@modelcontextprotocol/server';
import type { Context } from 'hono';
import { withDeadline } from '../../api/abort.ts';
import { AdLibraryError } from '../../api/errors.ts';
import { Semaphore } from '../../workers/semaphore.ts';

interface BodyLimit {
  /** The media type that the request must name. */
  type: string;
  maxBytes: number;
  /** The most bytes of a body whose length the request does not state. By default `maxBytes`. */
  maxUnstatedBytes?: number;
}

/** Why a body was not read: the status of the answer. */
type BodyProblem = { status: 413 | 415 };

/**
 * Reads the body of a request as text. Refuses a body of another media type (415) or of more bytes than the limit (413).
 * Returns an empty text if the client disconnects first.
 */
export async function readBody(
  context: Context,
  { type, maxBytes, maxUnstatedBytes = maxBytes }: BodyLimit,
): Promise<{ text: string } | BodyProblem> {
  const { raw } = context.req;
  const { headers } = raw;
  const [mediaType = ''] = headers.get('content-type')?.split(';') ?? [];
  if (mediaType.trim().toLowerCase() !== type) return { status: 415 };
  if (Number(headers.get('content-length') ?? 0) > maxBytes) return tooLarge(context);
  // The HTTP parser enforces a stated length, so such a body needs no counting.
  if (!headers.has('transfer-encoding')) return { text: await raw.text().catch(() => '') };
  const read = await readRequestBody(raw, maxUnstatedBytes).catch(() => ({ tooLarge: false, text: '' }) as const);
  return read.tooLarge ? tooLarge(context) : { text: read.text };
}

function tooLarge(context: Context): BodyProblem {
  // The rest of the body is still arriving. Only closing the connection stops it.
  context.header('Connection', 'close');
  return { status: 413 };
}

/** Bytes of large bodies that are arriving or waiting for a slot, for all keys together. */
const maxArrivingBytes = 64 * 1024 * 1024;
/** Large messages that are being parsed or served at once, for all keys together and for one key. */
const [maxServed, maxServedPerKey] = [8, 2];
/** How long a body that has arrived waits for a slot, in milliseconds. */
const maxWaitMs = 20_000;

interface ArrivingBody {
  key: string;
  bytes: number;
  refuse(error: AdLibraryError): void;
}

/**
 * Reads large bodies, whose parsed messages take much memory, so that few of them are in memory at once.
 *
 * A body takes a slot only once it has arrived, so a client that sends slowly holds no slot. Until then its bytes count.
 * If the bytes of all bodies exceed the bound, the largest body of the key with the most bytes is refused.
 */
export function createLargeBodies({ maxBytes = maxArrivingBytes, waitMs = maxWaitMs } = {}) {
  const slots = new Semaphore({
    maxRunning: maxServed,
    perKey: maxServedPerKey,
    // The bytes and the deadline bound the number of waiting bodies.
    maxWaiting: Number.POSITIVE_INFINITY,
    name: 'large requests',
  });
  const bodies = new Set<ArrivingBody>();

  const refuseLargest = (): void => {
    const bytesByKey = new Map<string, number>();
    for (const { key, bytes } of bodies) bytesByKey.set(key, (bytesByKey.get(key) ?? 0) + bytes);
    const total = [...bytesByKey.values()].reduce((sum, bytes) => sum + bytes, 0);
    if (total <= maxBytes) return;
    const [[key] = ['']] = [...bytesByKey].sort(([, one], [, other]) => other - one);
    const [largest] = [...bodies].filter((body) => body.key === key).sort((one, other) => other.bytes - one.bytes);
    if (largest === undefined) return;
    bodies.delete(largest);
    largest.refuse(tooManyArriving());
  };

  /** Counts the bytes of a body as they arrive. `refused` rejects if the body has to give way to others. */
  const count = (key: string, incoming: IncomingMessage) => {
    let refuse: ArrivingBody['refuse'] = () => {};
    const refused = new Promise<never>((_, reject) => {
      refuse = reject;
    });
    const body: ArrivingBody = { key, bytes: 0, refuse };
    bodies.add(body);
    const onData = (chunk: Buffer) => {
      if (!bodies.has(body)) return;
      body.bytes += chunk.length;
      refuseLargest();
    };
    incoming.on('data', onData);
    const release = () => {
      bodies.delete(body);
      incoming.off('data', onData);
    };
    return { refused, release };
  };

  return {
    /**
     * Reads a body of a stated length and waits for a slot, which ends when the answer has left the process.
     * @throws AdLibraryError `busy` if there is no room for the body or no slot in time
     */
    async read(context: Context, key: string, limit: BodyLimit, answerSent: Promise<void>) {
      const { incoming } = context.env as HttpBindings;
      const { refused, release } = count(key, incoming as IncomingMessage);
      try {
        const body = await Promise.race([readBody(context, limit), refused]);
        const waiting = { signals: [context.req.raw.signal], ms: waitMs };
        const acquired = withDeadline(waiting, (signal) => slots.acquire(key, signal));
        // A slot that is acquired after the body was refused ends at once.
        refused.catch(() => acquired.then((end) => end()).catch(() => {}));
        const end = await Promise.race([acquired, refused]);
        void answerSent.then(end);
        return body;
      } finally {
        release();
      }
    },
  };
}

const tooManyArriving = () =>
  new AdLibraryError({
    kind: 'busy',
    problem: 'Too many large requests are arriving at once. Try again in a few seconds.',
    sent: false,
    details: { retryAfterSeconds: 5 },
  });
