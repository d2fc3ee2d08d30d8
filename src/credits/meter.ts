import { isDeepStrictEqual } from 'node:util';
import { abortedError } from '../api/abort.ts';
import type { Answer, Call, Connection, CreditLimit, Send } from '../api/call.ts';
import type { CreditStatusAnswer } from '../api/client.ts';
import { AdLibraryError, mayBeCharged } from '../api/errors.ts';
import { type Operation, operations } from '../api/operations.ts';
import { creditsFigure, overBudget, type Spending, spendingOf } from './credit-text.ts';
import {
  type CreditAccount,
  type CreditLedger,
  type FullWindows,
  fits,
  type Lease,
  type ReserveRequest,
  type Settlement,
  used,
} from './ledger.ts';
import {
  expectedPrice,
  isPaid,
  learnPrice,
  maxCostOf,
  maxPriceOf,
  type PriceBounds,
  type Prices,
  priceBounds,
} from './prices.ts';
import { type AskCredits, creditsAsker, usageWindows } from './usage-windows.ts';

interface MeterOptions {
  ledger: CreditLedger;
  windows: FullWindows;
  /** The budget of each tenant; if undefined, spending is recorded but not bounded. */
  budget: number | undefined;
  /** Opens an empty ledger for one tool call. */
  openLedger(): CreditLedger;
  timeoutMs: number;
  /** A monotonic clock, in milliseconds. */
  now: () => number;
}

type TenantOrConnection = Pick<Call, 'tenantId' | 'connection'>;

/** A limit of credits, and the account that says what is left of it. */
interface Limit {
  ledger: CreditLedger;
  account: string;
  budget: number | undefined;
  scope: 'tool call' | 'connection' | 'server';
}

const accountOf = ({ id }: Connection) => `connection ${id}`;

export type Meter = ReturnType<typeof openMeter>;

