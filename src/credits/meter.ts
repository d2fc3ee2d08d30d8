import type { ApiCall, CallOwner, CreditLimit, SendCall, ServiceResponse } from '../api/call.ts';
import type { ParsedCreditStatus } from '../api/client.ts';
import { AdLibraryError } from '../api/errors.ts';
import {
  getConnectionAccountId,
  hasBudget,
  type LimitWithBudget,
  reserveCredits,
  type SpendingLimit,
} from './budget.ts';
import { type CallBudget, createCallBudget } from './call-budget.ts';
import { buildSpending, type Spending } from './credit-text.ts';
import type { CreditLedger, Lease, ReachedUsageLimit, ReachedUsageLimitStore } from './ledger.ts';
import { isPaidOperation } from './prices.ts';
import {
  buildSettlement,
  type CallOutcome,
  computeCharge,
  estimateUnreportedCost,
  freeSettlement,
  readReportedCharge,
} from './settlement.ts';
import { createCreditStatusReader, createUsageLimitTracker } from './usage-limits.ts';

interface MeterOptions {
  ledger: CreditLedger;
  reachedUsageLimits: ReachedUsageLimitStore;
  /**
   * The maximum number of credits that each API key may spend. If undefined, spending is unlimited but still recorded.
   */
  budget: number | undefined;
  /** Creates an empty ledger in memory, for the spending of a single tool call. */
  createCallLedger(): CreditLedger;
  timeoutMs: number;
  /** Returns milliseconds from a clock that is never set back. Used to measure durations. */
  monotonicNow: () => number;
}

type TenantOrConnection = Pick<CallOwner, 'tenantId' | 'connection'>;

interface Reservation {
  limit: LimitWithBudget;
  lease: Lease | undefined;
}

/** A call with the credits that are reserved for it. The cost of the call is not recorded yet. */
interface CallWithReservations {
  call: ApiCall;
  reservations: readonly Reservation[];
}

/** The step that reserves credits before a call and records the charge after the call. */
export type Meter = ReturnType<typeof createMeter>;

/**
 * Creates the meter, which sends calls to the service and records their cost. The meter keeps API keys, sign-in
 * connections and tool calls within their credit limits, even if many calls run at once.
 */
