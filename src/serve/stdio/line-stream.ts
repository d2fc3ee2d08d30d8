import type { Readable, Writable } from 'node:stream';
import type { JSONRPCMessage } from './era-transport.ts';

/** What a pipe tells its owner. */
export interface LineStreamEvents {
  onMessage(message: JSONRPCMessage): void;
  /** Something was refused or lost, and the pipe goes on. */
  onProblem(problem: string): void;
}

/** Largest message, in bytes: arguments are ids and filters, so this bounds memory and nothing else. */
const largestMessage = 10 * 1024 * 1024;
const newline = 0x0a;

const parseError = -32_700;
const invalidRequest = -32_600;

/**
 * The two streams of the stdio transport (MCP specification, *Transports*): one JSON-RPC message a line.
 *
 * Why not one of the SDKs' own: v1's crashes when the reader of its output goes away and does not notice the end of
 * its input; v2's is sound, but brings its whole SDK into sessions that speak to the other one. This one needs
 * neither. What is no message is answered with JSON-RPC's error for it, and the session goes on.
 */
export class LineStream {
  /** Resolves when the input has ended, or nobody reads the output any more. */
  readonly ended: Promise<void>;
  private readonly stdout: Writable;
  private readonly events: LineStreamEvents;
  /** Pieces of a line whose end has not come yet. */
  private pieces: Buffer[] = [];
  private held = 0;

  constructor(stdin: Readable, stdout: Writable, events: LineStreamEvents) {
    this.stdout = stdout;
    this.events = events;
    this.ended = new Promise((resolve) => {
      for (const end of ['end', 'close', 'error']) stdin.on(end, () => resolve());
      // A reader that went away is an error of each write; without a listener it would end the process.
      for (const end of ['close', 'error']) stdout.on(end, () => resolve());
    });
    stdin.on('data', (chunk: Buffer) => this.read(chunk));
  }

  /** Resolves when the line has left the process, which is later than at once where the reader is slow. */
  send(message: JSONRPCMessage | Refusal): Promise<void> {
    return new Promise((resolve) => this.stdout.write(`${JSON.stringify(message)}\n`, () => resolve()));
  }

  private read(chunk: Buffer): void {
    let from = 0;
    for (let to = chunk.indexOf(newline); to !== -1; to = chunk.indexOf(newline, from)) {
      this.hold(chunk.subarray(from, to));
      this.finishLine();
      from = to + 1;
    }
    this.hold(chunk.subarray(from));
  }

  private hold(piece: Buffer): void {
    this.held += piece.length;
    if (this.held <= largestMessage) this.pieces.push(piece);
    else this.pieces = [];
  }

  private finishLine(): void {
    const tooLong = this.held > largestMessage;
    const line = Buffer.concat(this.pieces).toString('utf8').trim();
    this.pieces = [];
    this.held = 0;
    if (tooLong) this.refuse(parseError, `A message may hold ${largestMessage / 1024 / 1024} MB at most.`);
    else if (line !== '') this.take(line);
  }

  private take(line: string): void {
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch {
      this.refuse(parseError, 'Parse error: a line is one JSON value.');
      return;
    }
    if (isMessage(message)) this.events.onMessage(message);
    else this.refuse(invalidRequest, 'Invalid request: a line is one JSON-RPC 2.0 message.', idOf(message));
  }

  private refuse(code: number, message: string, id: string | number | null = null): void {
    this.events.onProblem(message);
    void this.send({ jsonrpc: '2.0', id, error: { code, message } });
  }
}

/** JSON-RPC's answer to what is no request: its id is null where none could be read. */
interface Refusal {
  jsonrpc: '2.0';
  id: string | number | null;
  error: { code: number; message: string };
}

function isMessage(value: unknown): value is JSONRPCMessage {
  if (!isObject(value) || value.jsonrpc !== '2.0') return false;
  return typeof value.method === 'string' || 'result' in value || 'error' in value;
}

function idOf(value: unknown): string | number | null {
  const id = isObject(value) ? value.id : null;
  return typeof id === 'string' || typeof id === 'number' ? id : null;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
