import * as z from 'zod';
import { AdLibraryError } from './errors.ts';
import { AdAnswer, PageAnswer } from './response-schemas.ts';
import type { Receipt } from './send.ts';

/** Reads the items of a collection as the requested type, because the answer does not state it reliably. */
export const readAds = (answer: Listed) => readItems(AdAnswer, answer);
export const readPages = (answer: Listed) => readItems(PageAnswer, answer);

function readItems<Item>(item: z.ZodType<Item>, { value, receipt }: Listed): Item[] {
  const parsed = z.array(item).safeParse(value.items);
  if (parsed.success) return parsed.data;
  const { charged, requestId } = receipt;
  throw new AdLibraryError({
    kind: 'unexpected_response',
    problem: 'The items are not of the requested item type.',
    status: 200,
    requestId: requestId ?? undefined,
    charged: charged ?? undefined,
    sent: true,
    paid: true,
  });
}

interface Listed {
  value: { items: readonly unknown[] };
  receipt: Pick<Receipt, 'charged' | 'requestId'>;
}