export function openMeter(service: Send, options: MeterOptions) {
  const { ledger, budget, openLedger } = options;
  const limits = new WeakMap<CreditLimit, Limit>();
  const budgetsOf = ({ tenantId, connection }: TenantOrConnection): Limit[] => {
    const server: Limit = { ledger, account: tenantId, budget, scope: 'server' };
    if (connection?.budget === undefined) return [server];
    return [{ ledger, account: accountOf(connection), budget: connection.budget, scope: 'connection' }, server];
  };
  const limitsOf = (call: Call): Limit[] => {
    const callLimit = call.callBudget && limits.get(call.callBudget);
    return callLimit ? [callLimit, ...budgetsOf(call)] : budgetsOf(call);
  };
  /** A connection knows the prices that any call with its key has shown. */
  const learnPrices = async (tenantId: string, connection: Connection) => {
    const account = accountOf(connection);
    const [{ prices }, connected] = await Promise.all([ledger.estimate(tenantId), ledger.estimate(account)]);
    if ([...prices].every(([operation, table]) => isDeepStrictEqual(table, connected.prices.get(operation)))) return;
    await ledger.settle(account, { ...nothing, learn: (learned) => new Map([...learned, ...prices]) });
  };
  const askCredits = creditsAsker(options);
  const sendMetered: Send = async (call) => {
    const { tenantId, connection } = call;
    if (connection?.budget !== undefined) await learnPrices(tenantId, connection);
    return sendWithin(limitsOf(call), call, { service, askCredits });
  };
  const usage = usageWindows(options, (call) => askCredits(sendMetered, call));

  return {
    /**
     * Sends a call if its usage window has room and its price fits into every limit: it is reserved in each before the
     * call, and settled afterwards. Explains a 402 and a 429.
     */
    async send(call: Call): Promise<Answer> {
      const { operation, tenantId } = call;
      if (operation.gated) {
        const window = await usage.admit(call);
        return sendMetered(call).catch(async (error) => {
          throw await usage.explain(error, call, window);
        });
      }
      const answer = await sendMetered(call);
      if (operation.name === 'getCredits') await usage.learn(tenantId, (answer.value as CreditStatusAnswer).usageLimit);
      return answer;
    },
    /** Adds the credits left now to a cached answer, and to a failure whether the call was one that costs credits. */
    async stateCharge({ operation, tenantId }: Call, answering: Promise<Answer>): Promise<Answer> {
      if (!operation.gated)
        return answering.catch(async (error) => {
          throw isPaid(operation, (await ledger.estimate(tenantId)).prices) ? markAsPaid(error) : error;
        });
      const answer = await answering;
      const { receipt } = answer;
      if (!receipt.cached) return answer;
      const { remaining = receipt.remaining } = await ledger.estimate(tenantId);
      return { ...answer, receipt: { ...receipt, remaining } };
    },
    prices: async (tenantId: string) => (await ledger.estimate(tenantId)).prices,
    async spending({ tenantId, connection }: TenantOrConnection): Promise<Spending> {
      const account = await ledger.read(tenantId);
      if (connection?.budget === undefined) return spendingOf(account, budget);
      const connectionLimit = { account: await ledger.read(accountOf(connection)), budget: connection.budget };
      return spendingOf(account, budget, connectionLimit);
    },
    /** Spending is forgotten a month after the last paid call; that of a connection which goes on counts for longer. */
    async keepSpending(connection: Connection) {
      await ledger.settle(accountOf(connection), { ...nothing, keeps: true });
    },
    /**
     * Opens a limit for one tool call, however many calls of the API it makes. Budgets still apply. Without `maxCredits` it
     * ends with the first charge: for services that were free so far.
     */
    async callBudget(caller: TenantOrConnection, maxCredits?: number): Promise<CallBudget> {
      const { tenantId } = caller;
      const about = { account: tenantId, budget: maxCredits ?? 0, scope: 'tool call' } as const;
      const callLimit: Bounded = { ledger: openLedger(), ...about };
      const { prices } = await ledger.estimate(tenantId);
      await callLimit.ledger.settle(tenantId, { ...nothing, learn: (learned) => new Map([...learned, ...prices]) });
      const opened = callBudgetOf(callLimit, budgetsOf(caller), maxCredits === undefined);
      limits.set(opened, callLimit);
      return opened;
    },
    /** Counts what a call may have cost when its process has died, once for each claim. */
    async settleLost(call: Call, claimId: string) {
      // With a budget, what its process had reserved counts already.
      if (budget !== undefined) return;
      const { prices } = await ledger.estimate(call.tenantId);
      const uncertain = maxCostOf(prices, call) ?? maxPriceOf(prices, call.operation.name) ?? 0;
      await ledger.settle(call.tenantId, { ...nothing, id: `lost:${claimId}`, uncertain });
    },
  };
}

const nothing = { charged: 0, uncertain: 0, isPaidAnswer: false };

const markAsPaid = (error: unknown) =>
  error instanceof AdLibraryError ? new AdLibraryError({ ...error.failure, paid: true }, { cause: error }) : error;

interface Reservation {
  limit: Limit;
  lease: Lease | undefined;
  paid: boolean;
  /** Whether the balance is read before and after the call, which shows a charge that the service does not state. */
  isMeasured: boolean;
}

type Outcome = { answer: Answer } | { error: unknown };

/**
 * Keeps the spending of a tenant within limits, even with many calls at once: the expected cost of a call is reserved in
 * each limit before it is sent, and settled afterwards. Calls of unknown price run one at a time, so that at most one
 * such call can exceed a limit.
 */
async function sendWithin(
  limits: readonly Limit[],
  call: Call,
  sending: { service: Send; askCredits: AskCredits },
): Promise<Answer> {
  const reservations: Reservation[] = [];
  // Reading the balance is part of the call that needs it, so it needs no reservation; but it may be charged.
  const withoutBudgets = () => limits.map((limit) => ({ ...limit, budget: undefined }));
  const ask: Send = (reading) => sendWithin(withoutBudgets(), reading, sending);
  const readBalance = async () => (await sending.askCredits(ask, call))?.credits ?? undefined;
  let outcome: Outcome = { error: undefined };
  try {
    for (const limit of limits) reservations.push(await reserve(limit, call));
    const measured = reservations.filter(({ isMeasured }) => isMeasured);
    if (measured.length > 0) await recordBalance(measured, readBalance);
    const answer = await sending.service(
      Object.assign({}, call, { paid: reservations.at(-1)?.paid ?? call.operation.gated }),
    );
    outcome = { answer };
    return answer;
  } catch (error) {
    outcome = { error };
    throw error;
  } finally {
    let after: Promise<number | undefined> | undefined;
    const balanceAfter = () => {
      after ??= readBalance();
      return after;
    };
    const orders = await Promise.all(reservations.map((one) => settle(one, call, { outcome, balanceAfter })));
    // The account of the server comes last.
    const order = orders.at(-1);
    if ('answer' in outcome && order !== undefined) outcome.answer.order = order;
  }
}

