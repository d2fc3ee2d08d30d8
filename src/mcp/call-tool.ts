import type { Caller, Credentials } from '../api/client.ts';
import { AdLibraryError } from '../api/errors.ts';
import type { Receipt } from '../api/send.ts';
import type { Log } from '../log/log.ts';
import { keyMasker } from '../log/mask-key.ts';
import { clampLines } from '../present/fit.ts';
import type { Tool } from '../tools/define-tool.ts';
import type { CallerView, ToolContext } from '../tools/tool-context.ts';
import { explainError } from './explain-error.ts';
import { readArguments } from './read-arguments.ts';
import { receiptText, viewReceipt } from './receipt.ts';
import { untrustedText } from './untrusted-text.ts';
import { withDeadline } from './with-deadline.ts';

/** Tokens kept free for the notice, the credits line and a warning around a tool's text. */
const roomForReceipt = 160;

/** What every call of this process shares. */
export interface Service {
  tools: ReadonlyMap<string, Tool>;
  /** How tools call the API, and what the process remembers of a caller. */
  calls(): Promise<(caller: Caller) => CallerView>;
  now: () => number;
  log: Log;
  resultTokens: number;
  timeoutMs: number;
  /** Whether what was paid for is kept for a while. */
  keepsAnswers: boolean;
  output: 'both' | 'text' | 'structured';
  /** A sentence put into every result, for readers of the text and of the data alike. */
  notice?: string | undefined;
  /** Aborted when the process closes. */
  closing: AbortSignal;
}

export interface ToolCall extends Credentials {
  name: string;
  arguments?: unknown;
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
  // A name that is none of ours is the caller's text, and no place for that is the log.
  const tool = service.tools.has(call.name) ? call.name : 'unknown';
  // Whatever a service sends back, in whatever place, the key is in no result and no log.
  const withoutKey = keyMasker(call.apiKey);
  const outcome = (result: ToolResult, fields: object) => {
    service.log.info('call', withoutKey({ tool, ms: service.now() - started, ...fields }));
    return withoutKey(result);
  };
  try {
    const { result, receipt } = await answer(service, call);
    return outcome(result, receipt);
  } catch (thrown) {
    if (!(thrown instanceof AdLibraryError))
      service.log.error('a tool failed', withoutKey({ tool, error: stackOf(thrown) }));
    const { result, error } = refusal(service, thrown);
    const { status, requestId } = error;
    // Nobody reads the result of a call that was called off, and it is no fault of the network.
    const kind = call.signal.aborted ? 'cancelled' : error.kind;
    const charged = thrown instanceof AdLibraryError ? thrown.failure.charged : undefined;
    return outcome(result, { kind, status, requestId, charged });
  }
}

/** What a caller reads instead of a result, and its facts. */
export function refusal({ notice }: Pick<Service, 'notice'>, thrown: unknown) {
  const { text: explanation, error } = explainError(thrown);
  const text = [notice, explanation].filter(Boolean).join('\n');
  const result: ToolResult = {
    content: [{ type: 'text', text }],
    isError: true,
    _meta: { 'ad-library/error': error },
  };
  return { result, error };
}

async function answer(service: Service, call: ToolCall) {
  const tool = service.tools.get(call.name);
  if (tool === undefined) throw unknownTool(call.name, [...service.tools.keys()]);
  const input = readArguments(tool.input, call.arguments);
  const calls = await service.calls();
  // A tool makes one call of the API.
  let told: Receipt | undefined;

  const signals = [call.signal, service.closing];
  return withDeadline({ signals, ms: service.timeoutMs }, async (signal) => {
    const { apiKey, tenantId } = call;
    const onReceipt = (receipt: Receipt) => {
      told = receipt;
    };
    const view = calls({ apiKey, tenantId, signal, onReceipt });
    const resultTokens = service.resultTokens - roomForReceipt;
    const context: ToolContext = { ...view, now: service.now(), resultTokens };
    const data = await tool.run(input, context);

    const receipt = viewReceipt(told);
    const { age, warning } = told ?? {};
    const said = { ...(service.notice && { notice: service.notice }), ...(warning && { warning }) };
    const rendered = textOf(data, context, () => tool.render(data, input, context));
    // A list was cut on the border of its items, and ends with its cursor.
    const body = 'cursor' in data ? rendered : clampLines(rendered, resultTokens);
    const text = [service.notice, body, receiptText(receipt, age), warning].filter(Boolean).join('\n');
    return { receipt, result: shaped(service, text, { ...data, receipt, ...said }) };
  });
}

/** The same items read the same: those of an answer given again are not written out again. */
function textOf(data: object, { condensed }: ToolContext, write: () => string): string {
  const { items } = data as { items?: unknown };
  if (!Array.isArray(items)) return write();
  const text = condensed.text.get(items) ?? write();
  condensed.text.set(items, text);
  return text;
}

function shaped({ output }: Service, text: string, structured: Record<string, unknown>): ToolResult {
  if (output === 'text') return { content: [{ type: 'text', text }] };
  const shown = output === 'both' ? text : 'The result is in structuredContent.';
  return { content: [{ type: 'text', text: shown }], structuredContent: structured };
}

function unknownTool(name: string, known: string[]): AdLibraryError {
  const problem = `There is no tool ${untrustedText(name, 30)}. Tools: ${known.join(', ')}.`;
  return new AdLibraryError({ kind: 'invalid_request', problem, sent: false });
}

const stackOf = (error: unknown) => (error instanceof Error ? (error.stack ?? error.message) : String(error));
