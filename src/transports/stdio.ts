import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay, setImmediate as yieldToEventLoop } from 'node:timers/promises';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import type { Credentials } from '../api/client.ts';
import { parseJson } from '../api/json.ts';
import type { Logger, OnCall } from '../logging/log.ts';
import type { Catalog, Session } from '../mcp/catalog.ts';
import {
  findEnvelopeError,
  findRequestError,
  isCancelNotification,
  isJsonRpcMessage,
  isRequestId,
  isRevision2026Message,
  normalizeMessage,
  type RequestSchemas,
} from '../mcp/protocol.ts';
import { createSdkV1Server, requestSchemasV1 } from '../mcp/sdk-v1.ts';
import { type ConcurrencyLimits, createConcurrencyLimiter } from './limits.ts';

/** The options of `serveStdio`. `catalog` contains the tools and resources. `credentials` contains the API key. */
interface StdioOptions {
  catalog: Catalog;
  credentials: Credentials;
  log: Logger;
  /** Returns milliseconds from a clock that is never set back. Used to measure durations. */
  monotonicNow: () => number;
  onCall: OnCall;
  stdin: Readable;
  stdout: Writable;
  /** Resolves when the process is asked to stop, e.g. by a SIGTERM signal. */
  stopRequested: Promise<void>;
  /** Called when the input ends, when the output closes, or when the process is asked to stop. */
  onEnd?(): void;
  /** How long running calls may continue after the process is asked to stop, in milliseconds. */
  drainMs: number;
}

/**
 * The limits of a stdio session. An MCP host sends only a few concurrent calls, so a host that exceeds these limits is
 * probably stuck in a loop.
 */
const stdioSessionLimits: ConcurrencyLimits = { maxRunningCalls: 32, maxRunningCallsPerKey: 32, maxWaitingCalls: 256 };

/**
 * Serves one client over a pair of streams. Each line is one JSON-RPC message (MCP specification, *Transports*). The
 * response to an invalid line is a JSON-RPC error, and the session continues.
 *
 * At the end of the input, the session waits for running calls until they time out. The service charges for a paid call
 * once it is sent, so the session should still deliver the result. When the process is asked to stop, the session waits
 * for `drainMs` and then aborts running calls. When the output closes, the session aborts running calls immediately.
 *
 * We do not use the stdio transports of the SDKs. The v1 transport crashes when the reader of its output disconnects,
 * and does not detect the end of its input. The v2 transport loads the whole SDK even for sessions with an earlier
 * revision. Both keep reading input while nobody reads their output.
 */
export async function serveStdio(options: StdioOptions): Promise<void> {
  const { catalog, credentials, log, stdin, stdout, stopRequested, drainMs } = options;
  const { monotonicNow, onCall } = options;
  const concurrencyLimiter = createConcurrencyLimiter(catalog, { limits: stdioSessionLimits, monotonicNow, onCall });
  // Listen for `error`. Without a listener, the first write after the client has disconnected would end the process.
  const outputClosed = new Promise<void>((resolve) => {
    for (const event of ['close', 'error']) stdout.on(event, () => resolve());
  });
  // Convert the message to bytes, because buffered bytes take less memory than buffered text.
  const send: SendMessage = (message) =>
    new Promise((resolve) => stdout.write(Buffer.from(`${JSON.stringify(message)}\n`), () => resolve()));
  const inputEndController = new AbortController();
  const session = { ...credentials, inputEndSignal: inputEndController.signal };
  const transports = createTransports(concurrencyLimiter.limitedCatalog, session, send);
  const readInput = async () => {
    for await (const line of readLines(stdin)) {
      const parsedLine = parseMessage(line);
      if ('message' in parsedLine) await transports.receive(parsedLine.message);
      else {
        log.debug('stdio', { problem: parsedLine.error.message });
        void send({ jsonrpc: '2.0', ...parsedLine });
      }
      // Wait if the client reads responses more slowly than it sends requests. Otherwise, unread responses would fill
      // the memory.
      if (stdout.writableNeedDrain) await Promise.race([once(stdout, 'drain'), outputClosed]);
    }
  };
  const inputEnded = readInput()
    .catch((error) => log.debug('stdio', { problem: String(error) }))
    .finally(() => inputEndController.abort());
  await Promise.race([inputEnded, outputClosed, stopRequested]);
  options.onEnd?.();
  // Before the session ends, send a response to every message that was read. Otherwise, `echo … | ad-library-mcp` would
  // not print a response.
  const flushOutput = () => new Promise<void>((resolve) => stdout.write('', () => resolve()));
  const allResponsesSent = transports.waitUntilAnswered().then(flushOutput);
  const stopDeadlinePassed = stopRequested.then(() => delay(drainMs, undefined, { ref: false }));
  // Calls normally end when they reach their own timeout. This second limit ends the session even if a call ignores its
  // timeout.
  const sessionDeadlinePassed = delay(catalog.timeoutMs + drainMs, undefined, { ref: false });
  await Promise.race([allResponsesSent, outputClosed, stopDeadlinePassed, sessionDeadlinePassed]);
  transports.close();
}

