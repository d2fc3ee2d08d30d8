import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import * as z from 'zod';
import { withDeadline } from '../api/abort.ts';
import { type CallOwner, PaymentNeededError, type ServiceRequest } from '../api/call.ts';
import { AdLibraryError } from '../api/errors.ts';
import { parseJson, toCanonicalJson } from '../api/json.ts';
import { formatPrice } from '../credits/credit-text.ts';
import { isAffordable } from '../credits/ledger.ts';
import { freePriceBounds, isExactPrice, type PriceBounds } from '../credits/prices.ts';
import type { UseOnce } from '../storage/single-use.ts';
import type { Tool } from '../tools/tool.ts';
import { formatCreditAmount } from '../views/numbers.ts';

/**
 * A form in which the user confirms a price, in the format of MCP's `elicitation/create` request. The host shows the
 * form.
 */
export interface ConfirmationForm {
  message: string;
  requestedSchema: {
    type: 'object';
    properties: { choice: { type: 'string'; title: string; enum: string[] } };
    required: ['choice'];
  };
}

/** The user's answer to a form. `content` comes from the client and is not validated. */
export interface FormAnswer {
  action: 'accept' | 'decline' | 'cancel';
  content?: Record<string, unknown> | undefined;
}

/**
 * Shows forms to the user. Before protocol revision 2026-07-28, the server sends a form while the call is running
 * (`duringCall`). From this revision on, the call ends with a request for input, and the client repeats the call with
 * the user's answer (`betweenCalls`).
 */
export type FormPresenter =
  | { timing: 'duringCall'; show(form: ConfirmationForm, signal: AbortSignal): Promise<FormAnswer> }
  | { timing: 'betweenCalls'; userAnswer?: { signedState: string; answer: FormAnswer } | undefined };

/**
 * Thrown if the client must show a form and repeat the call with the user's answer. The server then returns
 * `input_required` as the result of the call (protocol revision 2026-07-28).
 */
export class FormNeededError extends Error {
  override readonly name = 'FormNeededError';
  readonly form: ConfirmationForm;
  /**
   * A text that the client sends back with the user's answer. The server signs this text, because the client could
   * change it.
   */
  readonly signedState: string;

  constructor(form: ConfirmationForm, signedState: string) {
    super('The person must confirm the spending.');
    this.form = form;
    this.signedState = signedState;
  }
}

/**
 * How long a call waits for the user's answer, in milliseconds. The limit is below 60 seconds, because several hosts
 * end a call after that time.
 */
const answerTimeoutMs = 50_000;
/**
 * How long the user may take to answer a form, in milliseconds, if the client repeats the call with the answer
 * (protocol revision 2026-07-28).
 */
const maxAnswerDelayMs = 5 * 60_000;

const formChoices = { all: 'spend', firstPage: 'first page only', none: 'cancel' };

interface SpendingRequest {
  tool: Tool;
  input: Record<string, unknown>;
  owner: Pick<CallOwner, 'apiKey' | 'tenantId'>;
  /** The estimated price of the call, in credits. */
  price: PriceBounds;
  /** The number of credits in the user's account. Undefined if this number is unknown. */
  balance: number | undefined;
  /** True if the call may read several result pages. The user can then also choose to read a single page. */
  canReadSeveralPages: boolean;
}

interface ConfirmOptions {
  formPresenter: FormPresenter;
  /** The server stops waiting for the user's answer when one of these signals aborts. */
  signals: readonly AbortSignal[];
  /** The current time, in milliseconds since 1970. */
  now: number;
  createId(): string;
  useOnce: UseOnce;
}

/** What the user has accepted: the whole call, or only its first page of results. */
export interface Confirmation {
  isFirstPageOnly: boolean;
}

/**
 * Asks the user whether a call may spend credits.
 * @returns whether the user has accepted the whole call or only its first result page
 * @throws AdLibraryError `credit_budget` if the user declines or does not answer
 * @throws FormNeededError if the client must show the form and repeat the call with the answer
 */
export async function confirmSpending(
  spendingRequest: SpendingRequest,
  options: ConfirmOptions,
): Promise<Confirmation> {
  const { formPresenter, signals } = options;
  const form = createForm(spendingRequest);
  if (formPresenter.timing === 'duringCall') {
    const answer = await withDeadline({ signals, timeoutMs: answerTimeoutMs }, (signal) =>
      formPresenter.show(form, signal),
    ).catch(() => undefined);
    return readConfirmation(spendingRequest, answer);
  }
  const { userAnswer } = formPresenter;
  if (userAnswer === undefined || !(await isValidSignedState(userAnswer.signedState, spendingRequest, options)))
    throw new FormNeededError(form, createSignedState(spendingRequest, options));
  return readConfirmation(spendingRequest, userAnswer.answer);
}

