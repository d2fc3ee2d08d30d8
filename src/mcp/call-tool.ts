import { randomUUID } from 'node:crypto';
import { createAbortError, withDeadline } from '../api/abort.ts';
import type { Credentials } from '../api/client.ts';
import { AdLibraryError, createInvalidRequestError } from '../api/errors.ts';
import { canCostCredits } from '../api/operations.ts';
import type { SearchFilter } from '../api/search-filters.ts';
import { boardMetaKey } from '../board/payload.ts';
import type { Spending } from '../credits/credit-text.ts';
import { isAffordable } from '../credits/ledger.ts';
import { freePriceBounds, type PriceBounds } from '../credits/prices.ts';
import type { ReportProgress } from '../dataset/gather.ts';
import { createKeyMasker } from '../logging/key-masking.ts';
import type { CallEvent, Logger, OnCall } from '../logging/log.ts';
import type { ImageContent, ResourceLink, Tool, ToolContext, ToolDescription, ToolOutput } from '../tools/tool.ts';
import { roundCredits } from '../views/numbers.ts';
import { joinLines } from '../views/safe-text.ts';
import { quoteUntrustedText, truncateToLimits } from '../views/tokens.ts';
import { validateArguments } from './arguments.ts';
import type { CallBackend } from './caller-context.ts';
import {
  type Confirmation,
  confirmSpending,
  type EstimatedPrice,
  estimatePrice,
  FormNeededError,
  type FormPresenter,
  limitPrice,
} from './confirm-spending.ts';
import type { DescribedTool } from './described-tools.ts';
import { explainError } from './explain-error.ts';
import type { ClientIdentity, OutputFormat, OutputSetting, ResultFormat } from './hosts.ts';
import { getToolName, loadTool } from './load-tool.ts';
import { type CallCost, ReceiptCollector, reservedReceiptBytes, reservedReceiptTokens } from './receipts.ts';

/** The tools, the clocks and the limits of a server, which all calls share. */
export interface ServerContext {
  tools: ReadonlyMap<string, DescribedTool>;
  now: () => number;
  /** Returns the time of a clock that is never set back, in milliseconds. Used to measure durations. */
  monotonicNow: () => number;
  log: Logger;
  onCall: OnCall;
  maxTextTokens: number;
  timeoutMs: number;
  cacheLifetimeMs: number;
  /** The number of credits above which the user must confirm a call. Undefined if no call needs confirmation. */
  maxUnconfirmedCredits?: number | undefined;
  output: OutputSetting;
  /** A sentence that every result contains, both in its text and in its data, e.g. that all ads are demo data. */
  notice?: string | undefined;
  /**
   * Aborts when the process begins to shut down. Long calls then stop early and return the data that they have read so
   * far.
   */
  drainSignal: AbortSignal;
  /** Aborts when the server closes. All calls that are still running then fail. */
  closeSignal: AbortSignal;
}

/** A tool result, limited to the fields of MCP's `CallToolResult` that both supported SDK versions have. */
export type ToolResult = {
  content: ({ type: 'text'; text: string } | ResourceLink | ImageContent)[];
  structuredContent?: Record<string, unknown>;
  isError?: true;
  _meta?: Record<string, unknown>;
};

/** A call of a tool, with the API key of its caller. */
export interface ToolCall extends Credentials {
  name: string;
  arguments?: unknown;
  client?: ClientIdentity | undefined;
  /** Which parts the result contains: text, data or both. Overrides the server's output setting. */
  output?: OutputSetting | undefined;
  signal: AbortSignal;
  /** Resolves when the response to this call has been written to the client. */
  responseSent?: Promise<void> | undefined;
  /**
   * The origin of the URLs of download links, e.g. `https://ads.example.com`. Undefined if this server offers no links.
   */
  linkOrigin?: string | undefined;
  /**
   * How long the call waited for a free slot, in milliseconds, because the number of concurrent calls is limited. The
   * waiting time counts against the call's deadline.
   */
  waitedMs?: number;
  onProgress?: ReportProgress | undefined;
  /**
   * Called when the call has created a file, before the result is returned. Tells the client to reload its list of
   * resources.
   */
  onFileCreated?: (() => void) | undefined;
  /** True if the caller also wants the result of `check_watches` as an HTML file. */
  wantsHtml?: boolean;
  /** Shows forms to the user, e.g. to confirm spending credits. Undefined if the client cannot show forms. */
  formPresenter?: FormPresenter | undefined;
}

