import type { Caller, Credentials } from '../api/client.ts';
import { AdLibraryError } from '../api/errors.ts';
import type { Receipt } from '../api/send.ts';
import type { CallEvent, OnCall } from '../log/call-event.ts';
import type { Log } from '../log/log.ts';
import { keyMasker } from '../log/mask-key.ts';
import { clampLines } from '../present/fit.ts';
import { toolName } from '../tools/catalog.ts';
import type { Rendered, Tool } from '../tools/define-tool.ts';
import type { CallerContext, ToolContext } from '../tools/tool-context.ts';
import { explainError } from './explain-error.ts';
import { readArguments } from './read-arguments.ts';
import { receiptText, viewReceipt } from './receipt.ts';
import { untrustedText } from './untrusted-text.ts';
import { withDeadline } from './with-deadline.ts';

/** Tokens kept free for the notice, the credits line and a warning around a tool's text. */
const RECEIPT_TOKENS = 160;

/** What every call of this process shares. */
export interface Service {
  tools: ReadonlyMap<string, Tool>;
  /** How tools call the API, and what the process remembers for a caller. */
  calls(): Promise<(caller: Caller) => CallerContext>;
  now: () => number;
  log: Log;
  onCall: OnCall;
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

/** What became of a call: what its caller reads, and what the log says of it. */
interface Outcome {
  result: ToolResult;
  facts: Partial<CallEvent>;
}

export async function callTool(service: Service, call: ToolCall): Promise<ToolResult> {
  const started = service.now();
  const { result, facts } = await answered(service, call).catch((thrown) => failed(service, call, thrown));
  const ms = service.now() - started;
  // Whatever a service sends back, in whatever place: the key is in no result and no log.
  const withoutKey = keyMasker(call.apiKey);
  service.onCall({ tool: loggedName(service, call), tenantId: call.tenantId, ms, ...withoutKey(facts) });
  return withoutKey(result);
}

/** Never log unknown tool names: they are caller input. */
const loggedName = ({ tools }: Service, { name }: ToolCall) => (tools.has(name) ? name : 'unknown');

async function answered(service: Service, call: ToolCall): Promise<Outcome> {
  const tool = service.tools.get(call.name);
  if (tool === undefined) throw unknownTool(call.name, [...service.tools.keys()]);
  const input = readArguments(tool.input, call.arguments);
  const contextOf = await service.calls();
  const signals = [call.signal, service.closing];
  return withDeadline({ signals, ms: service.timeoutMs }, async (signal) => {
    const { apiKey, tenantId } = call;
    // A tool makes one call of the API.
    let receipt: Receipt | undefined;
    const onReceipt = (given: Receipt) => {
      receipt = given;
    };
    const rendered = await runTool(tool, input, {
      ...contextOf({ apiKey, tenantId, signal, onReceipt }),
      now: service.now(),
      resultTokens: service.resultTokens - RECEIPT_TOKENS,
      toolName,
    });
    return { result: resultOf(service, rendered, receipt), facts: viewReceipt(receipt) };
  });
}

/** A list was cut to fit while it was rendered; any other text is cut here. */
async function runTool(tool: Tool, input: Record<string, unknown>, context: ToolContext): Promise<Rendered> {
  if (tool.render === undefined) return tool.run(input, context);
  const data = await tool.run(input, context);
  return { data, text: clampLines(tool.render(data, input, context), context.resultTokens) };
}

/** Data and text, with what the call cost and what its reader should know. */
function resultOf({ notice, output }: Service, { data, text }: Rendered, receipt: Receipt | undefined): ToolResult {
  const { age, warning } = receipt ?? {};
  const view = viewReceipt(receipt);
  const structured = { ...data, receipt: view, ...(notice && { notice }), ...(warning && { warning }) };
  const whole = [notice, text, receiptText(view, age), warning].filter(Boolean).join('\n');
  if (output === 'text') return { content: [{ type: 'text', text: whole }] };
  const shown = output === 'both' ? whole : 'The result is in structuredContent.';
  return { content: [{ type: 'text', text: shown }], structuredContent: structured };
}

function failed(service: Service, call: ToolCall, thrown: unknown): Outcome {
  const isOurs = thrown instanceof AdLibraryError;
  if (!isOurs)
    service.log.error('a tool failed', {
      tool: loggedName(service, call),
      error: keyMasker(call.apiKey)(stackOf(thrown)),
    });
  const { result, error } = refusal(service, thrown);
  const { status, requestId } = error;
  // Nobody reads the result of a cancelled call, and it is no fault of the network.
  const kind = call.signal.aborted ? 'cancelled' : error.kind;
  return { result, facts: { kind, status, requestId, charged: isOurs ? thrown.failure.charged : undefined } };
}

/** What a caller reads instead of a result, and its facts. */
export function refusal({ notice, tools }: Pick<Service, 'notice' | 'tools'>, thrown: unknown) {
  const { text: explanation, error } = explainError(thrown, [...tools.values()]);
  const text = [notice, explanation].filter(Boolean).join('\n');
  const result: ToolResult = {
    content: [{ type: 'text', text }],
    isError: true,
    _meta: { 'ad-library/error': error },
  };
  return { result, error };
}

function unknownTool(name: string, known: string[]): AdLibraryError {
  const problem = `There is no tool ${untrustedText(name, 30)}. Tools: ${known.join(', ')}.`;
  return new AdLibraryError({ kind: 'invalid_request', problem, sent: false });
}

const stackOf = (error: unknown) => (error instanceof Error ? (error.stack ?? error.message) : String(error));
