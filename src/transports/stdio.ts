import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as after, setImmediate as nextEventLoopTurn } from 'node:timers/promises';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import type { Credentials } from '../api/client.ts';
import { parseJson } from '../api/json.ts';
import type { Log, OnCall } from '../logging/log.ts';
import {
  checkRequest,
  isCancelNotice,
  isId,
  isLatestRevision,
  isMessage,
  normalizeMessage,
  type RequestSchemas,
} from '../mcp/protocol.ts';
import { bindV1, requestSchemasV1 } from '../mcp/sdk-v1.ts';
import type { Catalog, Session } from '../mcp/served.ts';
import { limitWork, type WorkLimits } from './limits.ts';

/** What a stdio session depends on. */
interface StdioOptions {
  catalog: Catalog;
  credentials: Credentials;
  log: Log;
  /** A monotonic clock, in milliseconds. */
  now: () => number;
  onCall: OnCall;
  stdin: Readable;
  stdout: Writable;
  /** Resolves when the process is asked to stop. */
  stopRequested: Promise<void>;
  /** Called at the end of the input, or when the process is asked to stop. */
  onEnd?(): void;
  /** How long running calls may continue after the process is asked to stop, in milliseconds. */
  drainMs: number;
}

/** A host makes only a few calls at the same time. A host that makes more calls is stuck in a loop. */
const limits: WorkLimits = { maxRunning: 32, maxRunningPerKey: 32, maxWaiting: 256 };

/**
 * Serves one client over a pair of streams. Each line is one JSON-RPC message (MCP specification, *Transports*). An
 * invalid line is answered with a JSON-RPC error, and the session continues.
 *
 * At the end of the input, the session waits for running calls until their timeouts. The service charges for a paid call
 * once it was sent, so its result should still be delivered. When the process is asked to stop, the session waits
 * `drainMs` and then aborts running calls. When the output closes, the session aborts them immediately.
 *
 * The session does not use the stdio transports of the SDKs. The transport of v1 crashes when the reader of its output
 * disconnects, and does not notice the end of its input. The transport of v2 loads the whole SDK even for sessions of an
 * earlier revision. Both transports continue to read when nobody reads their answers.
 */
export async function serveStdio(options: StdioOptions): Promise<void> {
  const { catalog, credentials, log, stdin, stdout, stopRequested, drainMs } = options;
  const limitedWork = limitWork(catalog, { limits, now: options.now, onCall: options.onCall });
  // After the reader has disconnected, every write fails. Without a listener, the error would end the process.
  const outputClosed = new Promise<void>((resolve) => {
    for (const event of ['close', 'error']) stdout.on(event, () => resolve());
  });
  // Bytes take less memory than text while they wait to be read.
  const send: Send = (message) =>
    new Promise((resolve) => stdout.write(Buffer.from(`${JSON.stringify(message)}\n`), () => resolve()));
  const inputEnd = new AbortController();
  const session = { ...credentials, inputEnded: inputEnd.signal };
  const transports = openTransports(limitedWork.catalog, session, send);
  const readAll = async () => {
    for await (const line of readLines(stdin)) {
      const parsedLine = parseMessage(line);
      if ('message' in parsedLine) await transports.receive(parsedLine.message);
      else {
        log.debug('stdio', { problem: parsedLine.error.message });
        void send({ jsonrpc: '2.0', ...parsedLine });
      }
      // Do not read messages faster than the client reads the answers, or unread answers would fill the memory.
      if (stdout.writableNeedDrain) await Promise.race([once(stdout, 'drain'), outputClosed]);
    }
  };
  const inputEnded = readAll()
    .catch((error) => log.debug('stdio', { problem: String(error) }))
    .finally(() => inputEnd.abort());
  await Promise.race([inputEnded, outputClosed, stopRequested]);
  options.onEnd?.();
  // Answer every message that was read, so that `echo … | ad-library-mcp` works.
  const flush = () => new Promise<void>((resolve) => stdout.write('', () => resolve()));
  const allAnswered = transports.waitUntilAnswered().then(flush);
  const drainExpired = stopRequested.then(() => after(drainMs, undefined, { ref: false }));
  // Every call ends by its timeout. This limit is for a call that ignores its timeout.
  const maxDrainExpired = after(catalog.timeoutMs + drainMs, undefined, { ref: false });
  await Promise.race([allAnswered, outputClosed, drainExpired, maxDrainExpired]);
  transports.close();
}