type ToolCallOutcome = { result: ToolResult; logFields: Partial<CallEvent> };

/**
 * The settings and resources that tool calls need. Most resources are created on the first call, because many sessions
 * only list the tools.
 */
export interface CallEnvironment extends ServerContext, CallBackend {
  getAdFilters(): Promise<readonly SearchFilter[]>;
}

/** Runs a tool call. Writes the call to the log, and converts thrown errors to error results. */
export async function callTool(
  server: CallEnvironment,
  call: ToolCall,
  resultFormat: ResultFormat,
): Promise<ToolResult> {
  const startedAt = server.monotonicNow();
  const receipts = new ReceiptCollector();
  const { result, logFields } = await executeCall(server, call, receipts, resultFormat).catch((thrownError) => {
    // Do not report `FormNeededError` as a failure. Nothing was sent to the service, because the user must confirm the
    // price first. The client shows the form and then repeats the call.
    if (thrownError instanceof FormNeededError) throw thrownError;
    return buildErrorOutcome({ server, call, resultFormat }, receipts, thrownError);
  });
  const durationMs = server.monotonicNow() - startedAt;
  const maskKey = createKeyMasker(call.apiKey);
  const { tenantId, connection } = call;
  server.onCall({
    tool: getLoggedToolName(server, call),
    tenantId,
    connection: connection?.id,
    ms: durationMs,
    ...maskKey(logFields),
  });
  // Mask the caller's API key in errors, because they can contain text from many sources. Other results need no
  // masking: the HTTP client masks responses, and arguments that contain the key are rejected.
  return result.isError ? maskKey(result) : result;
}

/**
 * Returns the tool name for the log. An unknown name must not be logged, because it can be any text from the caller.
 */
const getLoggedToolName = ({ tools }: ServerContext, { name }: ToolCall) => (tools.has(name) ? name : 'unknown');

async function executeCall(
  server: CallEnvironment,
  call: ToolCall,
  receipts: ReceiptCollector,
  resultFormat: ResultFormat,
): Promise<ToolCallOutcome> {
  const tool = server.tools.has(call.name) && (await loadTool(call.name));
  if (!tool) throw createUnknownToolError(call.name, listToolsForModels(server));
  const input = validateArguments(tool.inputSchema, call.arguments);
  if (createKeyMasker(call.apiKey)(input) !== input)
    throw createInvalidRequestError('An argument holds the API key. Leave it out: the server sends it with each call.');
  const resolvedCall = { server, call, tool, resultFormat };
  const { isFirstPageOnly } = await confirmCall(resolvedCall, input);
  return withCallDeadline(resolvedCall, async (signal) => {
    const { context, notes } = await createToolContext(resolvedCall, { signal, receipts, isFirstPageOnly });
    const runWork = () => runTool(tool, input, context);
    const toolOutput = await (tool.isCpuIntensive
      ? server.runCpuIntensiveCall(call.tenantId, signal, runWork)
      : runWork());
    const formattedOutput = resultFormat.allowsLinks ? toolOutput : removeLinks(toolOutput);
    const cost = receipts.buildCost(tool);
    const resultOptions = { notice: server.notice, note: notes.unconfirmedNote, output: resultFormat.output };
    return {
      result: buildToolResult(resultOptions, { tool, formattedOutput }, cost),
      // If some charges of the call are unknown, record the sum of the others.
      logFields: { ...cost.receipt, charged: cost.receipt.charged ?? (receipts.sumKnownCharges() || null) },
    };
  });
}

/** A tool call together with its tool, which exists and is enabled on this server. */
interface ResolvedCall {
  server: CallEnvironment;
  call: ToolCall;
  tool: Tool;
  resultFormat: ResultFormat;
}

/**
 * Calls `runWork`, and aborts the work at the deadline of the tool call. The time that the call waited for a free slot
 * counts against this deadline.
 */
