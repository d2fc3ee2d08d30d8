import type { Readable, Writable } from 'node:stream';
import { setTimeout as after, setImmediate as nextTurn } from 'node:timers/promises';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import type { Credentials } from '../api/client.ts';
import type { Log, OnCall } from '../log/log.ts';
import type { Catalog } from '../mcp/catalog.ts';
import {
  batchProblem,
  cancelNoticesIn,
  checkRequest,
  isLatestRevision,
  messagesIn,
  type RequestSchemas,
  withoutNulls,
} from '../mcp/protocol.ts';
import { bindV1, requestsV1 } from '../mcp/sdk-v1.ts';
import { Answers, Limits, type WorkLimits } from './limits.ts';

interface StdioOptions {
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
  const revisions = openRevisions(calls.catalog, { credentials, answers, send: (message) => lines.send(message) });
  const lines = new LineStream(stdin, stdout, {
    onMessage: async (message) => {
      const transport = await revisions.transportFor(message);
      transport.receive(message);
      // A response that needs no waiting is written before the next message is read, so that it counts as unread.
      await nextTurn();
    },
    onBatch: (messages) => {
      const settled = revisions.settled();
      return settled ? settled.receiveBatch(messages) : batchProblem(messages, undefined);
    },
    onProblem: (problem) => log.debug('stdio', { problem }),
  });
  await Promise.race([lines.readAll(), lines.outputClosed, stopRequested]);
  options.onEnd?.();
  // What was read is answered if somebody reads the answers: `echo … | ad-library-mcp` works.
  const answered = revisions.answered().then(() => lines.flushed());
  await Promise.race([answered, lines.outputClosed, after(drainMs, undefined, { ref: false })]);
  revisions.close();
}

interface Session {
  credentials: Credentials;
  answers: Answers<unknown>;
  /** Writes to the one stream that all revisions share; resolves when it has left the process. */
  send(message: JSONRPCMessage | JSONRPCMessage[]): Promise<void>;
}

/**
 * The transports of a session, one for each SDK. A client that opens with the envelope of revision 2026-07-28 is served
 * by the SDK that speaks it, any other client by the SDK for the revisions before. Each is loaded when first needed.
 * `server/discover` decides nothing: a client may still go on with an earlier revision (specification, *Lifecycle*).
 */
function openRevisions(catalog: Catalog, session: Session) {
  let settled: RevisionTransport | undefined;
  let latest: RevisionTransport | undefined;
  const credentialsOf = ({ answerOf }: RevisionTransport) => ({ ...session.credentials, answerOf });
  const opened = () => [...new Set([settled, latest])].filter((transport) => transport !== undefined);

  const openLatest = async () => {
    const [{ bindV2, requestsV2 }, { serveStdio }] = await Promise.all([
      import('../mcp/sdk-v2.ts'),
      import('@modelcontextprotocol/server/stdio'),
    ]);
    const transport = new RevisionTransport(session, requestsV2);
    serveStdio(() => bindV2(catalog, credentialsOf(transport)), { transport, legacy: 'reject' });
    return transport;
  };
  const openEarlier = async () => {
    const transport = new RevisionTransport(session, requestsV1);
    await bindV1(catalog, credentialsOf(transport)).connect(transport);
    return transport;
  };

  return {
    async transportFor(message: JSONRPCMessage): Promise<RevisionTransport> {
      if (settled) return settled;
      if (!isLatestRevision(message)) {
        settled = await openEarlier();
        return settled;
      }
      latest ??= await openLatest();
      if ('method' in message && 'id' in message && message.method !== 'server/discover') settled = latest;
      return latest;
    },
    /** The one that the session stays with, once that is known. */
    settled: () => settled,
    /** Resolves when no request waits for its response. */
    answered: () => Promise.all(opened().map((transport) => transport.answered())),
    /** Aborts running calls. */
    close: () => {
      for (const transport of opened()) transport.onclose?.();
    },
  };
}

/** Responses that go out together. */
interface Batch {
  requests: number;
  answers: Exclude<JSONRPCMessage, { method: string }>[];
}

