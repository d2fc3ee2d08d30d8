import type { Readable, Writable } from 'node:stream';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';

export interface LineStreamEvents {
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