function createForm(spendingRequest: SpendingRequest): ConfirmationForm {
  const { balance, canReadSeveralPages } = spendingRequest;
  const balanceText = balance === undefined ? '' : ` You have ${formatCreditAmount(balance)} credits.`;
  const offeredChoices = canReadSeveralPages ? Object.values(formChoices) : [formChoices.all, formChoices.none];
  return {
    message: `${describeCost(spendingRequest)}${balanceText}`,
    requestedSchema: {
      type: 'object',
      properties: { choice: { type: 'string', title: 'Spend the credits?', enum: offeredChoices } },
      required: ['choice'],
    },
  };
}

/** Describes the price of a tool call in a sentence, e.g. `Search ads (search_ads) costs 3 credits.` */
function describeCost({ tool, price }: Pick<SpendingRequest, 'tool' | 'price'>): string {
  const costText = isExactPrice(price) ? `costs ${formatPrice(price)}` : `may cost ${describeUnknownPrice(price)}`;
  return `${tool.title} (${tool.name}) ${costText}.`;
}

const describeUnknownPrice = ({ atLeast, atMost }: PriceBounds): string =>
  Number.isFinite(atMost) ? formatPrice({ atLeast, atMost }) : 'an unknown number of credits';

function readConfirmation(spendingRequest: SpendingRequest, answer: FormAnswer | undefined): Confirmation {
  const choice = answer?.action === 'accept' ? answer.content?.choice : formChoices.none;
  if (choice === formChoices.all) return { isFirstPageOnly: false };
  if (choice === formChoices.firstPage && spendingRequest.canReadSeveralPages) return { isFirstPageOnly: true };
  throw new AdLibraryError({
    kind: 'credit_budget',
    limit: 'confirmation',
    isAnswered: answer !== undefined,
    costSentence: describeCost(spendingRequest),
    wasSent: false,
  });
}

/**
 * The content of the signed state, which is the text that the client sends back with the user's answer. The signed
 * state is valid only for one call, and only up to the price that the form showed.
 */
const ConfirmationState = z.object({
  id: z.string(),
  expiresAt: z.number(),
  atMost: z.number().nullable(),
  callHash: z.string(),
});

function createSignedState(spendingRequest: SpendingRequest, { now, createId }: ConfirmOptions): string {
  const { atMost } = spendingRequest.price;
  const stateContent: z.infer<typeof ConfirmationState> = {
    id: createId(),
    expiresAt: now + maxAnswerDelayMs,
    atMost: Number.isFinite(atMost) ? atMost : null,
    callHash: hashCall(spendingRequest),
  };
  const encodedState = Buffer.from(JSON.stringify(stateContent)).toString('base64url');
  return `${encodedState}.${signState(encodedState, spendingRequest.owner.apiKey).toString('base64url')}`;
}

const hashCall = ({ tool, input }: SpendingRequest): string =>
  createHash('sha256')
    .update(toCanonicalJson([tool.name, input]))
    .digest('base64url');

/**
 * Signs the text that the client sends back with the user's answer. The signing key is the caller's API key, so every
 * replica can check the signature, and the text of another caller is rejected.
 */
const signState = (encodedState: string, apiKey: string): Buffer =>
  createHmac('sha256', apiKey).update(`ad-library-mcp confirmation ${encodedState}`).digest();

/** The maximum length of a signed state, in characters. A longer text is not even parsed. */
const maxSignedStateLength = 1000;

/**
 * Returns true if the signed state belongs to this caller and call, has not expired, covers the current price, and was
 * not used before.
 */
async function isValidSignedState(
  signedState: string,
  spendingRequest: SpendingRequest,
  { now, useOnce }: ConfirmOptions,
): Promise<boolean> {
  const { tenantId, apiKey } = spendingRequest.owner;
  const [encodedState = '', signature = ''] = signedState.length > maxSignedStateLength ? [] : signedState.split('.');
  const [receivedSignature, expectedSignature] = [Buffer.from(signature, 'base64url'), signState(encodedState, apiKey)];
  if (receivedSignature.length !== expectedSignature.length || !timingSafeEqual(receivedSignature, expectedSignature))
    return false;
  const { success, data } = ConfirmationState.safeParse(parseJson(Buffer.from(encodedState, 'base64url').toString()));
  // Validate the text although its signature is valid. The caller knows the API key and can sign any text.
  if (!success) return false;
  const { id, expiresAt, atMost, callHash } = data;
  const isSameCall = callHash === hashCall(spendingRequest);
  if (!isSameCall || now > expiresAt || spendingRequest.price.atMost > (atMost ?? Infinity)) return false;
  return useOnce(tenantId, id, maxAnswerDelayMs);
}