async function reserve(limit: Limit, call: Call): Promise<Reservation> {
  const { ledger, account, budget } = limit;
  const admission = budget === undefined ? undefined : await admitIfPaid(call, { ...limit, budget });
  const { prices } = admission?.account ?? (await ledger.estimate(account));
  const lease = admission?.lease;
  const paid = lease?.paid ?? isPaid(call.operation, prices);
  const isMeasured = lease?.line === paidLine && mayCostMore(call, prices) && !isPaid(operations.getCredits, prices);
  return { limit, lease, paid, isMeasured };
}

/** The queue in which paid calls of unknown price run one at a time. */
const paidLine = 'paid';

type Bounded = Limit & { budget: number };

/** A call that is not known to cost anything goes on while the account cannot be reached. */
async function admitIfPaid(call: Call, limit: Bounded) {
  try {
    return await waitForAdmission(call, limit);
  } catch (error) {
    const isAway = error instanceof AdLibraryError && error.failure.kind === 'unavailable';
    const { prices } = await limit.ledger.estimate(limit.account);
    if (!isAway || isPaid(call.operation, prices)) throw error;
    return undefined;
  }
}

async function waitForAdmission(call: Call, limit: Bounded) {
  const { ledger, account: id, budget } = limit;
  const { signal } = call;
  for (;;) {
    const admission = await ledger.reserve(id, (account) => requestOf(call, account, budget));
    if (admission.kind === 'granted') return admission;
    if (admission.kind === 'refused') {
      const { account } = admission;
      throw overLimit(limit, overBudget({ account, budget, expected: expectedPrice(account.prices, call), call }));
    }
    await ledger.changed(id, admission.version, signal).catch((error) => {
      throw signal.aborted ? abortedError(signal, false) : error;
    });
  }
}

function requestOf(call: Call, { prices }: CreditAccount, budget: number): ReserveRequest {
  const expected = expectedPrice(prices, call);
  const paid = isPaid(call.operation, prices);
  const line = expected.price !== undefined ? undefined : paid ? paidLine : call.operation.name;
  const credits = expected.price ?? expected.atLeast;
  const maxCost = maxCostOf(prices, call);
  const ifLost = paid ? maxCost && Math.max(1, maxCost, credits) : 0;
  return { budget, credits, paid, line, ifLost };
}

/** Returns the error of a call that a limit refuses. */
function overLimit({ scope, budget }: Bounded, { problem, transient }: { problem: string; transient: boolean }) {
  const refusal = { kind: 'credit_budget', problem, sent: false } as const;
  return new AdLibraryError(
    scope === 'tool call' ? { ...refusal, limit: scope, maxCredits: budget } : { ...refusal, limit: scope, transient },
  );
}

/**
 * Whether a call may cost more than any seen: no charge of its operation was stated, or none for as many items. Then
 * the balance shows an unstated charge.
 */
function mayCostMore(call: Call, prices: Prices): boolean {
  const maxPrice = maxPriceOf(prices, call.operation.name);
  return maxPrice === undefined || (maxCostOf(prices, call) ?? Infinity) > maxPrice;
}

interface Ended {
  outcome: Outcome;
  /** The balance after the call, read once for all limits; undefined if it cannot be read. */
  balanceAfter(): Promise<number | undefined>;
}

/**
 * Records what a call was charged, or what it may have been, and returns what was reserved for it. Resolves to the number
 * of the settlement, if it has one.
 */