/** Writes a message to the output, which all revisions share. Resolves when the line has left the process. */
type Send = (message: JSONRPCMessage | ErrorMessage) => Promise<void>;

/**
 * Creates the transports of a session: one for each SDK, opened when it is first needed.
 *
 * A client that begins with the envelope of revision 2026-07-28 is served by the SDK of that revision. Any other client
 * is served by the SDK of the earlier revisions. The newer SDK is loaded when it is first needed. The older SDK is loaded
 * at the start, because most hosts need it. `server/discover` does not choose a revision: the client may still continue
 * with an earlier one (MCP specification, *Lifecycle*).
 */
function openTransports(catalog: Catalog, session: Session, send: Send) {
  let chosenTransport: RevisionTransport | undefined;
  let latestTransport: RevisionTransport | undefined;
  const listOpenTransports = () =>
    [...new Set([chosenTransport, latestTransport])].filter((transport) => transport !== undefined);

  const openLatest = async () => {
    const { bindV2, requestSchemasV2 } = await import('../mcp/sdk-v2.ts');
    const { serveStdio } = await import('@modelcontextprotocol/server/stdio');
    const transport = openTransport(send, requestSchemasV2);
    const { waitUntilSent } = transport;
    serveStdio(() => bindV2(catalog, { waitUntilSent, ...session }), { transport, legacy: 'reject' });
    return transport;
  };
  const openEarlier = async () => {
    const transport = openTransport(send, requestSchemasV1);
    const { waitUntilSent } = transport;
    await bindV1(catalog, { waitUntilSent, ...session }).connect(transport);
    return transport;
  };
  const chooseTransport = async (message: JSONRPCMessage): Promise<RevisionTransport> => {
    if (chosenTransport) return chosenTransport;
    if (!isLatestRevision(message)) {
      chosenTransport = await openEarlier();
      return chosenTransport;
    }
    latestTransport ??= await openLatest();
    if ('method' in message && 'id' in message && message.method !== 'server/discover')
      chosenTransport = latestTransport;
    return latestTransport;
  };

  return {
    /** Passes a message to the SDK of its revision. */
    async receive(message: JSONRPCMessage): Promise<void> {
      const transport = await chooseTransport(message);
      transport.receive(message);
      // Some responses are ready within this turn of the event loop. They must count as unread before the next message.
      await nextEventLoopTurn();
    },
    /** Resolves when no request is waiting for its response. */
    waitUntilAnswered: () => Promise.all(listOpenTransports().map((transport) => transport.waitUntilAnswered())),
    /** Aborts running calls. */
    close: () => {
      for (const transport of listOpenTransports()) transport.onclose?.();
    },
  };
}

type RevisionTransport = ReturnType<typeof openTransport>;

/** A request that has no response yet. */
interface OpenRequest {
  /** Resolves when the response has left the process, or when the client has cancelled the request. */
  ended: Promise<void>;
  end(): void;
}

/**
 * Creates the transport of one SDK. The transport only writes messages. The session reads the input, passes the messages
 * on, and closes the streams.
 */
