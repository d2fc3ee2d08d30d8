import type { Receipt } from '../api/call.ts';
import { type Failure, mayBeCharged } from '../api/errors.ts';
import type { Tool } from '../tools/tool.ts';
import { dayMs } from '../views/durations.ts';
import { formatCreditAmount, formatNumber, roundCredits } from '../views/numbers.ts';
import { quoteUnlessWord } from '../views/safe-text.ts';
import { sanitizeId } from '../views/tokens.ts';
import type { ReceiptView } from './described-tools.ts';

/**
 * The number of tokens that every result reserves for the line about credits and for the notice, e.g. that the ads are
 * demo data.
 */
export const reservedReceiptTokens = 160;
/** The number of UTF-8 bytes that every result reserves for the line about credits and for the notice. */
export const reservedReceiptBytes = 1000;

/** The cost of a tool call, as data and as the line of text about credits. */
export interface CallCost {
  receipt: ReceiptView;
  creditsLine: string;
}

/** Collects the receipts of the API calls that one tool call makes. */
export class ReceiptCollector {
  readonly #receipts: Receipt[] = [];

  readonly add = (receipt: Receipt): void => void this.#receipts.push(receipt);

  /**
   * Records the charge of a failed API call. The charge is the one that the service reported. Otherwise, it is null
   * (unknown) if the call may have been charged, and 0 if not. A charge that another receipt counts is recorded as 0.
   */
  readonly addFailure = (failure: Failure): void => {
    const { isChargeShared, requestId = null, isPaid, wasSent, storage } = failure;
    const charged = isChargeShared ? 0 : failure.charged;
    const unreportedCharge = isPaid && mayBeCharged(failure) ? null : 0;
    if (wasSent !== false && !storage)
      this.add({ charged: charged ?? unreportedCharge, remaining: null, cached: false, requestId });
  };

  buildCost({ operations, makesSeveralApiCalls }: Tool): CallCost {
    if (makesSeveralApiCalls || this.#listSentReceipts().length > 1) return this.#buildTotalCost();
    const lastReceipt = this.#receipts.at(-1);
    const isFree = operations.length === 0 && (lastReceipt?.charged ?? null) === null;
    return buildSingleCost(isFree ? receiptWithoutRequest : lastReceipt);
  }

  /** Returns the sum of the known charges for this tool call, in credits. */
  sumKnownCharges(): number {
    const knownCharges = this.#listSentReceipts().reduce((sum, receipt) => sum + (receipt.charged ?? 0), 0);
    return roundCredits(knownCharges);
  }

  /** Returns true if this tool call has sent a request to the service, even if the request failed. */
  hasSentRequests(): boolean {
    return this.#listSentReceipts().length > 0;
  }

  /**
   * Formats the charges of a failed tool call. Returns an empty string if the call cost nothing or if the error message
   * already states the charge.
   */
  formatEarlierCharges(failure: Failure | undefined): string {
    const sentReceipts = this.#listSentReceipts();
    const errorStatesCharge = failure !== undefined && failure.wasSent !== false && !failure.storage;
    if ((errorStatesCharge && sentReceipts.length === 1) || sentReceipts.every(({ charged }) => charged === 0))
      return '';
    return this.#buildTotalCost().creditsLine;
  }

  #listSentReceipts = (): Receipt[] => this.#receipts.filter(({ cached }) => !cached);

  #buildTotalCost(): CallCost {
    const sentReceipts = this.#listSentReceipts();
    const knownCharges = this.sumKnownCharges();
    const charged = sentReceipts.some((receipt) => receipt.charged === null) ? null : knownCharges;
    const remaining = this.#receipts.findLast((receipt) => receipt.remaining !== null)?.remaining ?? null;
    const requestId = sanitizeRequestId(sentReceipts.at(-1));
    const calls = sentReceipts.length;
    const spentText = `${charged === null ? 'at least ' : ''}${formatCreditAmount(knownCharges)} charged`;
    const chargesText =
      calls === 0 ? 'nothing charged, no calls' : `${spentText} for ${calls} ${calls === 1 ? 'call' : 'calls'}`;
    const unusable = this.#receipts.reduce((sum, receipt) => sum + (receipt.unusableCount ?? 0), 0);
    const receipt = { charged, remaining, cached: calls === 0, requestId, calls, ...(unusable > 0 && { unusable }) };
    return { receipt, creditsLine: formatCreditsLine(chargesText, receipt, 'Last request') };
  }
}

/** The receipt of a tool call that sent no request to the service. */
const receiptWithoutRequest: Receipt = { charged: 0, remaining: null, cached: true, requestId: null };

function buildSingleCost(apiReceipt: Receipt | undefined): CallCost {
  const { charged = null, remaining = null, cached = false, ageMs, unusableCount } = apiReceipt ?? {};
  const requestId = sanitizeRequestId(apiReceipt);
  const receipt = {
    charged,
    remaining,
    cached,
    requestId,
    ...(unusableCount !== undefined && { unusable: unusableCount }),
  };
  const sharedText = requestId === null ? '' : ' (shared with an identical call)';
  const sourceText = ageMs === undefined ? sharedText : ` (cached ${formatAge(ageMs)})`;
  const spentText = charged === null ? 'not reported for this call' : `${formatCreditAmount(charged)} charged`;
  const chargesText = cached ? `nothing charged${sourceText}` : spentText;
  return { receipt, creditsLine: formatCreditsLine(chargesText, receipt, 'Request') };
}

const sanitizeRequestId = (receipt: Receipt | undefined) => (receipt?.requestId ? sanitizeId(receipt.requestId) : null);

function formatCreditsLine(
  chargesText: string,
  { remaining, requestId, unusable }: ReceiptView,
  requestLabel: string,
): string {
  const remainingText = remaining === null ? '' : `, ${formatCreditAmount(remaining)} left`;
  const creditsLine = `Credits: ${chargesText}${remainingText}${requestId === null ? '' : `. ${requestLabel} ${quoteUnlessWord(requestId)}`}`;
  return unusable === undefined ? creditsLine : `${formatUnusableItems(unusable)}\n${creditsLine}`;
}

/**
 * Formats a note about items without an id, which are omitted from the result. Users need the note because the service
 * charges for the whole page.
 */
const formatUnusableItems = (unusableCount: number) =>
  unusableCount === 1
    ? '1 item that the service sent has no id and is left out. It counts in what was charged for its page.'
    : `${formatNumber(unusableCount)} items that the service sent have no id and are left out. They count in what was charged for their page.`;

function formatAge(ageMs: number): string {
  if (ageMs < 1000) return 'just now';
  if (ageMs < 120_000) return `${Math.round(ageMs / 1000)} s ago`;
  if (ageMs < 7_200_000) return `${Math.round(ageMs / 60_000)} min ago`;
  return ageMs < 2 * dayMs ? `${Math.round(ageMs / 3_600_000)} h ago` : `${Math.round(ageMs / dayMs)} days ago`;
}
