import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import {
  type Allowance,
  type Answer,
  abortedError,
  type Call,
  gatedOnly,
  type Operation,
  operations,
  type Send,
  withDeadline,
} from '../api/call.ts';
import { AdLibraryError, type Failure, mayBeCharged } from '../api/errors.ts';
import type { CreditStatusAnswer, UsageLimitAnswer } from '../api/schemas.ts';
import { overBudget } from './credit-text.ts';
import {
  type CreditAccount,
  type CreditLedger,
  fits,
  type Lease,
  type ReserveRequest,
  type Settlement,
  used,
} from './ledger.ts';
import {
  type Cost,
  costOf,
  dearest,
  dearestOf,
  isPaid,
  learnPrice,
  maxCostOf,
  type PricedCall,
  type Prices,
  quote,
} from './prices.ts';

export interface BudgetOptions {
  ledger: CreditLedger;
  /** If undefined, spending is recorded but not bounded. */
  budget: number | undefined;
  askCredits: AskCredits;
}

/** How a call ended: the stated charge, or `unknown` if the service may have charged without stating it. */
interface Outcome {
  charged: number | 'unknown';
  answer?: Answer;
}

/**
 * Records what every call was charged, and keeps a tenant's spending within a budget, even with many calls at once: the
 * expected cost of a call is reserved before it is sent, and settled afterwards. Calls of unknown price run one at a
 * time, so that at most one such call can exceed the budget.
 */
export function withBudget(send: Send, { ledger, budget, askCredits }: BudgetOptions): Send {
  // Reading the balance is part of the call that needs it, so it needs no reservation; but it may be charged.
  const ask = budget === undefined ? send : withBudget(send, { ledger, budget: undefined, askCredits });
  return async (call) => {
    const admission = budget === undefined ? undefined : await admittedIfPaid(call, { ledger, budget });
    const { prices } = admission?.account ?? (await ledger.estimate(call.tenantId));
    const lease = admission?.lease;
    const paid = lease?.paid ?? isPaid(call.operation, prices);
    const isMeasured = lease?.line === paidLine && mayCostMore(call, prices) && !isPaid(operations.getCredits, prices);
    const balance = isMeasured ? balanceOf({ call, ledger, send: ask, askCredits }) : undefined;
    let outcome: Outcome = { charged: 'unknown' };
    try {
      await balance?.readBefore();
      const answer = await send({ ...call, paid });
      outcome = { answer, charged: chargeOf(answer, paid) };
      return answer;
    } catch (error) {
      outcome = { charged: chargeOfFailure(error, paid) };
      throw error;
    } finally {
      const isAnswered = outcome.answer !== undefined;
      const isUnstated = outcome.charged === 'unknown';
      const uncertain = isUnstated ? await estimateCharge({ call, ledger, budget, lease, balance, isAnswered }) : 0;
      if (!isUnstated) await balance?.forget();
      await ledger.settle(call.tenantId, settlementOf(call, outcome, uncertain), lease);
    }
  };
}

/** The queue in which paid calls of unknown price run one at a time. */
const paidLine = 'paid';

interface Admitted {
  lease: Lease;
  account: CreditAccount;
}

/** What costs nothing, as far as is known, goes on while the account cannot be reached. */
async function admittedIfPaid(call: Call, budgeted: { ledger: CreditLedger; budget: number }) {
  try {
    return await admitted(call, budgeted);
  } catch (error) {
    const isAway = error instanceof AdLibraryError && error.failure.kind === 'unavailable';
    const { prices } = await budgeted.ledger.estimate(call.tenantId);
    if (!isAway || isPaid(call.operation, prices)) throw error;
    return undefined;
  }
}