function withCallDeadline<Result>(
  { server, call, tool }: ResolvedCall,
  runWork: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const signals = [call.signal, server.closeSignal];
  return withDeadline({ signals, timeoutMs: getRemainingMs(server, call) }, (signal) =>
    runWork(signal).catch((error) => {
      if (error instanceof AdLibraryError || !signal.aborted) throw error;
      throw createAbortError(signal, tool.operations.length > 0);
    }),
  );
}

const getRemainingMs = (server: ServerContext, call: ToolCall): number => server.timeoutMs - (call.waitedMs ?? 0);

interface ContextOptions {
  signal: AbortSignal;
  receipts: ReceiptCollector;
  /**
   * True if the tool may use only stored data and must not send a paid request, e.g. while the price of a call is
   * estimated.
   */
  forbidsPaidRequests?: boolean;
  /** True if the user agreed to pay only for the first page of results. The call then requests no further page. */
  isFirstPageOnly?: boolean;
}

/**
 * Creates the context of a tool call. If the call uses stored data although the service has not yet confirmed the
 * caller's API key, sets `notes.unconfirmedNote` to a note for the result.
 */
async function createToolContext(
  { server, call, tool, resultFormat }: ResolvedCall,
  { signal, receipts, forbidsPaidRequests = false, isFirstPageOnly = false }: ContextOptions,
) {
  const { apiKey, tenantId, connection, onProgress } = call;
  const notes: { unconfirmedNote?: string } = {};
  const callerContext = server.createContext({
    apiKey,
    tenantId,
    connection,
    signal,
    forbidsPaidRequests,
    onReceipt: receipts.add,
    onFailure: receipts.addFailure,
    onOwnerUnconfirmed: () => {
      notes.unconfirmedNote = unconfirmedKeyNote;
    },
  });
  const [now, startedAt] = [server.now(), server.monotonicNow()];
  const context: ToolContext = {
    now,
    getTime: () => now + server.monotonicNow() - startedAt,
    deadline: now + getRemainingMs(server, call),
    signal,
    isEstimate: forbidsPaidRequests,
    isFirstPageOnly,
    isDemo: server.notice !== undefined,
    wantsHtml: call.wantsHtml === true,
    allowsPictures: resultFormat.allowsPictures,
    cacheLifetimeMs: server.cacheLifetimeMs,
    isDraining: () => server.drainSignal.aborted || server.closeSignal.aborted,
    adFilters: tool.makesSeveralApiCalls ? await server.getAdFilters() : [],
    maxTextTokens: resultFormat.maxTextTokens - reservedReceiptTokens,
    maxTextBytes: resultFormat.maxTextBytes - reservedReceiptBytes,
    getToolName,
    linkOrigin: call.linkOrigin,
    isToolOffered: (name) => server.tools.has(name),
    explainError: (thrownError) => {
      const { text, error } = explainError(thrownError, listToolsForModels(server), {
        wasSent: receipts.hasSentRequests(),
        maxTextTokens: resultFormat.maxTextTokens,
      });
      return { kind: error.kind, text };
    },
    ...(onProgress && { onProgress }),
    ...callerContext,
  };
  return { context, notes };
}

/**
 * Estimates the price of a call. If the price exceeds the `AD_LIBRARY_CONFIRM_CREDITS` setting, asks the user to
 * confirm the call. The time until the user answers does not count against the call's deadline.
 * @returns whether the user has accepted the whole call or only its first result page
 */
