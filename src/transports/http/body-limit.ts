import type { IncomingMessage } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import { readRequestBody } from '@modelcontextprotocol/server';
import type { Context } from 'hono';
import { withDeadline } from '../../api/abort.ts';
import { AdLibraryError } from '../../api/errors.ts';
import { Semaphore } from '../../workers/semaphore.ts';

interface BodyLimit {
  /** The media type that the `Content-Type` header must name. */
  type: string;
  maxBytes: number;
  /** The most bytes of a body without a `Content-Length` header. By default `maxBytes`. */
  maxStreamedBytes?: number;
}

/** The HTTP status for a body that was not read. */
type BodyProblem = { status: 413 | 415 };

/**
 * Reads the body of a request as text. Returns status 415 for a body of another media type, and status 413 for a body
 * with too many bytes. Returns an empty text if the client disconnects before the end of the body.
 */
export async function readBody(
  context: Context,
  { type, maxBytes, maxStreamedBytes = maxBytes }: BodyLimit,
): Promise<{ text: string } | BodyProblem> {
  const { raw } = context.req;
  const { headers } = raw;
  const [mediaType = ''] = headers.get('content-type')?.split(';') ?? [];
  if (mediaType.trim().toLowerCase() !== type) return { status: 415 };
  if (Number(headers.get('content-length') ?? 0) > maxBytes) return refuseLargeBody(context);
  // The HTTP parser enforces the `Content-Length` header. Only a body without the header must be counted while it arrives.
  if (!headers.has('transfer-encoding')) return { text: await raw.text().catch(() => '') };
  const result = await readRequestBody(raw, maxStreamedBytes).catch(() => ({ tooLarge: false, text: '' }) as const);
  return result.tooLarge ? refuseLargeBody(context) : { text: result.text };
}

function refuseLargeBody(context: Context): BodyProblem {
  // The rest of the body is still arriving. Only closing the connection stops it.
  context.header('Connection', 'close');
  return { status: 413 };
}

/** The most bytes of large bodies that are arriving or waiting for a slot, for all keys together. */
const maxArrivingBytes = 64 * 1024 * 1024;
/** The most large messages that are parsed or served at the same time, for all keys together and for one key. */
const [maxServed, maxServedPerKey] = [8, 2];
/** How long a body that has arrived may wait for a slot, in milliseconds. */
const maxWaitMs = 20_000;

/** A large body that is arriving or waiting for a slot. */
interface ArrivingBody {
  key: string;
  bytes: number;
  refuse(error: AdLibraryError): void;
}

/**
 * Creates a reader of large bodies. A parsed large message takes much memory, so only a few of them are in memory at the
 * same time.
 *
 * A body takes a slot when it has arrived completely, so a client that sends slowly holds no slot. Until then, the bytes
 * of the body count toward `maxBytes`. If all bodies together exceed `maxBytes`, the reader refuses the largest body of
 * the key that has the most bytes.
 */
export function createLargeBodies({ maxBytes = maxArrivingBytes, waitMs = maxWaitMs } = {}) {
  const slots = new Semaphore({
    maxRunning: maxServed,
    maxRunningPerKey: maxServedPerKey,
    // No limit is needed here: `maxBytes` and `waitMs` already limit how many bodies can wait.
    maxWaiting: Number.POSITIVE_INFINITY,
    workName: 'large requests',
  });
  const bodies = new Set<ArrivingBody>();

  const refuseLargest = (): void => {
    const bytesByKey = new Map<string, number>();
    for (const { key, bytes } of bodies) bytesByKey.set(key, (bytesByKey.get(key) ?? 0) + bytes);
    const total = [...bytesByKey.values()].reduce((sum, bytes) => sum + bytes, 0);
    if (total <= maxBytes) return;
    const [[largestKey] = ['']] = [...bytesByKey].sort(([, left], [, right]) => right - left);
    const [largestBody] = [...bodies]
      .filter(({ key }) => key === largestKey)
      .sort((left, right) => right.bytes - left.bytes);
    if (largestBody === undefined) return;
    bodies.delete(largestBody);
    largestBody.refuse(createTooManyBodiesError());
  };

  /** Counts the bytes of a body while they arrive. The promise `refusal` rejects if the body is refused. */
  const trackBody = (key: string, incoming: IncomingMessage) => {
    let refuse: ArrivingBody['refuse'] = () => {};
    const refusal = new Promise<never>((_, reject) => {
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
    const stopTracking = () => {
      bodies.delete(body);
      incoming.off('data', onData);
    };
    return { refusal, stopTracking };
  };

  return {
    /**
     * Reads a body with a `Content-Length` header, then waits for a slot. The slot is released when the answer has left the
     * process.
     * @throws AdLibraryError `busy` if the bodies exceed `maxBytes`, or if no slot becomes free in time
     */
    async read(context: Context, key: string, limit: BodyLimit, answerSent: Promise<void>) {
      const { incoming } = context.env as HttpBindings;
      const { refusal, stopTracking } = trackBody(key, incoming as IncomingMessage);
      try {
        const body = await Promise.race([readBody(context, limit), refusal]);
        const waitLimit = { signals: [context.req.raw.signal], ms: waitMs };
        const slot = withDeadline(waitLimit, (signal) => slots.acquire(key, signal));
        // If the body is refused while it waits, the slot may still become free later. Release such a slot immediately.
        refusal.catch(() => slot.then((release) => release()).catch(() => {}));
        const releaseSlot = await Promise.race([slot, refusal]);
        void answerSent.then(releaseSlot);
        return body;
      } finally {
        stopTracking();
      }
    },
  };
}

const createTooManyBodiesError = () =>
  new AdLibraryError({
    kind: 'busy',
    problem: 'Too many large requests are arriving at once. Try again in a few seconds.',
    sent: false,
    details: { retryAfterSeconds: 5 },
  });