/** Waits until the budget admits a call; throws if its price does not fit. */
async function admitted(call: Call, { ledger, budget }: { ledger: CreditLedger; budget: number }): Promise<Admitted> {
  const { tenantId, signal } = call;
  for (;;) {
    const admission = await ledger.reserve(tenantId, (account) => requestOf(call, account, budget));
    if (admission.kind === 'granted') return admission;
    if (admission.kind === 'refused') {
      const { account } = admission;
      throw overBudget({ account, budget, quoted: quote(account.prices, call), call });
    }
    await ledger.changed(tenantId, admission.version, signal).catch((error) => {
      throw signal.aborted ? abortedError(signal, false) : error;
    });
  }
}

function requestOf(call: Call, { prices }: CreditAccount, budget: number): ReserveRequest {
  const quoted = quote(prices, call);
  const paid = isPaid(call.operation, prices);
  const line = quoted.price !== undefined ? undefined : paid ? paidLine : call.operation.name;
  const credits = quoted.price ?? quoted.atLeast;
  const seen = maxCostOf(prices, call);
  const ifLost = paid ? seen && Math.max(1, seen, credits) : 0;
  return { budget, credits, paid, line, ifLost };
}

function chargeOf({ receipt: { charged, chargeUnreadable } }: Answer, paid: boolean): Outcome['charged'] {
  if (charged !== null) return charged;
  return paid || chargeUnreadable ? 'unknown' : 0;
}

function chargeOfFailure(error: unknown, paid: boolean): Outcome['charged'] {
  if (!(error instanceof AdLibraryError)) return 'unknown';
  const { charged, chargeUnreadable } = error.failure;
  if (charged !== undefined) return charged;
  return (paid || chargeUnreadable) && mayBeCharged(error.failure) ? 'unknown' : 0;
}

function settlementOf(call: Call, { charged, answer }: Outcome, uncertain: number): Settlement {
  const { operation } = call;
  const stated = charged === 'unknown' ? undefined : charged;
  const balance = operation.name === 'getCredits' ? (answer?.value as CreditStatusAnswer | undefined)?.credits : null;
  return {
    charged: stated ?? 0,
    uncertain,
    isPaidAnswer: answer !== undefined && operation.gated,
    remaining: answer?.receipt.remaining ?? balance ?? undefined,
    learn: (prices) => {
      // The charge of a failure is a price, too, but for an unknown number of items.
      if (stated !== undefined && (answer || stated > 0)) learnPrice(prices, call, answer ?? noItems, stated);
    },
  };
}

const noItems = { value: { items: [] } };

/** How long a window counts as full before the service is asked again, in milliseconds. */
const askAgainAfter = 60_000;

/** The usage windows of a tenant, the credits left in them, and when the service was last asked. */
export interface FullWindow {
  usageLimit: UsageLimitAnswer;
  left: number;
  checkedAt: number;
  /** Tells one finding from another. */
  id: string;
}

/** The full windows of tenants. One that is forgotten costs a refused call. */
export interface FullWindows {
  get(tenantId: string): Promise<FullWindow | undefined>;
  set(tenantId: string, window: FullWindow | undefined): Promise<void>;
}

interface UsageWindowsOptions {
  ledger: CreditLedger;
  windows: FullWindows;
  askCredits: AskCredits;
  /** A clock that only goes on. */
  now: () => number;
}

/**
 * Explains a 429 with the windows of `GET /v1/credits`, which is not gated, and a 402 with its balance. While a window
 * is known to have less left than a gated call costs, the call is refused without sending it. Any answer of `GET
 * /v1/credits` that shows room ends this; if it gives no answer when asked again, the call itself is sent.
 */