async function confirmCall(resolvedCall: ResolvedCall, input: Record<string, unknown>): Promise<Confirmation> {
  const { server, call, tool } = resolvedCall;
  const { maxUnconfirmedCredits } = server;
  const { formPresenter, apiKey, tenantId, signal } = call;
  if (maxUnconfirmedCredits === undefined || formPresenter === undefined || apiKey === undefined)
    return { isFirstPageOnly: false };
  const { price, balance } = await withCallDeadline(resolvedCall, async (deadlineSignal) => {
    const receipts = new ReceiptCollector();
    const { context } = await createToolContext(resolvedCall, {
      signal: deadlineSignal,
      receipts,
      forbidsPaidRequests: true,
    });
    const spending = await context.readSpending().catch(() => undefined);
    const hasChargedBefore = tool.operations.some((name) => spending?.prices[name] !== undefined);
    if (!canCostCredits(tool) && !hasChargedBefore) return { price: freePriceBounds, balance: undefined };
    const estimatedPrice = await estimatePrice({
      tool,
      input,
      runWithStoredData: () => tool.run(input, context),
      getRequestPrice: (request) => server.getRequestPrice(tenantId, request),
    });
    const affordablePrice = spending ? limitPriceToBudgets(estimatedPrice, spending) : estimatedPrice;
    const needsForm = affordablePrice !== undefined && affordablePrice.atMost > maxUnconfirmedCredits;
    return { price: affordablePrice, balance: needsForm ? await readBalance(context) : undefined };
  });
  // If `price` is undefined, the call exceeds a budget. Do not ask the user, because the call will spend nothing.
  if (price === undefined || price.atMost <= maxUnconfirmedCredits) return { isFirstPageOnly: false };
  return confirmSpending(
    {
      tool,
      input,
      owner: { apiKey, tenantId },
      price,
      balance,
      // With `maxCredits: 0`, the call reads no pages, and its searches only count the matching ads.
      canReadSeveralPages: 'maxAds' in tool.inputSchema.shape && input.maxCredits !== 0,
    },
    {
      formPresenter,
      signals: [signal, server.closeSignal],
      now: server.now(),
      createId: randomUUID,
      useOnce: server.useOnce,
    },
  );
}

/**
 * Limits a price to the credits that remain in the budgets of the server and of the sign-in connection. Returns
 * undefined if the call will spend nothing, because even its first request exceeds these credits.
 */
function limitPriceToBudgets(
  estimatedPrice: EstimatedPrice,
  { connection, ...server }: Spending,
): PriceBounds | undefined {
  const remainingCredits = [server, connection].map((spending) =>
    spending?.budget === undefined ? Infinity : spending.budget - spending.charged - (spending.uncertain ?? 0),
  );
  const limit = roundCredits(Math.max(0, Math.min(...remainingCredits)));
  const { firstRequestAtLeast } = estimatedPrice;
  if (firstRequestAtLeast !== undefined && !isAffordable(firstRequestAtLeast, limit)) return undefined;
  return limitPrice(estimatedPrice, limit);
}

/**
 * Requests the number of credits in the caller's account. The request is free. Returns undefined if the request fails
 * or the service reports no number.
 */
const readBalance = ({ api }: ToolContext): Promise<number | undefined> =>
  api.getCredits().then(
    ({ validatedBody }) => validatedBody.credits ?? undefined,
    () => undefined,
  );

const unconfirmedKeyNote =
  'The service could not be reached to confirm whose key this is. This is the stored data of the account it belonged to.';

const removeLinks = ({ attachments = [], ...output }: FormattedOutput): FormattedOutput => ({
  ...output,
  attachments: attachments.filter(({ type }) => type !== 'resource_link'),
});

/** The output of a tool, with its data also formatted as text. */
type FormattedOutput = ToolOutput & { text: string };

/**
 * Runs a tool. If the tool returns only data, formats the data as text. Shortens the text to the number of tokens and
 * bytes that the host accepts.
 */
async function runTool(tool: Tool, input: Record<string, unknown>, context: ToolContext): Promise<FormattedOutput> {
  const toolOutput = await tool.run(input, context);
  const { data, text = tool.render?.(data, input, context) ?? '', isTextWithinLimits = false } = toolOutput;
  if (isTextWithinLimits) return { ...toolOutput, text };
  return {
    ...toolOutput,
    text: truncateToLimits(text, { maxTokens: context.maxTextTokens, maxBytes: context.maxTextBytes }),
  };
}

/**
 * Builds the MCP result from the tool's text and data, the notice, and the receipt, which states what the call cost.
 *
 * The data for the board (the interactive view of ads) is always included. The board data contains only ids and
 * numbers, because some clients show it to their model too. Tools that only the board calls return full data.
 */