/** The transport of one SDK: it writes, and leaves reading and closing to the owner of the streams. */
class RevisionTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: NonNullable<Transport['onmessage']>;
  readonly #session: Session;
  readonly #schemas: RequestSchemas;
  #revision: string | undefined;
  /** By the ids of the requests in them. */
  readonly #batches = new Map<unknown, Batch>();
  /** Ids of requests that wait for their responses. */
  readonly #unanswered = new Set<unknown>();
  #answered = () => {};

  constructor(session: Session, schemas: RequestSchemas) {
    this.#session = session;
    this.#schemas = schemas;
  }

  async start(): Promise<void> {}

  async close(): Promise<void> {
    this.onclose?.();
  }

  /** Resolves when no request waits for its response. */
  answered(): Promise<void> {
    return new Promise((resolve) => {
      this.#answered = resolve;
      if (this.#unanswered.size === 0) resolve();
    });
  }

  /** Hands a message to the SDK, or answers with what is wrong with it. */
  receive(received: JSONRPCMessage): void {
    const message = withoutNulls(received);
    if ('method' in message && 'id' in message) {
      this.#unanswered.add(message.id);
      const error = checkRequest(this.#schemas, message);
      if (error) return void this.send({ jsonrpc: '2.0', id: message.id, error });
    }
    for (const { params } of cancelNoticesIn(messagesIn(message))) {
      // A batch is answered as a whole, so no part of it can be cancelled.
      if (this.#batches.has(params?.requestId)) return;
      this.#end(params?.requestId);
    }
    this.onmessage?.(message);
  }

  /** The same for a batch, whose answers go out in one line; returns what is wrong with the batch. */
  receiveBatch(messages: readonly JSONRPCMessage[]): string | undefined {
    const ids = messages.flatMap((message) => ('method' in message && 'id' in message ? [message.id] : []));
    const problem = batchProblem(messages, this.#revision);
    if (problem) return problem;
    if (ids.some((id) => this.#batches.has(id))) return 'Another batch with one of these ids is not answered yet.';
    const batch = { requests: ids.length, answers: [] };
    for (const id of ids) this.#batches.set(id, batch);
    for (const message of messages) this.receive(message);
    return undefined;
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const { answers, send } = this.#session;
    if ('method' in message) return send(message);
    if ('result' in message && typeof message.result.protocolVersion === 'string') {
      this.#revision = message.result.protocolVersion;
    }
    const batch = this.#batches.get(message.id);
    batch?.answers.push(message);
    if (batch && batch.answers.length < batch.requests) return;
    const sent = send(batch?.answers ?? message);
    for (const { id } of batch?.answers ?? [message]) {
      this.#batches.delete(id);
      this.#end(id);
    }
    await sent;
    answers.left(batch ?? message.id);
  }

  #end(id: unknown): void {
    this.#unanswered.delete(id);
    if (this.#unanswered.size === 0) this.#answered();
  }

  /** What is written together with the answer to a request. */
  readonly answerOf = (id: unknown): unknown => this.#batches.get(id) ?? id;
}

interface LineStreamEvents {
  /** One message. The next one waits until this resolves. */
  onMessage(message: JSONRPCMessage): Promise<void>;
  /** A batch, which is one line of several messages; returns what is wrong with it. */
  onBatch(messages: JSONRPCMessage[]): string | undefined;
  /** A line was refused, and the session goes on. */
  onProblem(problem: string): void;
}

/** Maximum bytes of one message. Arguments are ids and filters, so no real call comes near it. */
const maxMessage = 10 * 1024 * 1024;
const newline = 0x0a;

const parseError = -32_700;
const invalidRequest = -32_600;

/**
 * The two streams of the stdio transport (MCP specification, *Transports*): one JSON-RPC message a line.
 *
 * Why not one of the SDKs' own: v1's crashes when the reader of its output goes away and does not notice the end of
 * its input; v2's is sound, but brings its whole SDK into sessions that speak to the other one. Neither stops reading
 * when nobody reads its answers. A line that is no message is answered with a JSON-RPC error, and the session goes on.
 */
export class LineStream {
  /** Resolves when nobody reads the output any more. */
  readonly outputClosed: Promise<void>;
  readonly #stdin: Readable;
  readonly #stdout: Writable;
  readonly #events: LineStreamEvents;
  /** Pieces of a line that is not complete yet. */
  #pieces: Buffer[] = [];
  #held = 0;

  constructor(stdin: Readable, stdout: Writable, events: LineStreamEvents) {
    this.#stdin = stdin;
    this.#stdout = stdout;
    this.#events = events;
    this.outputClosed = new Promise((resolve) => {
      // Once the reader has gone, every write fails; without a listener, that would end the process.
      for (const end of ['close', 'error']) stdout.on(end, () => resolve());
    });
  }

  /** Reads to the end of the input, and no faster than its answers are read. The last line may lack its line break. */
  async readAll(): Promise<void> {
    try {
      for await (const chunk of this.#stdin) {
        for (const line of this.#linesIn(chunk)) {
          await this.#take(line);
          await this.#drained();
        }
      }
      const last = this.#finishLine();
      if (last !== '') await this.#take(last);
    } catch (error) {
      this.#events.onProblem(String(error));
    }
  }

  /** Resolves when the line has left the process, which takes longer if the reader is slow. */
  send(message: JSONRPCMessage | JSONRPCMessage[] | ErrorMessage): Promise<void> {
    // Bytes take less room than a text that waits to be read.
    return new Promise((resolve) => this.#stdout.write(Buffer.from(`${JSON.stringify(message)}\n`), () => resolve()));
  }

  /** Resolves when all that was sent has left the process. */
  flushed(): Promise<void> {
    return new Promise((resolve) => this.#stdout.write('', () => resolve()));
  }

  async #drained(): Promise<void> {
    if (!this.#stdout.writableNeedDrain) return;
    await Promise.race([new Promise((resolve) => this.#stdout.once('drain', resolve)), this.outputClosed]);
  }

  *#linesIn(chunk: Buffer): Generator<string> {
    let from = 0;
    for (let to = chunk.indexOf(newline); to !== -1; to = chunk.indexOf(newline, from)) {
      this.#hold(chunk.subarray(from, to));
      from = to + 1;
      const line = this.#finishLine();
      if (line !== '') yield line;
    }
    this.#hold(chunk.subarray(from));
  }

  #hold(piece: Buffer): void {
    this.#held += piece.length;
    if (this.#held <= maxMessage) this.#pieces.push(piece);
    else this.#pieces = [];
  }

  #finishLine(): string {
    const tooLong = this.#held > maxMessage;
    const line = Buffer.concat(this.#pieces).toString('utf8').trim();
    this.#pieces = [];
    this.#held = 0;
    if (tooLong) this.#refuse(parseError, `A message may hold ${maxMessage / 1024 / 1024} MB at most.`);
    return line;
  }

  async #take(line: string): Promise<void> {
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      this.#refuse(parseError, 'Parse error: a line is one JSON value.');
      return;
    }
    if (isMessage(value)) return this.#events.onMessage(value);
    const isBatch = Array.isArray(value) && value.every(isMessage);
    const problem = isBatch ? this.#events.onBatch(value as JSONRPCMessage[]) : 'a line is one JSON-RPC 2.0 message.';
    if (problem) this.#refuse(invalidRequest, `Invalid request: ${problem}`, idOf(value));
  }

  #refuse(code: number, message: string, id: string | number | null = null): void {
    this.#events.onProblem(message);
    void this.send({ jsonrpc: '2.0', id, error: { code, message } });
  }
}

/** JSON-RPC's answer to an invalid request; its id is null if none could be read. */
interface ErrorMessage {
  jsonrpc: '2.0';
  id: string | number | null;
  error: { code: number; message: string };
}

function isMessage(value: unknown): value is JSONRPCMessage {
  const fields: Record<string, unknown> = Object(value);
  return fields.jsonrpc === '2.0' && (typeof fields.method === 'string' || 'result' in fields || 'error' in fields);
}

function idOf(value: unknown): string | number | null {
  const { id } = Object(value);
  return typeof id === 'string' || typeof id === 'number' ? id : null;
}
