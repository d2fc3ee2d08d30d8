import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as after, setImmediate as nextTurn } from 'node:timers/promises';
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
import { bindV1, requestsV1 } from '../mcp/sdk-v1.ts';
import type { Catalog } from '../mcp/served.ts';
import { limitWork, type WorkLimits } from './limits.ts';

interface StdioOptions {
  catalog: Catalog;
  credentials: Credentials;
  log: Log;
  now: () => number;
  onCall: OnCall;
  stdin: Readable;
  stdout: Writable;
  /** Resolves when the process is asked to stop. */
  stopRequested: Promise<void>;
  /** Called at the end of the input, or when the process is asked to stop. */
  onEnd?(): void;
  /** How long running calls may go on after the process was asked to stop, in milliseconds. */
  drainMs: number;
}

/** A host makes a few calls at once; one that makes more is stuck in a loop. */
const limits: WorkLimits = { maxRunning: 32, perKey: 32, waiting: 256 };

/**
 * Serves one client over a pair of streams. Each line is one JSON-RPC message (MCP specification, *Transports*). A line
 * that is no message is answered with a JSON-RPC error, and the session goes on.
 *
 * At the end of the input, waits for running calls, each of which has its own deadline: a paid call that was sent is
 * charged, so its result should be delivered. When the process is asked to stop, waits `drainMs` and then aborts running
 * calls. When the output closes, aborts them at once.
 *
 * The transports of the SDKs are not used. The one of v1 crashes when the reader of its output disconnects, and does not
 * notice the end of its input. The one of v2 loads the whole SDK into sessions that speak an earlier revision. Neither
 * stops reading when nobody reads its answers.
 */
export async function serveStdio(options: StdioOptions): Promise<void> {
  const { catalog, credentials, log, stdin, stdout, stopRequested, drainMs } = options;
  const calls = limitWork(catalog, { limits, now: options.now, onCall: options.onCall });
  // Once the reader has gone, every write fails; without a listener, that would end the process.
  const outputClosed = new Promise<void>((resolve) => {
    for (const end of ['close', 'error']) stdout.on(end, () => resolve());
  });
  // Bytes take less room than a text that waits to be read.
  const send: Send = (message) =>
    new Promise((resolve) => stdout.write(Buffer.from(`${JSON.stringify(message)}\n`), () => resolve()));
  const revisions = openRevisions(calls.catalog, credentials, send);
  const readAll = async () => {
    for await (const line of linesOf(stdin)) {
      const read = messageIn(line);
      if ('message' in read) await revisions.receive(read.message);
      else {
        log.debug('stdio', { problem: read.error.message });
        void send({ jsonrpc: '2.0', ...read });
      }
      // Messages are read no faster than the client reads the answers.
      if (stdout.writableNeedDrain) await Promise.race([once(stdout, 'drain'), outputClosed]);
    }
  };
  const read = readAll().catch((error) => log.debug('stdio', { problem: String(error) }));
  await Promise.race([read, outputClosed, stopRequested]);
  options.onEnd?.();
  // Messages that were read are answered if somebody reads the answers: `echo … | ad-library-mcp` works.
  const flush = () => new Promise<void>((resolve) => stdout.write('', () => resolve()));
  const answered = revisions.answered().then(flush);
  const stopped = stopRequested.then(() => after(drainMs, undefined, { ref: false }));
  // Every call has ended after its timeout. This bound is for a call that does not notice its timeout.
  const late = after(catalog.timeoutMs + drainMs, undefined, { ref: false });
  await Promise.race([answered, outputClosed, stopped, late]);
  revisions.close();
}

/** Writes to the one stream that all revisions share; resolves when the line has left the process. */
type Send = (message: JSONRPCMessage | ErrorMessage) => Promise<void>;

/**
 * Opens the transports of a session, one for each SDK. A client that opens with the envelope of revision 2026-07-28 is
 * served by the SDK of that revision, and any other client by the SDK of the earlier revisions. The former is loaded when
 * it is first needed. The latter is part of the start, which is faster for most hosts. `server/discover` decides nothing:
 * a client may still go on with an earlier revision (MCP specification, *Lifecycle*).
 */
function openRevisions(catalog: Catalog, credentials: Credentials, send: Send) {
  let settled: RevisionTransport | undefined;
  let latest: RevisionTransport | undefined;
  const opened = () => [...new Set([settled, latest])].filter((transport) => transport !== undefined);

  const openLatest = async () => {
    const { bindV2, requestsV2 } = await import('../mcp/sdk-v2.ts');
    const { serveStdio } = await import('@modelcontextprotocol/server/stdio');
    const transport = openTransport(send, requestsV2);
    const { sentOf } = transport;
    serveStdio(() => bindV2(catalog, { sentOf, ...credentials }), { transport, legacy: 'reject' });
    return transport;
  };
  const openEarlier = async () => {
    const transport = openTransport(send, requestsV1);
    const { sentOf } = transport;
    await bindV1(catalog, { sentOf, ...credentials }).connect(transport);
    return transport;
  };
  const transportFor = async (message: JSONRPCMessage): Promise<RevisionTransport> => {
    if (settled) return settled;
    if (!isLatestRevision(message)) {
      settled = await openEarlier();
      return settled;
    }
    latest ??= await openLatest();
    if ('method' in message && 'id' in message && message.method !== 'server/discover') settled = latest;
    return latest;
  };

  return {
    async receive(message: JSONRPCMessage): Promise<void> {
      const transport = await transportFor(message);
      transport.receive(message);
      // So that a response that needs no waiting counts as unread before the next message is read.
      await nextTurn();
    },
    answered: () => Promise.all(opened().map((transport) => transport.answered())),
    close: () => {
      for (const transport of opened()) transport.onclose?.();
    },
  };
}

