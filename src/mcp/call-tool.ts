import { createApi } from '../api/client.ts';
import { AdLibraryError } from '../api/errors.ts';
import type { Receipt, Send } from '../api/send.ts';
import type { ToolContext } from '../context.ts';
import type { Log } from '../log.ts';
import type { Tool } from '../tools/define-tool.ts';
import { explainError } from './explain-error.ts';
import { readArguments } from './read-arguments.ts';
import { receiptText, totalReceipt } from './receipt.ts';
import { withDeadline } from './with-deadline.ts';

/** Tokens kept free for the credits line and the notice around a tool's text. */
const roomForReceipt = 120;

/** What every call of this process shares. */
export interface Service {
  tools: ReadonlyMap<string, Tool>;
  send: Send;
  now: () => number;
  log: Log;
  resultTokens: number;
  timeoutMs: number;
  output: 'both' | 'text' | 'structured';
  /** What the process remembers of a caller. */
  memoryOf(key: string): Pick<ToolContext, 'spending' | 'asked'>;
  /** A sentence put into every result, for readers of the text and of the data alike. */
  notice?: string | undefined;
  /** Aborted when the process closes. */
  closing: AbortSignal;
}

export interface ToolCall {
  name: string;
  arguments?: unknown;
  /** The caller's API key; undefined where none is set. */
  key: string | undefined;
  signal: AbortSignal;
}

/** MCP's CallToolResult, in the part of it that both SDK lines share. */
export type ToolResult = {
  content: { type: 'text'; text: string }[];
  structuredContent?: Record<string, unknown>;
  isError?: true;
  _meta?: Record<string, unknown>;
};

export async function callTool(service: Service, call: ToolCall): Promise<ToolResult> {
  const started = service.now();
  const outcome = (result: ToolResult, fields: object) => {
    service.log.info('call', { tool: call.name, ms: service.now() - started, ...fields });
    return result;
  };
  try {
    const { result, receipt } = await answer(service, call);
    return outcome(result, receipt);
  } catch (thrown) {
    const error = named(thrown);
    if (!(error instanceof AdLibraryError))
      service.log.error('a tool failed', { tool: call.name, error: stackOf(error) });
    const { text, error: meta } = explainError(error);
    const { kind, status, requestId } = meta;
    const result: ToolResult = {
      content: [{ type: 'text', text }],
      isError: true,
      _meta: { 'ad-library/error': meta },
    };
    return outcome(result, { kind, status, requestId });
  }
}

async function answer(service: Service, call: ToolCall) {
  const tool = service.tools.get(call.name);
  if (tool === undefined) throw unknownTool(call.name, [...service.tools.keys()]);
  const input = readArguments(tool.input, call.arguments);
  const memory = service.memoryOf(call.key ?? '');
  const receipts: Receipt[] = [];

  const signals = [call.signal, service.closing];
  return withDeadline({ signals, ms: service.timeoutMs }, async (signal) => {
    const api = createApi(service.send, { key: call.key, signal, onReceipt: (receipt) => receipts.push(receipt) });
    const resultTokens = service.resultTokens - roomForReceipt;
    const context: ToolContext = { api, now: service.now(), resultTokens, ...memory };
    const data = await tool.run(input, context);

    const receipt = totalReceipt(receipts);
    const paid = receiptText(receipt, receipts.at(-1)?.age);
    const text = [service.notice, tool.render(data, input, context), paid].filter(Boolean).join('\n');
    const structured = { ...data, receipt, ...(service.notice && { notice: service.notice }) };
    return { receipt, result: shaped(service, text, structured) };
  });
}

function shaped({ output }: Service, text: string, structured: Record<string, unknown>): ToolResult {
  if (output === 'text') return { content: [{ type: 'text', text }] };
  const shown = output === 'both' ? text : 'The result is in structuredContent.';
  return { content: [{ type: 'text', text: shown }], structuredContent: structured };
}

function unknownTool(name: string, known: string[]): AdLibraryError {
  const problem = `There is no tool ${JSON.stringify(name.slice(0, 64))}. Tools: ${known.join(', ')}.`;
  return new AdLibraryError({ kind: 'invalid_request', problem, sent: false });
}

/** An abort is our own deadline, the process closing, or the caller gone; only the first has a reader. */
function named(thrown: unknown): unknown {
  if (!(thrown instanceof DOMException)) return thrown;
  const timeout = thrown.name === 'TimeoutError';
  return new AdLibraryError({
    kind: timeout ? 'timeout' : 'network',
    problem: timeout ? undefined : 'The call was cancelled.',
  });
}

const stackOf = (error: unknown) => (error instanceof Error ? (error.stack ?? error.message) : String(error));