function openTransport(write: Send, schemas: RequestSchemas) {
  const openRequests = new Map<unknown, OpenRequest>();
  const openRequest = (id: unknown) => {
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    openRequests.set(id, { ended, end });
  };
  const endRequest = (id: unknown) => {
    openRequests.get(id)?.end();
    openRequests.delete(id);
  };
  const send = async (message: JSONRPCMessage) => {
    await write(message);
    if (!('method' in message)) endRequest(message.id);
  };
  const transport: Transport = { start: async () => {}, close: async () => transport.onclose?.(), send };
  return Object.assign(transport, {
    /** Resolves when the response to the request has left the process, or when the client has cancelled the request. */
    waitUntilSent: (id: unknown): Promise<void> => openRequests.get(id)?.ended ?? Promise.resolve(),
    /** Resolves when no request is waiting for its response. */
    waitUntilAnswered: async () => {
      while (openRequests.size > 0) await Promise.race([...openRequests.values()].map(({ ended }) => ended));
    },
    /** Passes a message to the SDK. Answers a request that does not match its schema with an error. */
    receive: (message: JSONRPCMessage) => {
      if ('method' in message && 'id' in message) {
        // The answer to a subscription is the end of the subscription, so nobody waits for the answer.
        if (!openRequests.has(message.id) && message.method !== 'subscriptions/listen') openRequest(message.id);
        const error = checkRequest(schemas, message);
        if (error) return void send({ jsonrpc: '2.0', id: message.id, error });
      }
      transport.onmessage?.(message);
      // The SDK sends no response to a cancelled request, so nothing else would end the request.
      if (isMessage(message) && isCancelNotice(message)) endRequest(message.params?.requestId);
    },
  });
}

/** The most bytes of one message. Arguments are ids and filters, so real calls are far smaller. */
const maxMessageBytes = 10 * 1024 * 1024;
const newline = 0x0a;

/**
 * Yields the lines of the input without empty lines. The last line needs no line break at its end. Yields undefined for a
 * line with more than `maxMessageBytes`.
 */
async function* readLines(stdin: Readable): AsyncGenerator<string | undefined> {
  let pieces: Buffer[] = [];
  let bytes = 0;
  const addPiece = (piece: Buffer) => {
    bytes += piece.length;
    if (bytes <= maxMessageBytes) pieces.push(piece);
    else pieces = [];
  };
  const takeLine = () => {
    const line = bytes > maxMessageBytes ? undefined : Buffer.concat(pieces).toString().trim();
    pieces = [];
    bytes = 0;
    return line;
  };
  for await (const chunk of stdin as AsyncIterable<Buffer>) {
    let lineStart = 0;
    for (let lineEnd = chunk.indexOf(newline); lineEnd !== -1; lineEnd = chunk.indexOf(newline, lineStart)) {
      addPiece(chunk.subarray(lineStart, lineEnd));
      lineStart = lineEnd + 1;
      const line = takeLine();
      if (line !== '') yield line;
    }
    addPiece(chunk.subarray(lineStart));
  }
  const lastLine = takeLine();
  if (lastLine !== '') yield lastLine;
}

/** The JSON-RPC answer to an invalid request. The id is null if the request had no valid id. */
interface ErrorMessage {
  jsonrpc: '2.0';
  id: string | number | null;
  error: { code: number; message: string };
}

/** Parses a line as a JSON-RPC message. Returns the error to answer if the line is not valid. */
function parseMessage(line: string | undefined): { message: JSONRPCMessage } | Omit<ErrorMessage, 'jsonrpc'> {
  const createError = (code: number, message: string, id: ErrorMessage['id'] = null) => ({
    id,
    error: { code, message },
  });
  const value = line === undefined ? undefined : parseJson(line);
  if (line === undefined)
    return createError(-32_700, `A message may have at most ${maxMessageBytes / 1024 / 1024} MB.`);
  if (value === undefined) return createError(-32_700, 'Parse error: each line must be one JSON value.');
  const { jsonrpc, id, method, ...otherFields }: Record<string, unknown> = Object(value);
  const validId = isId(id) ? id : null;
  const isMessageBody = typeof method === 'string' || 'result' in otherFields || 'error' in otherFields;
  if (jsonrpc !== '2.0' || !isMessageBody)
    return createError(-32_600, 'Invalid request: each line must be one JSON-RPC 2.0 message.', validId);
  if (id !== undefined && validId === null)
    return createError(-32_600, 'Invalid request: an id must be a string or a number.');
  return { message: normalizeMessage(value) as JSONRPCMessage };
}