async function settle(reservation: Reservation, call: Call, ended: Ended): Promise<number | undefined> {
  const { lease, paid, isMeasured, limit } = reservation;
  const { ledger, account } = limit;
  const { operation } = call;
  const answer = 'answer' in ended.outcome ? ended.outcome.answer : undefined;
  const charged = answer ? chargeOf(answer, paid) : chargeOfFailure(ended.outcome, paid);
  const isStated = charged !== 'unknown';
  const estimate = isStated ? { uncertain: 0 } : await estimateCharge(reservation, call, ended);
  // Only a call whose outcome is unknown may still be charged.
  if (isStated && isMeasured) await ledger.readBalance(account, undefined);
  const balance = operation.name === 'getCredits' ? (answer?.value as CreditStatusAnswer | undefined)?.credits : null;
  return ledger.settle(
    account,
    {
      charged: isStated ? charged : 0,
      ...estimate,
      isPaidAnswer: answer !== undefined && operation.gated,
      remaining: answer?.receipt.remaining ?? balance ?? undefined,
      // The charge of a failure is a price, too, but for an unknown number of items.
      learn: (prices) =>
        isStated && (answer || charged > 0) ? learnPrice(prices, call, answer ?? noItems, charged) : prices,
    },
    lease,
  );
}

const noItems = { value: { items: [] } };

function chargeOf({ receipt: { charged, chargeUnreadable } }: Answer, paid: boolean): number | 'unknown' {
  if (charged !== null) return charged;
  return paid || chargeUnreadable ? 'unknown' : 0;
}

function chargeOfFailure(outcome: Outcome, paid: boolean): number | 'unknown' {
  const error = 'error' in outcome ? outcome.error : undefined;
  if (!(error instanceof AdLibraryError)) return 'unknown';
  const { charged, chargeUnreadable } = error.failure;
  if (charged !== undefined) return charged;
  return (paid || chargeUnreadable) && mayBeCharged(error.failure) ? 'unknown' : 0;
}

/**
 * A call without a stated charge counts as the highest charge of its operation, or as the change of the balance. An
 * answered one counts at least 1; if the balance shows nothing of a second one either, the rest of the budget.
 */
async function estimateCharge(
  { limit, lease, isMeasured }: Reservation,
  call: Call,
  ended: Ended,
): Promise<Pick<Settlement, 'uncertain' | 'isUnshown'>> {
  const { ledger, budget } = limit;
  const account = await ledger.estimate(limit.account);
  const maxPrice = maxPriceOf(account.prices, call.operation.name);
  if (budget === undefined) return { uncertain: maxPrice ?? 0 };
  if (maxPrice !== undefined && !isMeasured) return { uncertain: Math.max(1, maxPrice, lease?.credits ?? 0) };
  const { change, isSecond } = (isMeasured && (await balanceChange(limit, ended))) || {};
  const isUnshown = change === 0 && 'answer' in ended.outcome;
  if (change !== undefined && !isUnshown) return { uncertain: Math.max(change, maxPrice ?? 0) };
  if (isUnshown && !isSecond) return { uncertain: Math.max(1, maxPrice ?? 0), isUnshown };
  // Without any information, it counts as its maximum cost, or as the rest of the budget.
  const rest = Math.max(1, budget - account.spent - account.uncertain);
  return { uncertain: maxCostOf(account.prices, call) ?? rest };
}

/** Records the balance before a call, and what late charges of an earlier call of unknown outcome have taken from it. */
async function recordBalance(
  measured: readonly Reservation[],
  readBalance: () => Promise<number | undefined>,
): Promise<void> {
  const credits = await readBalance();
  for (const {
    limit: { ledger, account },
  } of measured) {
    const earlier = await ledger.readBalance(account, credits);
    if (earlier === undefined || credits === undefined) continue;
    const late = earlier.credits - credits - earlier.explained;
    if (late > 0) await ledger.settle(account, { ...nothing, uncertain: late });
  }
}

/**
 * By how much the balance has fallen since before the call, without what other calls were charged, and whether an
 * earlier charge has yet to show, too; undefined if it cannot be read. A reading without a change stays stored, because
 * the charge may still come.
 */