export function withUsageWindows(send: Send, { ledger, windows, askCredits, now }: UsageWindowsOptions): Send {
  const requests = new Map<string, Promise<CreditStatusAnswer | undefined>>();

  const learn = (tenantId: string, usageLimit: UsageLimitAnswer | undefined, refused = false) => {
    const isFull = usageLimit !== undefined && (usageLimit.isLimitReached || refused);
    return windows.set(
      tenantId,
      isFull ? { usageLimit, left: roomIn(usageLimit), checkedAt: now(), id: randomUUID() } : undefined,
    );
  };

  const status: Send = async (call) => {
    const answer = await send(call);
    await learn(call.tenantId, (answer.value as CreditStatusAnswer).usageLimit);
    return answer;
  };

  /** The balance and the windows; concurrent callers share one request. Undefined if there is no answer. */
  const askOnce = (call: Call): Promise<CreditStatusAnswer | undefined> => {
    const { tenantId } = call;
    const request = requests.get(tenantId) ?? askCredits(send, call).finally(() => requests.delete(tenantId));
    requests.set(tenantId, request);
    return request;
  };

  /** Whether a window has less left than the call is expected to cost. A call of unknown price fits if anything is. */
  const isTooFull = async (window: FullWindow, call: Call): Promise<boolean> => {
    const { prices } = await ledger.estimate(call.tenantId);
    const { price, atLeast } = quote(prices, call);
    return window.left <= 0 || (price ?? atLeast) > window.left;
  };

  const ask: Send = async (call) => {
    const { tenantId } = call;
    let window = await windows.get(tenantId);
    if (window && (await isTooFull(window, call))) {
      if (now() - window.checkedAt < askAgainAfter) throw limitReached(window.usageLimit);
      // Recorded first, so that concurrent calls ask once.
      await windows.set(tenantId, { ...window, checkedAt: now() });
      await learn(tenantId, (await askOnce(call))?.usageLimit);
      window = await windows.get(tenantId);
      if (window && (await isTooFull(window, call))) throw limitReached(window.usageLimit);
    }
    try {
      return await send(call);
    } catch (error) {
      throw await explained(error, call, window);
    }
  };

  async function explained(error: unknown, call: Call, before: FullWindow | undefined): Promise<unknown> {
    const failure = error instanceof AdLibraryError ? error.failure : undefined;
    if (failure?.kind !== 'usage_limit' && failure?.kind !== 'payment_required') return error;
    // Another call may have found out in the meantime.
    const found = await windows.get(call.tenantId);
    if (failure.kind === 'usage_limit' && found && found.id !== before?.id) {
      return new AdLibraryError({ ...failure, usageLimit: found.usageLimit }, { cause: error });
    }
    const status = await askOnce(call);
    if (failure.kind === 'payment_required') {
      return new AdLibraryError({ ...failure, creditsLeft: status?.credits ?? undefined }, { cause: error });
    }
    await learn(call.tenantId, status?.usageLimit, true);
    return new AdLibraryError({ ...failure, usageLimit: status?.usageLimit }, { cause: error });
  }

  const gated = gatedOnly(send, ask);
  return (call) => (call.operation.name === 'getCredits' ? status(call) : gated(call));
}

/** Credits left in the tighter of the two windows. */
function roomIn({ isLimitReached, hourlyCredits, hourlyLimit, dailyCredits, dailyLimit }: UsageLimitAnswer): number {
  if (isLimitReached) return 0;
  const left = (used: number | undefined, max: number | undefined) => (max ?? Infinity) - (used ?? 0);
  return Math.max(0, Math.min(left(hourlyCredits, hourlyLimit), left(dailyCredits, dailyLimit)));
}

const limitReached = (usageLimit: UsageLimitAnswer) =>
  new AdLibraryError({ kind: 'usage_limit', status: 429, usageLimit, sent: false });

/** What one tool call may spend, however many calls of the API it makes. */
export interface CallAllowance extends Allowance {
  /**
   * The largest page, of so many items at most, that costs no more than what is left, by all that is known of prices.
   * Throws if none does: `credit_budget`, marked with `maxCredits` if it is this limit that refuses.
   */
  pageSize(page: { operation: ListName; max: number }): Promise<number>;
  /** What reading so many items costs; undefined if no charge was seen. */
  costOf(pages: PagesToRead): Promise<Cost | undefined>;
}

interface PagesToRead {
  operation: ListName;
  items: number;
  /** Of each page but the last. */
  size: number;
  /** Whether the number of items is known when the first page is asked for: else that is a full one. */
  isTotalKnown: boolean;
}

type ListName = 'searchAds' | 'listCollectionItems';