type RevisionTransport = ReturnType<typeof openTransport>;

/** A request that was received. */
interface OpenRequest {
  /** Resolves when the response has left the process, or when the client has cancelled the request. */
  ended: Promise<void>;
  end(): void;
}

/** Creates the transport of one SDK. It writes messages, and leaves reading and closing to the owner of the streams. */
function openTransport(write: Send, schemas: RequestSchemas) {
  const openRequests = new Map<unknown, OpenRequest>();
  const open = (id: unknown) => {
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    openRequests.set(id, { ended, end });
  };
  const end = (id: unknown) => {
    openRequests.get(id)?.end();
    openRequests.delete(id);
  };
  const send = async (message: JSONRPCMessage) => {
    await write(message);
    if (!('method' in message)) end(message.id);
  };
  const transport: Transport = { start: async () => {}, close: async () => transport.onclose?.(), send };
  return Object.assign(transport, {
    /** Resolves when the response to the request has left the process, or when the client has cancelled the request. */
    sentOf: (id: unknown): Promise<void> => openRequests.get(id)?.ended ?? Promise.resolve(),
    /** Resolves when no request waits for its response. */
    answered: async () => {
      while (openRequests.size > 0) await Promise.race([...openRequests.values()].map(({ ended }) => ended));
    },
    /** Passes a message to the SDK, or answers a request that does not match its schema. */
    receive: (message: JSONRPCMessage) => {
      if ('method' in message && 'id' in message) {
        if (!openRequests.has(message.id)) open(message.id);
        const error = checkRequest(schemas, message);
        if (error) return void send({ jsonrpc: '2.0', id: message.id, error });
      }
      transport.onmessage?.(message);
      // The SDK sends no response to a request that was cancelled.
      if (isMessage(message) && isCancelNotice(message)) end(message.params?.requestId);
    },
  });
}

/** Maximum bytes of one message. Arguments are ids and filters, so no real call comes near it. */
const maxMessage = 10 * 1024 * 1024;
const newline = 0x0a;

/** Without empty lines, and with the last one even without its line break; undefined for a line that is too long. */
async function* linesOf(stdin: Readable): AsyncGenerator<string | undefined> {
  let pieces: Buffer[] = [];
  let bytes = 0;
  const hold = (piece: Buffer) => {
    bytes += piece.length;
    if (bytes <= maxMessage) pieces.push(piece);
    else pieces = [];
  };
  const finish = () => {
    const line = bytes > maxMessage ? undefined : Buffer.concat(pieces).toString().trim();
    pieces = [];
    bytes = 0;
    return line;
  };
  for await (const chunk of stdin as AsyncIterable<Buffer>) {
    let from = 0;
    for (let to = chunk.indexOf(newline); to !== -1; to = chunk.indexOf(newline, from)) {
      hold(chunk.subarray(from, to));
      from = to + 1;
      const line = finish();
      if (line !== '') yield line;
    }
    hold(chunk.subarray(from));
  }
  const last = finish();
  if (last !== '') yield last;
}

/** JSON-RPC's answer to an invalid request; its id is null if none could be read. */
interface ErrorMessage {
  jsonrpc: '2.0';
  id: string | number | null;
  error: { code: number; message: string };
}

function messageIn(line: string | undefined): { message: JSONRPCMessage } | Omit<ErrorMessage, 'jsonrpc'> {
  const errorAnswer = (code: number, message: string, id: ErrorMessage['id'] = null) => ({
    id,
    error: { code, message },
  });
  const value = line === undefined ? undefined : parseJson(line);
  if (line === undefined) return errorAnswer(-32_700, `A message may hold ${maxMessage / 1024 / 1024} MB at most.`);
  if (value === undefined) return errorAnswer(-32_700, 'Parse error: a line is one JSON value.');
  const { jsonrpc, id, method, ...rest }: Record<string, unknown> = Object(value);
  const answerId = isId(id) ? id : null;
  if (jsonrpc !== '2.0' || (typeof method !== 'string' && !('result' in rest) && !('error' in rest)))
    return errorAnswer(-32_600, 'Invalid request: a line is one JSON-RPC 2.0 message.', answerId);
  if (id !== undefined && answerId === null)
    return errorAnswer(-32_600, 'Invalid request: an id is a string or a number.');
  return { message: normalizeMessage(value) as JSONRPCMessage };
}
