import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { type CallOwner, PaymentNeeded, type ServiceRequest } from '../api/call.ts';
import { AdLibraryError } from '../api/errors.ts';
import { canonical } from '../api/json.ts';
import { formatCreditNumber, formatPrice } from '../credits/credit-text.ts';
import { isExactPrice, type PriceBounds } from '../credits/prices.ts';
import type { UseOnce } from '../storage/single-use.ts';
import type { Tool } from '../tools/tool.ts';

/** A form that a host shows to the person, as `elicitation/create` defines it. */
export interface PersonForm {
  message: string;
  requestedSchema: {
    type: 'object';
    properties: { choice: { type: 'string'; title: string; enum: string[] } };
    required: ['choice'];
  };
}

/** The answer of the person to a form. Its content comes from the client and is not checked. */
export interface FormAnswer {
  action: 'accept' | 'decline' | 'cancel';
  content?: Record<string, unknown> | undefined;
}

/** How a call can ask the person. Revisions before 2026-07-28 ask during the call, and 2026-07-28 between two calls. */
export type PersonAtHost =
  | { asks: 'duringCall'; show(form: PersonForm, signal: AbortSignal): Promise<FormAnswer> }
  | { asks: 'betweenCalls'; answered?: { state: string; answer: FormAnswer } | undefined };

/** Thrown by a call that must be repeated with the answer to a form (`input_required` in revision 2026-07-28). */
export class FormNeeded extends Error {
  override readonly name = 'FormNeeded';
  readonly form: PersonForm;
  /** What the client returns with the answer. It is signed, because the client could change it. */
  readonly state: string;

  constructor(form: PersonForm, state: string) {
    super('The person must confirm the spending.');
    this.form = form;
    this.state = state;
  }
}

/** How long a call waits for the person, in milliseconds. Several hosts end a call after 60 seconds. */
const maxAnswerMs = 50_000;
/** How long the answer to a form of revision 2026-07-28 is accepted, in milliseconds. */
const maxStateAgeMs = 5 * 60_000;

const choices = { all: 'spend', firstPage: 'first page only', none: 'cancel' };

interface SpendQuestion {
  tool: Tool;
  input: Record<string, unknown>;
  owner: Pick<CallOwner, 'apiKey' | 'tenantId'>;
  /** What the call may cost. */
  price: PriceBounds;
  /** The credits of the account; undefined if they are not known. */
  balance: number | undefined;
  /** The arguments that read the first page only; undefined if the call has only one page. */
  firstPage: Record<string, unknown> | undefined;
}

interface ConfirmOptions {
  person: PersonAtHost;
  signal: AbortSignal;
  /** The time in milliseconds since the epoch. */
  now: number;
  createId(): string;
  useOnce: UseOnce;
}

/**
 * Asks the person whether a call may spend credits, and returns the arguments that the person has accepted.
 * @throws AdLibraryError `credit_budget` if the person declines or does not answer
 * @throws FormNeeded if the client must repeat the call with the answer
 */
export async function confirmSpend(question: SpendQuestion, options: ConfirmOptions): Promise<Record<string, unknown>> {
  const { person, signal } = options;
  const form = createForm(question);
  if (person.asks === 'duringCall') {
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(maxAnswerMs)]);
    const answer = await person.show(form, deadline).catch(() => undefined);
    return acceptedInput(question, answer);
  }
  const { answered } = person;
  if (answered === undefined || !(await isAnswerToQuestion(answered.state, question, options)))
    throw new FormNeeded(form, writeState(question, options));
  return acceptedInput(question, answered.answer);
}

function createForm({ tool, price, balance, firstPage }: SpendQuestion): PersonForm {
  const cost = isExactPrice(price) ? `costs ${formatPrice(price)}` : `may cost ${describeUnknownPrice(price)}`;
  const balanceText = balance === undefined ? '' : ` You have ${formatCreditNumber(balance)} credits.`;
  const offered = firstPage === undefined ? [choices.all, choices.none] : Object.values(choices);
  return {
    message: `${tool.title} (${tool.name}) ${cost}.${balanceText}`,
    requestedSchema: {
      type: 'object',
      properties: { choice: { type: 'string', title: 'Spend the credits?', enum: offered } },
      required: ['choice'],
    },
  };
}