export function createMeter(sendCall: SendCall, options: MeterOptions) {
  const { ledger, budget, createCallLedger } = options;
  const limitsOfToolCalls = new WeakMap<CreditLimit, LimitWithBudget>();
  const readPrices = async (tenantId: string) => (await ledger.readPossiblyOutdated(tenantId)).prices;

  /**
   * Returns the credit limits that apply to every call of a caller: first the limit of the sign-in connection, if there
   * is one, and then the limit of the server. The account of the API key records the spending for the server's limit.
   */
  const listCallerLimits = ({ tenantId, connection }: TenantOrConnection): SpendingLimit[] => {
    const serverLimit: SpendingLimit = { ledger, accountId: tenantId, budget, scope: 'server' };
    if (connection?.creditBudget === undefined) return [serverLimit];
    return [
      { ledger, accountId: getConnectionAccountId(connection), budget: connection.creditBudget, scope: 'connection' },
      serverLimit,
    ];
  };
  const listCallLimits = (call: ApiCall): SpendingLimit[] => {
    const toolCallLimit = call.creditLimit && limitsOfToolCalls.get(call.creditLimit);
    return toolCallLimit ? [toolCallLimit, ...listCallerLimits(call.owner)] : listCallerLimits(call.owner);
  };

  /**
   * Reserves the highest expected cost of a call in every limit that applies. If a limit refuses the call, releases the
   * reservations in the other limits.
   * @throws AdLibraryError `credit_budget` if the call exceeds a limit
   */
  async function reserveInAllLimits(call: ApiCall): Promise<CallWithReservations> {
    const { operation } = call.request;
    const reservations: Reservation[] = [];
    try {
      for (const limit of listCallLimits(call).filter(hasBudget))
        reservations.push({ limit, lease: await reserveCredits(call, limit, readPrices) });
    } catch (error) {
      await Promise.all(reservations.map(releaseReservation));
      throw error;
    }
    const keyLease = reservations.find(({ limit }) => limit.scope === 'server')?.lease;
    call.progress.isPaid =
      operation.requiresCredits ||
      (keyLease?.isPaid ?? isPaidOperation(operation, await readPrices(call.owner.tenantId)));
    return { call, reservations };
  }

  const releaseReservation = async ({ limit, lease }: Reservation) => {
    if (lease) await limit.ledger.settle(limit.accountId, freeSettlement, lease);
  };

  /**
   * Records the cost of a finished call in every limit that applies. Uses the charge that the response or the error
   * reports, if there is one.
   */
  async function settleCall({ call, reservations }: CallWithReservations, outcome: CallOutcome): Promise<void> {
    const { tenantId } = call.owner;
    const finishedCall = { request: call.request, outcome, isPaid: call.progress.isPaid === true };
    const isChargeReported = readReportedCharge(finishedCall) !== undefined;
    const prices = isChargeReported ? noPrices : await readPrices(tenantId);
    const computeChargeForAccount = async (accountId: string, limit: Pick<SpendingLimit, 'ledger' | 'budget'>) =>
      computeCharge(
        {
          account: isChargeReported ? undefined : await limit.ledger.readPossiblyOutdated(accountId),
          budget: limit.budget,
          prices,
        },
        finishedCall,
      );
    // Update the account of the API key first, because calls that wait for another account read the new price from the
    // account of the API key.
    const keyReservation = reservations.find(({ limit }) => limit.scope === 'server');
    const charge = await computeChargeForAccount(tenantId, { ledger, budget });
    await ledger.settle(tenantId, buildSettlement(finishedCall, charge), keyReservation?.lease);
    const otherReservations = reservations.filter((reservation) => reservation !== keyReservation);
    await Promise.all(
      otherReservations.map(async ({ limit, lease }) => {
        const { isPaidResponse } = buildSettlement(finishedCall, charge);
        await limit.ledger.settle(
          limit.accountId,
          { ...(await computeChargeForAccount(limit.accountId, limit)), isPaidResponse },
          lease,
        );
      }),
    );
  }

  const sendMetered: SendCall = async (call) => {
    const callWithReservations = await reserveInAllLimits(call);
    let response: ServiceResponse;
    try {
      response = await sendCall(call);
    } catch (error) {
      await settleCall(callWithReservations, { error });
      throw error;
    }
    await settleCall(callWithReservations, { response });
    return response;
  };

  const readCreditStatus = createCreditStatusReader(options);
  const usageLimitTracker = createUsageLimitTracker({ ...options, readPrices }, (call) =>
    readCreditStatus(sendMetered, call),
  );

  return {
    /**
     * Sends a call if it is within every credit limit and within the key's hourly and daily usage limits. If the
     * service answers 402 or 429, adds the balance or the usage limits from `GET /v1/credits` to the error.
     */
    async send(call: ApiCall): Promise<ServiceResponse> {
      const { operation } = call.request;
      if (!operation.requiresCredits) {
        const response = await sendMetered(call);
        if (operation.name === 'getCredits')
          await usageLimitTracker.recordUsageLimit(
            call.owner.tenantId,
            (response.validatedBody as ParsedCreditStatus).usageLimit,
          );
        return response;
      }
      const reachedLimit: ReachedUsageLimit | undefined = await usageLimitTracker.admitCall(call);
      return sendMetered(call).catch(async (error) => {
        throw await usageLimitTracker.addCreditStatusToError(error, call, reachedLimit);
      });
    },
    /**
     * Adds the current credit balance to the receipt (the recorded cost) of a cached response. Marks the error of a
     * failed call as paid if its operation is normally free but has cost credits before.
     */
    async addBalance(
      { request: { operation }, owner: { tenantId } }: ApiCall,
      pendingResponse: Promise<ServiceResponse>,
    ): Promise<ServiceResponse> {
      if (!operation.requiresCredits)
        return pendingResponse.catch(async (error) => {
          throw isPaidOperation(operation, await readPrices(tenantId)) ? markAsPaid(error) : error;
        });
      const response = await pendingResponse;
      const { receipt } = response;
      if (!receipt.cached) return response;
      const { remainingCredits = receipt.remaining } = await ledger.readPossiblyOutdated(tenantId);
      return { ...response, receipt: { ...receipt, remaining: remainingCredits } };
    },
    readPrices,
    async readSpending({ tenantId, connection }: TenantOrConnection): Promise<Spending> {
      const account = await ledger.read(tenantId);
      if (connection?.creditBudget === undefined) return buildSpending(account, budget);
      const connectionLimit = {
        account: await ledger.read(getConnectionAccountId(connection)),
        budget: connection.creditBudget,
      };
      return buildSpending(account, budget, connectionLimit);
    },
    /**
     * Keeps the recorded spending of a sign-in connection for another 30 days, when the connection is renewed.
     * Otherwise the ledger would forget the spending 30 days after the last paid call.
     */
    async extendSpendingRetention(connection: { id: string }) {
      await ledger.settle(getConnectionAccountId(connection), { ...freeSettlement, extendsRetention: true });
    },
    /**
     * Creates the credit limit that applies to all API calls of one tool call. The limits of the connection and of the
     * server apply as well.
     *
     * Without `maxCredits`, the limit is 0 credits. API calls are then sent only while the service charges nothing for
     * them.
     */
    async createCallBudget(caller: TenantOrConnection, maxCredits?: number): Promise<CallBudget> {
      const { tenantId } = caller;
      const toolCallLimit: LimitWithBudget = {
        ledger: createCallLedger(),
        accountId: tenantId,
        budget: maxCredits ?? 0,
        scope: 'tool call',
      };
      const callBudget = createCallBudget({
        toolCallLimit,
        callerLimits: listCallerLimits(caller),
        readPrices: () => readPrices(tenantId),
        trustsFreeOperations: maxCredits === undefined,
      });
      limitsOfToolCalls.set(callBudget, toolCallLimit);
      return callBudget;
    },
    /**
     * Records the estimated cost of a call if the process that sent the call died before the response arrived.
     * `claimId` identifies the attempt to send the call, so that the cost is counted only once if several processes
     * notice the loss.
     */
    async settleLostCall(call: ApiCall, claimId: string) {
      // If there is a budget, the ledger already counts the reservation of the dead process as spent.
      if (budget !== undefined) return;
      const uncertainCredits = estimateUnreportedCost(await readPrices(call.owner.tenantId), call.request) ?? 0;
      await ledger.settle(call.owner.tenantId, { ...freeSettlement, id: `lost:${claimId}`, uncertainCredits });
    },
  };
}

const noPrices = new Map();

const markAsPaid = (error: unknown) =>
  error instanceof AdLibraryError ? new AdLibraryError({ ...error.failure, isPaid: true }, { cause: error }) : error;
