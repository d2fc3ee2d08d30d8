import type { IncomingMessage } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import { readRequestBody } from '@modelcontextprotocol/server';
import type { Context } from 'hono';
import { withDeadline } from '../../api/abort.ts';
import { AdLibraryError } from '../../api/errors.ts';
import { Semaphore } from '../../workers/semaphore.ts';

/** The limits for the body of a request to the MCP endpoint, in bytes. */
export const bodyLimits = {
  maxBytes: 1024 * 1024,
  /** The maximum size of a body from a caller whose API key the service has not accepted yet. */
  maxUnknownCallerBytes: 64 * 1024,
  /** The maximum size of a body without a `Content-Length` header. */
  maxStreamedBytes: 64 * 1024,
} as const;

/** The required media type and the maximum size of a request body. */
interface BodyLimit {
  /** The required media type of the `Content-Type` header, e.g. `application/json`. */
  requiredMediaType: string;
  maxBytes: number;
  /** The maximum size of a body without a `Content-Length` header, in bytes. The default is `maxBytes`. */
  maxStreamedBytes?: number;
}

/**
 * The reason for rejecting a body, as an HTTP status: 413 if the body is too large, 415 if it has the wrong media type.
 */
type BodyProblem = { status: 413 | 415 };

/**
 * Reads the body of a request as text. Returns status 415 if the body has the wrong media type, and 413 if it is too
 * large. Returns an empty string if the client disconnects before the end of the body.
 */
export async function readBody(
  context: Context,
  { requiredMediaType, maxBytes, maxStreamedBytes = maxBytes }: BodyLimit,
): Promise<{ text: string } | BodyProblem> {
  const { raw } = context.req;
  const { headers } = raw;
  const [mediaType = ''] = headers.get('content-type')?.split(';') ?? [];
  if (mediaType.trim().toLowerCase() !== requiredMediaType) return { status: 415 };
  if (Number(headers.get('content-length') ?? 0) > maxBytes) return refuseLargeBody(context);
  // The HTTP parser enforces `Content-Length`, so only the bytes of a chunked body must be counted while they arrive.
  if (!headers.has('transfer-encoding')) return { text: await raw.text().catch(() => '') };
  const bodyResult = await readRequestBody(raw, maxStreamedBytes).catch(() => ({ tooLarge: false, text: '' }) as const);
  return bodyResult.tooLarge ? refuseLargeBody(context) : { text: bodyResult.text };
}

function refuseLargeBody(context: Context): BodyProblem {
  // The client is still sending the rest of the body. Only closing the connection stops the client.
  context.header('Connection', 'close');
  return { status: 413 };
}

/** The maximum total size of large bodies that are arriving or waiting to be served, in bytes. */
const maxPendingBytes = 64 * 1024 * 1024;
/**
 * The maximum number of large request bodies that are parsed and served at the same time: in total, and per API key. A
 * parsed body takes much memory.
 */
const [maxServedBodies, maxServedBodiesPerKey] = [8, 2];
/** How long a large body that has arrived completely may wait to be served, in milliseconds. */
const maxWaitMs = 20_000;

/** A large request body that is arriving or waiting to be served. `tenantId` is a hash of the caller's API key. */
interface PendingBody {
  tenantId: string;
  receivedBytes: number;
  refuse(error: AdLibraryError): void;
}

/**
 * Creates a reader of large request bodies. A large message takes much memory once it is parsed, so only a few messages
 * are parsed and served at the same time.
 *
 * A body takes a slot only after it has arrived completely, so that a slow client cannot block a slot. Until the body
 * gets a slot, its bytes count toward `maxBytes`. If all bodies together exceed `maxBytes`, the largest body of the API
 * key with the most bytes is rejected.
 */
export function createLargeBodyReader({ maxBytes = maxPendingBytes, waitMs = maxWaitMs } = {}) {
  const slots = new Semaphore({
    maxRunningCalls: maxServedBodies,
    maxRunningCallsPerKey: maxServedBodiesPerKey,
    // The queue needs no limit, because `maxBytes` and `waitMs` already limit the number of waiting bodies.
    maxWaitingCalls: Number.POSITIVE_INFINITY,
    workName: 'large requests',
  });
  const pendingBodies = new Set<PendingBody>();

  /** Rejects the largest body of the API key with the most bytes, if all pending bodies together exceed `maxBytes`. */
  const enforceByteLimit = (): void => {
    const bytesByTenant = new Map<string, number>();
    for (const { tenantId, receivedBytes } of pendingBodies)
      bytesByTenant.set(tenantId, (bytesByTenant.get(tenantId) ?? 0) + receivedBytes);
    const totalBytes = [...bytesByTenant.values()].reduce((sum, bytes) => sum + bytes, 0);
    if (totalBytes <= maxBytes) return;
    const [[largestTenantId] = ['']] = [...bytesByTenant].sort(([, left], [, right]) => right - left);
    const [largestBody] = [...pendingBodies]
      .filter(({ tenantId }) => tenantId === largestTenantId)
      .sort((left, right) => right.receivedBytes - left.receivedBytes);
    if (largestBody === undefined) return;
    pendingBodies.delete(largestBody);
    largestBody.refuse(createTooManyBodiesError());
  };

  /** Counts the bytes of a body while they arrive. The promise `refusal` rejects if the body must be rejected. */
  const trackBody = (tenantId: string, incoming: IncomingMessage) => {
    let refuse: PendingBody['refuse'] = () => {};
    const refusal = new Promise<never>((_, reject) => {
      refuse = reject;
    });
    const body: PendingBody = { tenantId, receivedBytes: 0, refuse };
    pendingBodies.add(body);
    const onData = (chunk: Buffer) => {
      if (!pendingBodies.has(body)) return;
      body.receivedBytes += chunk.length;
      enforceByteLimit();
    };
    incoming.on('data', onData);
    const stopTracking = () => {
      pendingBodies.delete(body);
      incoming.off('data', onData);
    };
    return { refusal, stopTracking };
  };

  return {
    /**
     * Reads a body with a `Content-Length` header, then waits for a slot for large bodies. The slot is released when
     * the response has been sent.
     * @throws AdLibraryError `busy` if all bodies together exceed `maxBytes`, or if no slot becomes free in time
     */
    async read(context: Context, tenantId: string, bodyLimit: BodyLimit, responseSent: Promise<void>) {
      const { incoming } = context.env as HttpBindings;
      const { refusal, stopTracking } = trackBody(tenantId, incoming as IncomingMessage);
      try {
        const body = await Promise.race([readBody(context, bodyLimit), refusal]);
        const waitOptions = { signals: [context.req.raw.signal], timeoutMs: waitMs };
        const pendingSlot = withDeadline(waitOptions, (signal) => slots.acquire(tenantId, signal));
        // The body may be rejected while it waits for a slot. If a slot becomes free later, release it immediately.
        refusal.catch(() => pendingSlot.then((releaseSlot) => releaseSlot()).catch(() => {}));
        const releaseSlot = await Promise.race([pendingSlot, refusal]);
        void responseSent.then(releaseSlot);
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
    wasSent: false,
    details: { retryAfterSeconds: 5 },
  });
