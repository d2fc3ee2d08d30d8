import type { Admission, ReserveRequest, Settlement } from '../../src/credits/ledger.ts';

/** One settlement as a service states it. */
export const charged = (credits: number): Settlement => ({ charged: credits, uncertain: 0, isPaidAnswer: true });

export const asking =
  (request: Partial<ReserveRequest> = {}) =>
  () => ({ budget: 10, credits: 1, paid: true, ...request });

export function leaseOf(admission: Admission) {
  if (admission.kind !== 'granted') throw new Error(`not granted but ${admission.kind}`);
  return admission.lease;
}
