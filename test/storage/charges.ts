import type { Admission, CreditAccount, ReserveRequest, Settlement } from '../../src/credits/ledger.ts';
import { getOverallMaxPrice } from '../../src/credits/prices.ts';

/** Creates the settlement of a paid call with this charge. */
export const chargedSettlement = (credits: number): Settlement => ({
  chargedCredits: credits,
  uncertainCredits: 0,
  isPaidResponse: true,
});

/** Creates the argument for the ledger's `reserve` method: a request for one credit by default. */
export const requestCredits =
  (request: Partial<ReserveRequest> = {}) =>
  ({ prices }: CreditAccount): ReserveRequest => {
    const { credits = 1 } = request;
    return { budget: 10, credits, atLeast: credits, isPaid: true, maxPrice: getOverallMaxPrice(prices), ...request };
  };

/**
 * Returns the lease of a granted reservation.
 * @throws Error if the reservation was not granted
 */
export function getLease(admission: Admission) {
  if (admission.kind !== 'granted') throw new Error(`not granted but ${admission.kind}`);
  return admission.lease;
}
