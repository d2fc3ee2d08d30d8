import { fit } from '../present/fit.ts';
import { DATA_PER_TEXT } from '../present/view.ts';
import { type Asking, type Question, readPlace, writePlace } from './cursor.ts';
import type { ItemViews } from './item-views.ts';
import { frameOf, type Paging } from './paging.ts';
import type { ToolContext } from './tool-context.ts';
import { knownItems } from './view-memo.ts';

/** A page as the service gave it, as it reads and as it came. */
export interface ServicePage {
  value: { items: readonly unknown[]; cursor: string | null; hasMore: boolean; totalHits?: number | undefined };
  raw: unknown;
}

interface PageOptions<View> {
  asking: Asking;
  context: ToolContext;
  views: ItemViews<View>;
  /** Asks the service with the question, and the limit and cursor of one of its pages. */
  fetch(body: Question & { limit?: number; cursor?: string }): Promise<ServicePage>;
}

/**
 * As many items of a page as fit a result. The cursor goes on with the next one: on the same page of the service,
 * which is kept and not paid again, or else on its next page.
 */
export async function pageOf<View>(options: PageOptions<View>): Promise<Paging & { items: View[] }> {
  const { asking, context, views, fetch } = options;
  const { list } = asking;
  const { place, question } = readPlace(asking, context.asked);
  const { limit, serviceCursor } = place;
  const { value, raw } = await fetch({
    ...question,
    ...(limit !== undefined && { limit }),
    ...(serviceCursor !== undefined && { cursor: serviceCursor }),
  });
  const { totalHits } = value;
  const { shared, atATime = value.items.length } = views;
  const sent = itemsOf(raw);
  const said = shared?.(sent) ?? {};
  const known = knownItems<View>(context, raw as object, `${views.name} ${place.shown} ${said.asOf}`);
  if (known.items) return { items: known.items, ...pagingOf(known.items.length) };
  const left = sent.slice(place.shown);
  const items: View[] = [];
  let count = 0;
  let text: string | undefined;
  // Condensed a few at a time: of a page of full objects only the first ones are shown.
  while (count === items.length && count < left.length) {
    const more = left.slice(count, count + Math.max(atATime, count));
    items.push(...more.map((item) => views.view(item)));
    count = countThatFits();
  }
  const fitting = items.slice(0, count);
  // What was written last is their text where all of them fit.
  known.remember(fitting, count === items.length ? text : undefined);
  return { items: fitting, ...pagingOf(count) };

  function countThatFits(): number {
    const render = (some: readonly View[]) => {
      text = views.text({ ...frameOf(pagingOf(some.length)), items: some });
      return text;
    };
    const readable = items.slice(0, fit({ items, budget: context.resultTokens, render }));
    return fit({ items: readable, budget: DATA_PER_TEXT * context.resultTokens, render: JSON.stringify });
  }

  function pagingOf(count: number): Paging {
    const { length } = value.items;
    const shown = place.shown + count;
    const following = (value.hasMore && value.cursor) || undefined;
    const next = shown < length ? { ...place, shown } : { limit, serviceCursor: following, shown: 0 };
    return {
      cursor: writePlace(next, { list, question }, context.asked) ?? null,
      hasMore: shown < length || value.hasMore,
      ...(totalHits !== undefined && { totalHits }),
      ...said,
      ...(count < length && { shown: { from: place.shown + 1, to: shown, of: length } }),
    };
  }
}

/** What was read as a list before, as it came. */
const itemsOf = (raw: unknown): readonly object[] => (raw as { items: object[] }).items;