function buildToolResult(
  { notice, note, output }: { notice: string | undefined; note: string | undefined; output: OutputFormat },
  { tool, formattedOutput }: { tool: Tool; formattedOutput: FormattedOutput },
  { receipt, creditsLine }: CallCost,
): ToolResult {
  const { data, text, attachments = [] } = formattedOutput;
  const receiptFields = { receipt, ...(notice && { notice }), ...(note && { unconfirmed: note }) };
  const demoFields = notice && { isDemo: true };
  const addStructuredContent = (structuredContent: Record<string, unknown>) =>
    output !== 'text' && { structuredContent };
  if (tool.isOnlyForBoard)
    return {
      content: [{ type: 'text', text }],
      ...addStructuredContent(receiptFields),
      _meta: { [boardMetaKey]: { ...data, ...demoFields } },
    };
  const fullText = joinLines([notice, text, note, creditsLine]);
  const shownText = output === 'structured' ? 'The result is in structuredContent.' : fullText;
  const boardData = tool.buildBoardData && {
    tool: tool.name,
    ...tool.buildBoardData(data, formattedOutput),
    receipt,
    ...demoFields,
  };
  return {
    content: [{ type: 'text', text: shownText }, ...attachments],
    ...addStructuredContent({ ...data, ...receiptFields }),
    ...(boardData && { _meta: { [boardMetaKey]: boardData } }),
  };
}

function buildErrorOutcome(
  { server, call, resultFormat }: Omit<ResolvedCall, 'tool'>,
  receipts: ReceiptCollector,
  thrownError: unknown,
): ToolCallOutcome {
  const isExpected = thrownError instanceof AdLibraryError;
  if (!isExpected)
    server.log.error('a tool failed', {
      tool: getLoggedToolName(server, call),
      error: createKeyMasker(call.apiKey)(getStack(thrownError)),
    });
  const cost = receipts.formatEarlierCharges(isExpected ? thrownError.failure : undefined);
  const { result, error } = buildErrorResult(server, thrownError, {
    cost,
    wasSent: receipts.hasSentRequests(),
    maxTextTokens: resultFormat.maxTextTokens,
  });
  const { status, requestId } = error;
  // If the caller cancels the call, the aborted request fails with a network error. Report the cancellation instead,
  // because it is the real cause.
  const kind = call.signal.aborted ? 'cancelled' : error.kind;
  const { storage, isUndocumented, wasSent } = isExpected ? thrownError.failure : {};
  const callsNoOperation = server.tools.get(call.name)?.operations.length === 0;
  const isLocalTimeout = (kind === 'timeout' && wasSent === false && callsNoOperation) || undefined;
  const charged = receipts.sumKnownCharges() || undefined;
  return { result, logFields: { kind, storage, isUndocumented, isLocalTimeout, status, requestId, charged } };
}

/** Converts a thrown error to an MCP error result. Returns the result, and the error object that it contains. */
export function buildErrorResult(
  { notice, tools }: Pick<ServerContext, 'notice' | 'tools'>,
  thrownError: unknown,
  { cost = '', ...options }: { cost?: string; wasSent?: boolean; maxTextTokens?: number } = {},
) {
  const { text: explanation, error } = explainError(thrownError, listToolsForModels({ tools }), options);
  const text = joinLines([notice, explanation, cost]);
  const _meta = { 'ad-library/error': error };
  const result: ToolResult = { content: [{ type: 'text', text }], isError: true, _meta };
  return { result, error };
}

const listToolsForModels = ({ tools }: Pick<ServerContext, 'tools'>): ToolDescription[] =>
  [...tools.values()].filter(({ isOnlyForBoard }) => !isOnlyForBoard);

function createUnknownToolError(name: string, tools: readonly ToolDescription[]): AdLibraryError {
  const names = tools.map((tool) => tool.name);
  const problem = `There is no tool ${quoteUntrustedText(name, 30)}. Tools: ${names.join(', ')}.`;
  return new AdLibraryError({ kind: 'invalid_request', problem, wasSent: false });
}

const getStack = (error: unknown) => (error instanceof Error ? (error.stack ?? error.message) : String(error));
