import * as z from 'zod';
import { dataPerText } from '../present/copy-fields.ts';
import { type ListFrame, notesText, type Price, serviceNotes } from '../present/list-text.ts';
import { fit } from '../present/tokens.ts';
import { type Cursors, type PageListing, writeCursor } from './cursor.ts';
import type { ItemViews } from './item-views.ts';
import { itemsOf, type ListAnswer } from './item-views.ts';

/** What every list result holds besides its items. `shown` is present if the service's page was cut to fit. */
export const paging = {
  cursor: z.string().nullable(),
  hasMore: z.boolean(),
  totalHits: z.number().optional(),
  shown: z.looseObject({ from: z.number(), to: z.number(), of: z.number() }).optional(),
  asOf: z.string().optional(),
  appUrlPattern: z.string().optional(),
  notes: z.array(z.string()).optional(),
};

/** `nextPage`, which explains itself, is not listed: a schema costs every conversation tokens. */
export type Paging = z.infer<z.ZodObject<typeof paging>> & { nextPage?: PriceData };

/** As estimates of gather_ads state it. */
type PriceData = { credits: number } | { credits: null; atMost: number };

/** As much of a list as fits into a result, as data and as text. */
export interface ListPage {
  data: Paging & { items: readonly unknown[] };
  text: string;
  /** Where its cursor continues. */
  next: PageListing | undefined;
}

/** What the rest of a page, if it is cut to fit, and the page after it are expected to cost. */
export interface PagePrices {
  rest: Price | undefined;
  next: Price | undefined;
}

interface FitOptions<View> {
  answer: ListAnswer;
  listing: PageListing;
  prices: PagePrices;
  views: ItemViews<View>;
}

/** Shows as many items as fit. The text is written to measure it, and then used as it is. */
export function fitPage<View>(
  options: FitOptions<View>,
  { cursors, resultTokens }: { cursors: Cursors; resultTokens: number },
): ListPage {
  const { answer, listing, views } = options;
  const sent = itemsOf(answer);
  const { position } = listing;
  const shared = { ...views.shared?.(sent), ...(position.shown === 0 && serviceNotes(answer.raw)) };
  const left = sent.slice(position.shown);
  const { atATime = left.length } = views;
  const items: View[] = [];
  const written = new Map<number, ReturnType<typeof pageEnd> & { text: string }>();
  const write = (leading: readonly View[]) => {
    const known = written.get(leading.length);
    if (known) return known;
    const end = pageEnd(leading.length, options, cursors);
    const list = views.text({ ...frameOf({ ...end.paging, ...shared }), price: end.price, items: leading });
    const text = [answer.heading?.text, ...notesText(shared), list].filter((line) => line).join('\n');
    written.set(leading.length, { ...end, text });
    return { ...end, text };
  };
  const render = (leading: readonly View[]) => write(leading).text;

  let fitting = 0;
  // A few at a time: of a page of full objects, only the first ones fit.
  while (fitting === items.length && fitting < left.length) {
    const more = left.slice(fitting, fitting + Math.max(atATime, fitting));
    items.push(...more.map((item) => views.view(item)));
    const readable = items.slice(0, fit({ items, budget: resultTokens, render }));
    fitting = fit({ items: readable, budget: dataPerText * resultTokens, render: JSON.stringify });
  }
  const shown = items.slice(0, fitting);
  const { paging, next, text } = write(shown);
  return { data: { ...answer.heading?.data, items: shown, ...paging, ...shared }, text, next };
}

/** Where a result with this many items ends, and where the list continues. */
function pageEnd(count: number, { answer, listing, prices }: Omit<FitOptions<never>, 'views'>, cursors: Cursors) {
  const { cursor, hasMore, totalHits } = answer.value;
  const { position } = listing;
  const of = itemsOf(answer).length;
  const to = position.shown + count;
  const nextPage = hasMore && cursor ? { ...position, serviceCursor: cursor, shown: 0 } : undefined;
  const nextPosition = to < of ? { ...position, shown: to } : nextPage;
  const next: PageListing | undefined = nextPosition && { ...listing, position: nextPosition };
  const price = next && (to < of ? prices.rest : prices.next);
  const paging: Paging = {
    cursor: next ? writeCursor(next, cursors) : null,
    hasMore: to < of || hasMore,
    ...(totalHits !== undefined && { totalHits }),
    ...(price && { nextPage: price.isExact ? { credits: price.most } : { credits: null, atMost: price.most } }),
    ...(count < of && { shown: { from: position.shown + 1, to, of } }),
  };
  return { paging, next, price };
}

/** What a list says before and after its items. */
const frameOf = ({ totalHits, shown, nextPage: _, notes: __, ...paging }: Paging): ListFrame => ({
  ...paging,
  total: totalHits,
  of: shown?.of,
  from: shown?.from,
});