async function balanceChange({ ledger, account }: Limit, ended: Ended) {
  const credits = await ended.balanceAfter();
  const before = await ledger.readBalance(account, credits);
  if (before === undefined || credits === undefined) return undefined;
  const change = Math.max(0, before.credits - credits - before.explained);
  if (change > 0) await ledger.readBalance(account, undefined);
  return { change, isSecond: before.isUnshown === true };
}

export type CallBudget = ReturnType<typeof callBudgetOf>;

interface PagesToRead {
  operation: ListName;
  items: number;
  /** Items of each page but the last. */
  size: number;
  /** Whether the number of items is known when the first page is asked for: otherwise the first page is a full one. */
  isTotalKnown: boolean;
}

type ListName = 'searchAds' | 'listCollectionItems';

function callBudgetOf(callLimit: Bounded, budgets: readonly Limit[], trustsFree: boolean) {
  const { budget: maxCredits } = callLimit;
  const read = () => callLimit.ledger.read(callLimit.account);
  return {
    maxCredits,
    /** What its calls cost, may have cost, and may still cost. */
    used: async () => used(await read()),
    /**
     * The largest page, of at most `max` items, that costs no more than what is left, by every price seen.
     * Throws if none does: `credit_budget`, marked with `maxCredits` if it is this limit that refuses.
     */
    async pageSize({ operation, max }: { operation: ListName; max: number }): Promise<number> {
      const { prices } = await read();
      const page = { operation: operations[operation], trustsFree };
      let size = max;
      for (const { budget, ...limit } of [callLimit, ...budgets]) {
        if (budget === undefined) continue;
        const account = await limit.ledger.read(limit.account);
        const spent = used(account);
        size = maxPage(prices, { ...page, max: size, credits: budget - spent });
        if (size === 0)
          throw overLimit({ ...limit, budget }, { problem: leftText(budget, spent, account.day), transient: false });
      }
      return size;
    },
    /** Undefined while no charge was seen. */
    async costOf({ operation, items, size, isTotalKnown }: PagesToRead): Promise<PriceBounds | undefined> {
      const { prices } = await read();
      const [pages, rest] = [Math.floor(items / size), items % size];
      const full = priceBounds(prices, operations[operation], size);
      const last = priceBounds(prices, operations[operation], rest || size);
      if (full === undefined || last === undefined) return undefined;
      const both = (join: (full: number, last: number) => number) => ({
        atLeast: join(full.atLeast, last.atLeast),
        atMost: join(full.atMost, last.atMost),
      });
      if (pages > 0 || isTotalKnown) return both((page, end) => pages * page + (rest === 0 ? 0 : end));
      return { atLeast: both(Math.min).atLeast, atMost: both(Math.max).atMost };
    },
    /** Whether every charge seen for an operation was 0, and there was one. */
    async isFree(operation: ListName) {
      return maxPriceOf((await read()).prices, operation) === 0;
    },
  };
}

/** Page sizes while their price is not known: whole groups of whatever a service may charge by. */
const isRound = (size: number) => size % 10 === 0 || size === 5 || size <= 2;

/** While no price tells, an item is taken to cost a credit at most. */
function maxPage(
  prices: Prices,
  { operation, max, credits, trustsFree }: { operation: Operation; max: number; credits: number; trustsFree: boolean },
): number {
  const isFree = trustsFree && maxPriceOf(prices, operation.name) === 0;
  for (let size = max; size > 0; size--) {
    const bounds = priceBounds(prices, operation, size);
    const most = bounds?.atMost ?? maxCostOf(prices, { operation, query: { limit: size } }) ?? (isFree ? 0 : size);
    const isPlain = size === max || isRound(size) || (bounds !== undefined && bounds.atLeast === bounds.atMost);
    if (isPlain && fits(most, credits)) return size;
  }
  return 0;
}

const leftText = (limit: number, spent: number, day?: string) =>
  `${creditsFigure(spent)} of ${creditsFigure(limit)} credits${day === undefined ? '' : ` for ${day} (UTC)`} are spent or reserved, and a page may cost more than the rest.`;