interface AllowanceOptions {
  maxCredits: number;
  tenantId: string;
  /** An empty ledger for this tool call alone. */
  own: CreditLedger;
  /** The ledger and the budget of the server, which go on to apply. */
  ledger: CreditLedger;
  budget: number | undefined;
  askCredits: AskCredits;
}

/** The rule of budgets for one tool call. It starts with the prices that the tenant's calls have shown so far. */
export async function openAllowance(options: AllowanceOptions): Promise<CallAllowance> {
  const { maxCredits, tenantId, own, ledger, budget, askCredits } = options;
  const { prices: known } = await ledger.estimate(tenantId);
  await own.settle(tenantId, { ...nothing, learn: (prices) => copyPrices(known, prices) });

  const pageSize: CallAllowance['pageSize'] = async ({ operation, max }) => {
    const account = await own.read(tenantId);
    const sizeWithin = (left: number) => maxPage(account.prices, { operation: operations[operation], max, left });
    const within = sizeWithin(maxCredits - used(account));
    if (within === 0) throw overMaxCredits({ problem: leftText(maxCredits, used(account)) }, maxCredits);
    const spent = budget === undefined ? 0 : used(await ledger.read(tenantId));
    const affordable = budget === undefined ? within : Math.min(within, sizeWithin(budget - spent));
    if (affordable > 0) return affordable;
    throw new AdLibraryError({ kind: 'credit_budget', problem: leftText(budget ?? 0, spent), sent: false });
  };

  return {
    spend: (call, send) => spend({ call, send, own, maxCredits, askCredits }),
    pageSize,
    costOf: async ({ operation, items, size, isTotalKnown }) => {
      const { prices } = await own.read(tenantId);
      const [pages, rest] = [Math.floor(items / size), items % size];
      const full = costOf(prices, operations[operation], size);
      const last = costOf(prices, operations[operation], rest || size);
      if (full === undefined || last === undefined) return undefined;
      if (pages === 0 && !isTotalKnown) {
        const isExact = full.isExact && last.isExact && full.most === last.most;
        return { most: Math.max(full.most, last.most), isExact };
      }
      const isExact = (pages === 0 || full.isExact) && (rest === 0 || last.isExact);
      return { most: pages * full.most + (rest === 0 ? 0 : last.most), isExact };
    },
  };
}

interface Spending {
  call: Call;
  send: Send;
  own: CreditLedger;
  maxCredits: number;
  askCredits: AskCredits;
}

/** The budget itself, on a ledger of its own. A refusal of its own is marked, one from further inside is not. */
async function spend({ call, send, own, maxCredits, askCredits }: Spending): Promise<Answer> {
  let isAdmitted = false;
  const admitted: Send = (inner) => {
    isAdmitted = true;
    return send(inner);
  };
  try {
    return await withBudget(admitted, { ledger: own, budget: maxCredits, askCredits })(call);
  } catch (error) {
    const isOverBudget = error instanceof AdLibraryError && error.failure.kind === 'credit_budget';
    throw isOverBudget && !isAdmitted ? overMaxCredits(error.failure, maxCredits) : error;
  }
}

/** Sends a call with an allowance only if that admits it. */
export const withAllowance =
  (send: Send): Send =>
  (call) =>
    call.allowance === undefined ? send(call) : call.allowance.spend(call, send);

/** Page sizes while a price is not known: whole groups of whatever a service may charge by. */
const roundSizes = [100, 50, 20, 10, 5, 2, 1];

function maxPage(prices: Prices, { operation, max, left }: { operation: Operation; max: number; left: number }) {
  // While no price is known, an item is taken to cost a credit at most.
  if (dearestOf(prices, operation.name) === undefined)
    return roundSizes.find((size) => size <= Math.min(max, Math.floor(left))) ?? 0;
  for (let size = max; size > 0; size--) {
    const call = pageOf(operation, size);
    const { price } = quote(prices, call);
    const isPlain = price !== undefined || size === max || roundSizes.includes(size);
    const most = price ?? costOf(prices, operation, size)?.most ?? maxCostOf(prices, call) ?? Infinity;
    if (isPlain && fits(most, left)) return size;
  }
  return 0;
}