/**
 * A function that writes a JSON-RPC message to the output and resolves when the message has been sent. The transports
 * of all MCP revisions write to the same output.
 */
type SendMessage = (message: JSONRPCMessage | ErrorMessage) => Promise<void>;

/**
 * Creates the transports of a session, one for each version of the MCP SDK. Each transport is created on first use.
 *
 * If the first message of a client has the format of MCP revision 2026-07-28, the session uses the SDK for that
 * revision. For all other clients, the session uses the SDK for earlier revisions. Most clients need this older SDK, so
 * the process loads it at the start. The newer SDK is loaded only when a client needs it. After `server/discover`, the
 * client may still switch to an earlier revision (MCP specification, *Lifecycle*).
 */
function createTransports(catalog: Catalog, session: Session, send: SendMessage) {
  let chosenTransport: SdkTransport | undefined;
  let latestTransport: SdkTransport | undefined;
  const listOpenTransports = () =>
    [...new Set([chosenTransport, latestTransport])].filter((transport) => transport !== undefined);

  const createLatestTransport = async () => {
    const { createSdkV2Server, requestSchemasV2 } = await import('../mcp/sdk-v2.ts');
    const { serveStdio } = await import('@modelcontextprotocol/server/stdio');
    const transport = createSdkTransport(send, requestSchemasV2);
    const { waitUntilSent } = transport;
    serveStdio(() => createSdkV2Server(catalog, { waitUntilSent, ...session }), { transport, legacy: 'reject' });
    return transport;
  };
  const createEarlierTransport = async () => {
    const transport = createSdkTransport(send, requestSchemasV1);
    const { waitUntilSent } = transport;
    await createSdkV1Server(catalog, { waitUntilSent, ...session }).connect(transport);
    return transport;
  };
  const chooseTransport = async (message: JSONRPCMessage): Promise<SdkTransport> => {
    if (chosenTransport) return chosenTransport;
    if (!isRevision2026Message(message)) {
      chosenTransport = await createEarlierTransport();
      return chosenTransport;
    }
    latestTransport ??= await createLatestTransport();
    if ('method' in message && 'id' in message && message.method !== 'server/discover')
      chosenTransport = latestTransport;
    return latestTransport;
  };

  return {
    /** Passes a message to the SDK that supports the MCP revision of the client. */
    async receive(message: JSONRPCMessage): Promise<void> {
      const transport = await chooseTransport(message);
      transport.receive(message);
      // Let the SDK write responses that are already available. The session then knows how much output is unread before
      // it reads the next message.
      await yieldToEventLoop();
    },
    /** Resolves when the session has responded to every request that it read. */
    waitUntilAnswered: () => Promise.all(listOpenTransports().map((transport) => transport.waitUntilAnswered())),
    /** Aborts all running calls. Called at the end of the session, e.g. when the output closes. */
    close: () => {
      for (const transport of listOpenTransports()) transport.onclose?.();
    },
  };
}

type SdkTransport = ReturnType<typeof createSdkTransport>;

/** A request without a response so far. When the input ends, the session waits for all open requests. */
interface OpenRequest {
  /** Resolves when the response has been sent, or when the client has cancelled the request. */
  completion: Promise<void>;
  complete(): void;
}

/**
 * Creates the transport between the session and one version of the MCP SDK. The transport only writes messages. The
 * session reads the input, passes each message to the transport, and closes the streams.
 */
