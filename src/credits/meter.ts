import type { Answer, Call, CallOwner, CreditLimit, Send } from '../api/call.ts';
import type { CreditStatusAnswer } from '../api/client.ts';
import { AdLibraryError } from '../api/errors.ts';
import { type Budget, getConnectionAccount, hasBudget, type Limit, reserveCredits } from './budget.ts';
import { type CallBudget, openCallBudget } from './call-budget.ts';
import { buildSpending, type Spending } from './credit-text.ts';
import type { CreditLedger, FullWindow, FullWindows, Lease } from './ledger.ts';
import { isPaid } from './prices.ts';
import {
  buildSettlement,
  computeCharge,
  emptySettlement,
  estimateUnstatedCost,
  type Outcome,
  readStatedCharge,
} from './settlement.ts';
import { createCreditsReader, trackUsageWindows } from './usage-windows.ts';

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

type TenantOrConnection = Pick<CallOwner, 'tenantId' | 'connection'>;

interface Reservation {
  limit: Budget;
  lease: Lease | undefined;
}

/** The credit state of a call, from its beginning to its end. */
interface OpenCall {
  call: Call;
  reservations: readonly Reservation[];
}

export type Meter = ReturnType<typeof openMeter>;

/** Keeps the spending of each key, connection and tool call within its limits, even with many calls at once. */
export function openMeter(service: Send, options: MeterOptions) {
  const { ledger, budget, openLedger } = options;
  const callLimits = new WeakMap<CreditLimit, Budget>();
  const pricesOf = async (tenantId: string) => (await ledger.estimate(tenantId)).prices;

  /** The limits that apply to all calls of a caller. The server's limit, whose account is that of the key, comes last. */
  const budgetsOf = ({ tenantId, connection }: TenantOrConnection): Limit[] => {
    const server: Limit = { ledger, account: tenantId, budget, scope: 'server' };
    if (connection?.budget === undefined) return [server];
    return [
      { ledger, account: getConnectionAccount(connection), budget: connection.budget, scope: 'connection' },
      server,
    ];
  };
  const limitsOf = (call: Call): Limit[] => {
    const callLimit = call.creditLimit && callLimits.get(call.creditLimit);
    return callLimit ? [callLimit, ...budgetsOf(call.owner)] : budgetsOf(call.owner);
  };

  /**
   * Reserves the highest expected cost of a call in every limit. Releases what it has reserved if one of them refuses.
   * @throws AdLibraryError `credit_budget` if the call does not fit into a limit
   */
  async function begin(call: Call): Promise<OpenCall> {
    const { operation } = call.request;
    const reservations: Reservation[] = [];
    try {
      for (const limit of limitsOf(call).filter(hasBudget))
        reservations.push({ limit, lease: await reserveCredits(call, limit, pricesOf) });
    } catch (error) {
      await Promise.all(reservations.map(release));
      throw error;
    }
    const ofKey = reservations.find(({ limit }) => limit.scope === 'server')?.lease;
    call.progress.isPaid = operation.gated || (ofKey?.isPaid ?? isPaid(operation, await pricesOf(call.owner.tenantId)));
    return { call, reservations };
  }

  const release = async ({ limit, lease }: Reservation) => {
    if (lease) await limit.ledger.settle(limit.account, emptySettlement, lease);
  };

  /**
   * Settles a call in every limit, by the charge that its answer or failure states.
   */
  async function end({ call, reservations }: OpenCall, outcome: Outcome): Promise<void> {
    const { tenantId } = call.owner;
    const ended = { request: call.request, outcome, isPaid: call.progress.isPaid === true };
    const isStated = readStatedCharge(ended) !== undefined;
    const prices = isStated ? noPrices : await pricesOf(tenantId);
    const chargeIn = async (account: string, limit: Pick<Limit, 'ledger' | 'budget'>) =>
      computeCharge(
        { account: isStated ? undefined : await limit.ledger.estimate(account), budget: limit.budget, prices },
        ended,
      );
    // The key's account first: who waits in another account reads the prices that this call has shown.
    const ofKey = reservations.find(({ limit }) => limit.scope === 'server');
    const charge = await chargeIn(tenantId, { ledger, budget });
    await ledger.settle(tenantId, buildSettlement(ended, charge), ofKey?.lease);
    const others = reservations.filter((reservation) => reservation !== ofKey);
    await Promise.all(
      others.map(async ({ limit, lease }) => {
        const { isPaidAnswer } = buildSettlement(ended, charge);
        await limit.ledger.settle(limit.account, { ...(await chargeIn(limit.account, limit)), isPaidAnswer }, lease);
      }),
    );
  }

  const sendMetered: Send = async (call) => {
    const open = await begin(call);
    let answer: Answer;
    try {
      answer = await service(call);
    } catch (error) {
      await end(open, { error });
      throw error;
    }
    await end(open, { answer });
    return answer;
  };

  const askCredits = createCreditsReader(options);
  const usage = trackUsageWindows({ ...options, pricesOf }, (call) => askCredits(sendMetered, call));

  return {
    /**
     * Sends a call if its usage window has room for it and its price fits into every limit. Explains a 402 and a 429 by
     * what `GET /v1/credits` says.
     */
    async send(call: Call): Promise<Answer> {
      const { operation } = call.request;
      if (!operation.gated) {
        const answer = await sendMetered(call);
        if (operation.name === 'getCredits')
          await usage.recordUsageLimit(call.owner.tenantId, (answer.value as CreditStatusAnswer).usageLimit);
        return answer;
      }
      const window: FullWindow | undefined = await usage.admit(call);
      return sendMetered(call).catch(async (error) => {
        throw await usage.explain(error, call, window);
      });
    },
    /** Adds the current balance to the receipt of a cached answer, and to a failure whether its call costs credits. */
    async addBalance(
      { request: { operation }, owner: { tenantId } }: Call,
      answering: Promise<Answer>,
    ): Promise<Answer> {
      if (!operation.gated)
        return answering.catch(async (error) => {
          throw isPaid(operation, await pricesOf(tenantId)) ? markAsPaid(error) : error;
        });
      const answer = await answering;
      const { receipt } = answer;
      if (!receipt.cached) return answer;
      const { remaining = receipt.remaining } = await ledger.estimate(tenantId);
      return { ...answer, receipt: { ...receipt, remaining } };
    },
    prices: pricesOf,
    async spending({ tenantId, connection }: TenantOrConnection): Promise<Spending> {
      const account = await ledger.read(tenantId);
      if (connection?.budget === undefined) return buildSpending(account, budget);
      const connectionLimit = {
        account: await ledger.read(getConnectionAccount(connection)),
        budget: connection.budget,
      };
      return buildSpending(account, budget, connectionLimit);
    },
    /** Keeps the spending of a connection that was renewed: spending is forgotten a month after the last paid call. */
    async keepSpending(connection: { id: string }) {
      await ledger.settle(getConnectionAccount(connection), { ...emptySettlement, extendsRetention: true });
    },
    /**
     * Opens a limit for one tool call, however many calls of the API it makes. Budgets still apply. Without
     * `maxCredits`, the limit ends with the first charge: for services that were free so far.
     */
    async callBudget(caller: TenantOrConnection, maxCredits?: number): Promise<CallBudget> {
      const { tenantId } = caller;
      const callLimit: Budget = {
        ledger: openLedger(),
        account: tenantId,
        budget: maxCredits ?? 0,
        scope: 'tool call',
      };
      const opened = openCallBudget({
        callLimit,
        limits: budgetsOf(caller),
        prices: () => pricesOf(tenantId),
        trustsFreeOperations: maxCredits === undefined,
      });
      callLimits.set(opened, callLimit);
      return opened;
    },
    /** Counts what a call may have cost when its process has died, once for each claim. */
    async settleLost(call: Call, claimId: string) {
      // With a budget, the reservation of the dead process counts already.
      if (budget !== undefined) return;
      const uncertain = estimateUnstatedCost(await pricesOf(call.owner.tenantId), call.request) ?? 0;
      await ledger.settle(call.owner.tenantId, { ...emptySettlement, id: `lost:${claimId}`, uncertain });
    },
  };
}

const noPrices = new Map();

const markAsPaid = (error: unknown) =>
  error instanceof AdLibraryError ? new AdLibraryError({ ...error.failure, paid: true }, { cause: error }) : error;