const pageOf = (operation: Operation, limit: number): PricedCall => ({ operation, query: { limit } });

const copyPrices = (from: Prices, to: Prices) => {
  for (const [name, table] of from) to.set(name, structuredClone(table));
};

const nothing = { charged: 0, uncertain: 0, isPaidAnswer: false };

const overMaxCredits = (failure: Partial<Failure>, maxCredits: number) =>
  new AdLibraryError({ ...failure, kind: 'credit_budget', maxCredits, transient: false, sent: false });

const leftText = (limit: number, spent: number) =>
  `Of ${limit} credits ${Math.round(spent * 1e6) / 1e6} are spent or reserved, and no page is sure to cost as little as the rest.`;

/** An account is low if its credits pay for fewer calls than this, at the highest price seen. */
const fewCalls = 20;
/** A budget is low below this share of it. */
const lowShare = 0.2;
/** Tenants whose warnings are remembered. */
const maxWarned = 10_000;

type Low = 'credits' | 'budget';

/**
 * Completes every receipt from the ledger: a cached answer states the credits left now, not then, and counts as saved.
 * Warns once when little is left. Marks the failure of a call that is not gated but has charged before.
 */
export function withBalance(send: Send, { ledger, budget }: Pick<BudgetOptions, 'ledger' | 'budget'>): Send {
  const warned = new LRUCache<string, Set<Low>>({ max: maxWarned });

  const free: Send = async (call) => {
    try {
      return await send(call);
    } catch (error) {
      const { prices } = await ledger.estimate(call.tenantId);
      if (!(error instanceof AdLibraryError && isPaid(call.operation, prices))) throw error;
      throw new AdLibraryError({ ...error.failure, paid: true }, { cause: error });
    }
  };

  return gatedOnly(free, async (call) => {
    const { tenantId } = call;
    const answer = await send(call);
    const { receipt } = answer;
    const account = receipt.cached ? await ledger.saved(tenantId, receipt.saved ?? 0) : await ledger.estimate(tenantId);
    const remaining = receipt.cached ? (account.remaining ?? receipt.remaining) : receipt.remaining;
    const warning = warningOf(tenantId, account);
    return { ...answer, receipt: { ...receipt, remaining, ...(warning && { warning }) } };
  });

  function warningOf(tenantId: string, { prices, remaining = Infinity, spent, uncertain }: CreditAccount) {
    const price = dearest(prices);
    const inBudget = budget === undefined ? Infinity : Math.max(0, budget - spent - uncertain);
    const isLow = { credits: remaining < fewCalls * price, budget: inBudget < lowShare * (budget ?? 0) };
    const texts = [
      isNews(tenantId, 'credits', isLow.credits) && `the account has ${remaining} credits left`,
      isNews(tenantId, 'budget', isLow.budget) && `the budget of this server has ${inBudget} credits left`,
    ].filter(Boolean);
    if (texts.length === 0) return undefined;
    return `Low balance: ${texts.join(' and ')}, and calls have cost up to ${price}. Tell the user.`;
  }

  /** Warns of each once, until there is more of it again. */
  function isNews(tenantId: string, what: Low, isLow: boolean): boolean {
    const known = warned.get(tenantId) ?? new Set();
    if (!isLow) {
      known.delete(what);
      return false;
    }
    if (known.has(what)) return false;
    warned.set(tenantId, known.add(what));
    return true;
  }
}

/** The balance before and after a call, which shows a charge that the service does not state. */
interface Balance {
  /** Reads it before the call. Counts late charges of an earlier call whose outcome was unknown. */
  readBefore(): Promise<void>;
  /**
   * By how much it has fallen since then, without what other calls were charged; undefined if it cannot be read. After
   * a call without an answer, a reading without a change is kept: the charge may still come.
   */
  change(isAnswered: boolean): Promise<number | undefined>;
  /** Removes the reading: only a call whose outcome is unknown may still be charged. */
  forget(): Promise<void>;
}

