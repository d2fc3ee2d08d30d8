import type { BoardContext } from '../payload.ts';
import { button } from './elements.ts';
import { problemOf, type View } from './state.ts';
import { count } from './words.ts';

/** The next page of a search. It takes a second click, on a button that names the price. */
export function createMore(view: View): { buttons(): HTMLElement[] } {
  /** Of the result whose next page is to be confirmed: another result starts anew. */
  let confirming: BoardContext | undefined;
  let isBusy = false;

  const price = () => {
    const { nextCredits } = view.state.context;
    if (nextCredits === undefined) return ' at an unknown price';
    return nextCredits === 0 ? ', free as long as the page is kept' : ` for about ${count(nextCredits, 'credit')}`;
  };
  const confirm = (context?: BoardContext) => {
    confirming = context;
    view.update({});
  };
  const load = async () => {
    confirming = undefined;
    isBusy = true;
    view.update({ status: 'Searching …' });
    try {
      const { args, context } = view.state;
      // What was fresh for the first page would be paid again on the next ones.
      const { fresh: _fresh, ...search } = args;
      const next = await view.server.search({ ...search, cursor: context.cursor });
      const { nextCredits: _, ...before } = context;
      view.update({ context: { ...before, ...next } });
      await view.load(next.ids ?? []);
      view.update({ status: paidText(next.receipt) });
    } catch (error) {
      view.update({ status: problemOf(error) });
    }
    isBusy = false;
    view.update({});
  };
  return {
    buttons: () => {
      const { context, offered } = view.state;
      if (!context.cursor || context.tool !== 'search_ads' || !offered.includes('search_ads')) return [];
      if (isBusy) return [button('Searching …', () => {}, { disabled: true })];
      if (confirming !== context)
        return [button(`More ads${price()} …`, () => confirm(context), { 'data-key': 'more' })];
      return [
        // It takes the focus, so that a key held down pays nothing. Nor does a double click.
        button('Cancel', () => confirm(), { 'data-key': 'more' }),
        button(`Search${price()}`, ({ detail }) => detail < 2 && void load(), {
          class: 'primary',
          'data-key': 'search',
        }),
      ];
    },
  };
}

function paidText(receipt: { charged: number | null; remaining: number | null } | undefined): string {
  const { charged = null, remaining = null } = receipt ?? {};
  const paid = charged === null ? 'The service did not say what it charged' : `${count(charged, 'credit')} charged`;
  return `${paid}${remaining === null ? '' : `, ${remaining} left`}.`;
}