const describeUnknownPrice = ({ atLeast, atMost }: PriceBounds): string =>
  Number.isFinite(atMost) ? formatPrice({ atLeast, atMost }) : 'an unknown number of credits';

function acceptedInput({ input, firstPage }: SpendQuestion, answer: FormAnswer | undefined): Record<string, unknown> {
  const choice = answer?.action === 'accept' ? answer.content?.choice : choices.none;
  if (choice === choices.all) return input;
  if (choice === choices.firstPage && firstPage !== undefined) return firstPage;
  throw new AdLibraryError({
    kind: 'credit_budget',
    limit: 'confirmation',
    isAnswered: answer !== undefined,
    sent: false,
  });
}

/** The content of a signed state. It binds the answer to one call and to the price that the person saw. */
interface SpendState {
  id: string;
  expiresAt: number;
  atMost: number | null;
  callHash: string;
}

function writeState(question: SpendQuestion, { now, createId }: ConfirmOptions): string {
  const { atMost } = question.price;
  const state: SpendState = {
    id: createId(),
    expiresAt: now + maxStateAgeMs,
    atMost: Number.isFinite(atMost) ? atMost : null,
    callHash: hashCall(question),
  };
  const text = Buffer.from(JSON.stringify(state)).toString('base64url');
  return `${text}.${sign(text, question.owner.apiKey).toString('base64url')}`;
}

const hashCall = ({ tool, input }: SpendQuestion): string =>
  createHash('sha256')
    .update(canonical([tool.name, input]))
    .digest('base64url');

/** The signature uses the caller's key, so a state is valid for this key at every replica and for no other key. */
const sign = (text: string, apiKey: string): Buffer =>
  createHmac('sha256', apiKey).update(`ad-library-mcp confirmation ${text}`).digest();

/** The longest state that is read, in characters. */
const maxStateLength = 1000;

/** Returns whether a state belongs to this question and is used for the first time. */
async function isAnswerToQuestion(
  state: string,
  question: SpendQuestion,
  { now, useOnce }: ConfirmOptions,
): Promise<boolean> {
  const { tenantId, apiKey } = question.owner;
  const [text = '', signature = ''] = state.length > maxStateLength ? [] : state.split('.');
  const [given, expected] = [Buffer.from(signature, 'base64url'), sign(text, apiKey)];
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return false;
  const { id, expiresAt, atMost, callHash }: SpendState = JSON.parse(Buffer.from(text, 'base64url').toString());
  const isSameCall = callHash === hashCall(question);
  if (!isSameCall || now > expiresAt || question.price.atMost > (atMost ?? Infinity)) return false;
  return useOnce(tenantId, id, maxStateAgeMs);
}

interface EstimatedRun {
  tool: Tool;
  input: Record<string, unknown>;
  /** Runs the tool with stored answers only. */
  run(input: Record<string, unknown>): Promise<{ data: object }>;
  getRequestPrice(request: ServiceRequest): Promise<PriceBounds>;
}

/**
 * Returns what a call may cost, without sending a paid request. Tools that make several paid requests estimate their own
 * price with `maxCredits: 0`, and never spend more than their `maxCredits`. Any other tool makes one paid request at most.
 */
export async function estimatePrice({ tool, input, run, getRequestPrice }: EstimatedRun): Promise<PriceBounds> {
  const { maxCredits } = input;
  const isLimited = 'maxCredits' in tool.input.shape;
  const limit = typeof maxCredits === 'number' && maxCredits > 0 ? maxCredits : Infinity;
  try {
    const { data } = await run(isLimited ? { ...input, maxCredits: 0 } : input);
    const { estimate } = data as { estimate?: { atLeast: number; atMost?: number } };
    if (!isLimited || estimate === undefined) return { atLeast: 0, atMost: 0 };
    return { atLeast: Math.min(estimate.atLeast, limit), atMost: Math.min(estimate.atMost ?? Infinity, limit) };
  } catch (error) {
    if (!(error instanceof PaymentNeeded)) throw error;
    // The tool needs a paid search to count the matching ads, so only its limit bounds the price.
    const price = await getRequestPrice(error.request);
    return isLimited && maxCredits !== 0 ? { atLeast: Math.min(price.atLeast, limit), atMost: limit } : price;
  }
}