interface EstimateOptions {
  tool: Tool;
  input: Record<string, unknown>;
  /** Runs the tool with stored and cached data only, so that running it costs nothing. */
  runWithStoredData(): Promise<{ data: object }>;
  getRequestPrice(request: ServiceRequest): Promise<PriceBounds>;
}

/** The estimated price of a call. */
export interface EstimatedPrice extends PriceBounds {
  /**
   * The lowest price of the first request of the call, in credits. If the remaining credits do not cover it, the call
   * spends nothing. Undefined if the call would request smaller pages instead.
   */
  firstRequestAtLeast?: number | undefined;
}

/**
 * Estimates the price of a call without a paid request. A tool with the `maxCredits` argument returns an estimate, and
 * never spends more than `maxCredits`. Any other tool makes at most one paid request, or one for each different id in
 * `itemIds`.
 * @throws AdLibraryError if the tool refuses the call, e.g. because it requires `maxCredits`
 */
export async function estimatePrice({
  tool,
  input,
  runWithStoredData,
  getRequestPrice,
}: EstimateOptions): Promise<EstimatedPrice> {
  const { maxCredits } = input;
  const hasCreditLimit = 'maxCredits' in tool.inputSchema.shape;
  const { defaultMaxCredits = Infinity } = tool;
  const creditLimit = typeof maxCredits === 'number' && maxCredits > 0 ? maxCredits : defaultMaxCredits;
  try {
    const { data } = await runWithStoredData();
    const { estimate } = data as { estimate?: { atLeast: number; atMost?: number; calls?: number } };
    if (!hasCreditLimit || maxCredits === 0 || estimate === undefined) return freePriceBounds;
    // All searches that count ads have the same price.
    const firstRequestAtLeast = estimate.calls ? estimate.atLeast / estimate.calls : undefined;
    if (firstRequestAtLeast !== undefined && !isAffordable(firstRequestAtLeast, creditLimit)) return freePriceBounds;
    const { atLeast, atMost = Infinity } = estimate;
    return { ...limitPrice({ atLeast, atMost, firstRequestAtLeast }, creditLimit), firstRequestAtLeast };
  } catch (error) {
    if (!(error instanceof PaymentNeededError)) throw error;
    // The tool needs a paid request to estimate its price, e.g. a search that counts the matching ads. A tool without
    // `maxCredits` sends only this request, or a similar one for each different item id. For all other tools,
    // `maxCredits` is the only known upper bound.
    const price = await getRequestPrice(error.request);
    if (!hasCreditLimit) {
      const requestCount = Array.isArray(input.itemIds) ? new Set(input.itemIds).size : 1;
      return {
        atLeast: requestCount * price.atLeast,
        atMost: requestCount * price.atMost,
        firstRequestAtLeast: price.atLeast,
      };
    }
    // With `maxCredits: 0`, the caller wants an estimate, which can require paid searches. If the price of these
    // searches is unknown, do not ask the user, who could not decide without a price.
    if (maxCredits === 0) {
      // An estimate sends at most one search for each part of a split search. This price is an upper bound, because no
      // search is sent for a part whose number of ads is already known.
      const partCount = Array.isArray(input.split) ? input.split.length : 1;
      const highestPrice = partCount * price.atMost;
      return Number.isFinite(highestPrice)
        ? { atLeast: price.atLeast, atMost: highestPrice, firstRequestAtLeast: price.atLeast }
        : freePriceBounds;
    }
    return limitPrice({ atLeast: price.atLeast, atMost: Infinity }, creditLimit);
  }
}

/**
 * Limits a price to the credits that the call may spend. If these credits do not cover the lowest price, the call may
 * stop after its first request, or spend nothing if it has no fixed first request.
 */
export function limitPrice(
  { atLeast, atMost, firstRequestAtLeast = 0 }: EstimatedPrice,
  maxCredits: number,
): PriceBounds {
  return {
    atLeast: Math.min(isAffordable(atLeast, maxCredits) ? atLeast : firstRequestAtLeast, maxCredits),
    atMost: Math.min(atMost, maxCredits),
  };
}
