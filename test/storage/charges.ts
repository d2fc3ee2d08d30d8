import type { Admission, CreditAccount, ReserveRequest, Settlement } from '../../src/credits/ledger.ts';
import { maxPrice } from '../../src/credits/prices.ts';

/** One settlement as a service states it. */
export const chargedSettlement = (credits: number): Settlement => ({
  charged: credits,
  uncertain: 0,
  isPaidAnswer: true,
});

export const requestCredits =
  (request: Partial<ReserveRequest> = {}) =>
  ({ prices }: CreditAccount): ReserveRequest => {
    const { credits = 1 } = request;
    return { budget: 10, credits, atLeast: credits, paid: true, maxPrice: maxPrice(prices), ...request };
  };

export function getLease(admission: Admission) {
  if (admission.kind !== 'granted') throw new Error(`not granted but ${admission.kind}`);
  return admission.lease;
}