function createSdkTransport(write: SendMessage, schemas: RequestSchemas) {
  const openRequests = new Map<unknown, OpenRequest>();
  const addOpenRequest = (id: unknown) => {
    let complete = () => {};
    const completion = new Promise<void>((resolve) => {
      complete = resolve;
    });
    openRequests.set(id, { completion, complete });
  };
  const endRequest = (id: unknown) => {
    openRequests.get(id)?.complete();
    openRequests.delete(id);
  };
  const send = async (message: JSONRPCMessage) => {
    await write(message);
    if (!('method' in message)) endRequest(message.id);
  };
  const transport: Transport = { start: async () => {}, close: async () => transport.onclose?.(), send };
  return Object.assign(transport, {
    /** Resolves when the response to the request has been sent, or when the client has cancelled the request. */
    waitUntilSent: (id: unknown): Promise<void> => openRequests.get(id)?.completion ?? Promise.resolve(),
    /** Resolves when the session has responded to every request that it read. */
    waitUntilAnswered: async () => {
      while (openRequests.size > 0) await Promise.race([...openRequests.values()].map(({ completion }) => completion));
    },
    /**
     * Passes a message to the SDK. If the message is a request that does not match its schema, sends an error response
     * instead. Over stdio, the SDKs send no response to a request with an invalid id or an unknown member.
     */
    receive: (message: JSONRPCMessage) => {
      if ('method' in message && 'id' in message) {
        // Do not count a subscription as an open request, because its response is sent only when the subscription ends.
        if (!openRequests.has(message.id) && message.method !== 'subscriptions/listen') addOpenRequest(message.id);
        const error = findEnvelopeError(schemas, message) ?? findRequestError(schemas, message);
        if (error) return void send({ jsonrpc: '2.0', id: message.id, error });
      }
      transport.onmessage?.(message);
      // End the cancelled request here, because the SDK sends no response to it.
      if (isJsonRpcMessage(message) && isCancelNotification(message)) endRequest(message.params?.requestId);
    },
  });
}

/** The maximum size of one message, in bytes. Real tool calls contain only ids and filters, so they are far smaller. */
const maxMessageBytes = 10 * 1024 * 1024;
const newline = 0x0a;

/**
 * Yields the non-empty lines of the input. The last line may end without a line break. If a line exceeds
 * `maxMessageBytes`, yields undefined instead of the line.
 */
async function* readLines(stdin: Readable): AsyncGenerator<string | undefined> {
  let linePieces: Buffer[] = [];
  let lineBytes = 0;
  const addPiece = (piece: Buffer) => {
    lineBytes += piece.length;
    if (lineBytes <= maxMessageBytes) linePieces.push(piece);
    else linePieces = [];
  };
  const takeLine = () => {
    const line = lineBytes > maxMessageBytes ? undefined : Buffer.concat(linePieces).toString().trim();
    linePieces = [];
    lineBytes = 0;
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

/** The JSON-RPC error response to an invalid request. The id is null if the request had no valid id. */
interface ErrorMessage {
  jsonrpc: '2.0';
  id: string | number | null;
  error: { code: number; message: string };
}

/** Parses a line as a JSON-RPC message. Returns the content of an error response if the line is invalid. */
function parseMessage(line: string | undefined): { message: JSONRPCMessage } | Omit<ErrorMessage, 'jsonrpc'> {
  const createError = (code: number, message: string, id: ErrorMessage['id'] = null) => ({
    id,
    error: { code, message },
  });
  const parsedJson = line === undefined ? undefined : parseJson(line);
  if (line === undefined)
    return createError(-32_700, `A message may have at most ${maxMessageBytes / 1024 / 1024} MB.`);
  if (parsedJson === undefined) return createError(-32_700, 'Parse error: each line must be one JSON value.');
  const { jsonrpc, id, method, ...otherFields }: Record<string, unknown> = Object(parsedJson);
  const validId = isRequestId(id) ? id : null;
  const isRequestOrResponse = typeof method === 'string' || 'result' in otherFields || 'error' in otherFields;
  if (jsonrpc !== '2.0' || !isRequestOrResponse)
    return createError(-32_600, 'Invalid request: each line must be one JSON-RPC 2.0 message.', validId);
  if (id !== undefined && validId === null)
    return createError(-32_600, 'Invalid request: an id must be a string or a number.');
  return { message: normalizeMessage(parsedJson) as JSONRPCMessage };
}
