import { button } from './elements.ts';
import { problemOf, type View } from './state.ts';
import { count } from './words.ts';

/** The next page of a search. What costs credits takes a second click, on a button that names the price. */
export function createMore(view: View): { buttons(): HTMLElement[] } {
  let isConfirming = false;
  let isBusy = false;

  const price = () => {
    const { nextCredits } = view.state.context;
    return nextCredits === undefined ? 'at an unknown price' : `for about ${count(nextCredits, 'credit')}`;
  };
  const confirm = (starts: boolean) => {
    isConfirming = starts;
    view.update({});
  };
  const load = async () => {
    isConfirming = false;
    isBusy = true;
    view.update({ status: 'Searching …' });
    try {
      const { args, context } = view.state;
      const next = await view.server.search({ ...args, cursor: context.cursor });
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
      if (context.nextCredits === 0) return [button('More ads, free', () => void load(), { 'data-key': 'more' })];
      if (!isConfirming) return [button(`More ads ${price()} …`, () => confirm(true), { 'data-key': 'more' })];
      return [
        button('Cancel', () => confirm(false), { 'data-key': 'cancel' }),
        button(`Search ${price()}`, () => void load(), { class: 'primary', 'data-key': 'more' }),
      ];
    },
  };
}

function paidText(receipt: { charged: number | null; remaining: number | null } | undefined): string {
  const { charged = null, remaining = null } = receipt ?? {};
  const paid = charged === null ? 'The service did not say what it charged' : `${count(charged, 'credit')} charged`;
  return `${paid}${remaining === null ? '' : `, ${remaining} left`}.`;
}
