import type { Receipt } from './send.ts';

/** Reads the request id and the credit headers of an answer (document, *Endpoints*). */
export function receiptIn(headers: { get(name: string): string | null }): Receipt {
  const chargedText = headers.get('x-service-credits-charged');
  const charged = readCredits(chargedText);
  return {
    charged,
    remaining: readCredits(headers.get('x-service-credits-remaining')),
    cached: false,
    requestId: headers.get('x-service-request-id'),
    ...(charged === null && chargedText !== null && { chargeUnreadable: true }),
  };
}

/** Header values are strings (document, *Endpoints*); those of any other form are ignored. */
function readCredits(header: string | null): number | null {
  return header !== null && /^\d{1,12}(\.\d{1,6})?$/.test(header.trim()) ? Number(header) : null;
}