interface BalanceOptions {
  call: Call;
  ledger: CreditLedger;
  send: Send;
  askCredits: AskCredits;
}

function balanceOf({ call, ledger, send, askCredits }: BalanceOptions): Balance {
  const { tenantId } = call;
  const ask = async () => (await askCredits(send, call))?.credits ?? undefined;
  const forget = async () => void (await ledger.readBalance(tenantId, undefined));
  return {
    async readBefore() {
      const credits = await ask();
      const earlier = await ledger.readBalance(tenantId, credits);
      if (earlier === undefined || credits === undefined) return;
      const late = earlier.credits - credits - earlier.explained;
      if (late > 0) await ledger.settle(tenantId, { charged: 0, uncertain: late, isPaidAnswer: false });
    },
    async change(isAnswered) {
      const credits = await ask();
      const before = await ledger.readBalance(tenantId, credits);
      if (before === undefined || credits === undefined) return undefined;
      const change = Math.max(0, before.credits - credits - before.explained);
      if (change > 0 || isAnswered) await forget();
      return change;
    },
    forget,
  };
}

/**
 * Whether a call may cost more than any seen: no charge of its operation was stated, or none for so many items. Then
 * the balance shows an unstated charge.
 */
function mayCostMore(call: Call, prices: Prices): boolean {
  const seen = dearestOf(prices, call.operation.name);
  return seen === undefined || (maxCostOf(prices, call) ?? 0) > seen;
}

interface UnstatedCharge {
  call: Call;
  ledger: CreditLedger;
  budget: number | undefined;
  lease: Lease | undefined;
  /** If it was read before the call. */
  balance: Balance | undefined;
  isAnswered: boolean;
}

/** A call without a stated charge counts as the dearest of its operation, or as the change of the balance. */
async function estimateCharge(charge: UnstatedCharge): Promise<number> {
  const { call, ledger, budget, lease, balance, isAnswered } = charge;
  const account = await ledger.estimate(call.tenantId);
  const seen = dearestOf(account.prices, call.operation.name);
  if (budget === undefined) return seen ?? 0;
  if (seen !== undefined && balance === undefined) return Math.max(1, seen, lease?.credits ?? 0);
  const change = await balance?.change(isAnswered);
  if (change !== undefined) return Math.max(change, seen ?? 0);
  // Without any information, it counts as its maximum cost, or as the rest of the budget.
  return maxCostOf(account.prices, call) ?? Math.max(1, budget - account.spent - account.uncertain);
}

/** Asks `GET /v1/credits` for the sake of another call. Undefined if there is no answer soon. */
export type AskCredits = (send: Send, call: Call) => Promise<CreditStatusAnswer | undefined>;

/** How long a call may wait for it: in milliseconds, and as a share of a call's time. */
const maxAskMs = 2000;
const maxShare = 0.25;
/** How long it is not asked again after it gave no answer in that time, in milliseconds. */
const restMs = 60_000;
/** Tenants for whom it gave none. */
const maxSilent = 10_000;

export function creditsAsker({ timeoutMs, now }: { timeoutMs: number; now: () => number }): AskCredits {
  const silent = new LRUCache<string, true>({ max: maxSilent, ttl: restMs, ttlResolution: 0, perf: { now } });
  const ms = Math.min(maxAskMs, maxShare * timeoutMs);
  const operation = operations.getCredits;
  return async (send, { apiKey, tenantId }) => {
    if (silent.has(tenantId)) return undefined;
    return withDeadline({ signals: [], ms }, async (signal) => {
      try {
        const call = { operation, path: {}, query: {}, fingerprint: operation.name, apiKey, tenantId, signal };
        return (await send(call)).value as CreditStatusAnswer;
      } catch {
        if (signal.aborted) silent.set(tenantId, true);
        return undefined;
      }
    });
  };
}
