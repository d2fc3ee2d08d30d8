import type { BoardAd } from '../payload.ts';
import { button, byId, el } from './elements.ts';
import { type AdList, labelsOf, runBar } from './list.ts';
import { actionsOn } from './selection.ts';
import { problemOf, type View } from './state.ts';
import { badgeOf, country, day, label, monogramOf, number, round, runOf, stateOf, titleOf } from './words.ts';

/** The whole ad beside the others. A modal dialog keeps the focus, and gives it back. */
export function createDrawer(view: View, list: AdList): { open(ad: BoardAd): void } {
  const drawer = byId<HTMLDialogElement>('drawer');
  /** Whole ads by id. At first, the board has only the facts of an ad. */
  const whole = new Map<string, BoardAd>();
  /** The ad that is shown. */
  let current: BoardAd | undefined;

  const open = (ad: BoardAd) => {
    current = ad;
    const [before, after] = [list.neighbour(ad, -1), list.neighbour(ad, 1)];
    const step = (to: BoardAd | undefined) => to && open(to);
    drawer.onkeydown = ({ key }) => {
      if (key === 'ArrowLeft') step(before);
      if (key === 'ArrowRight') step(after);
    };
    const back = button('‹', () => step(before), { class: 'icon', 'aria-label': 'Previous ad' });
    const next = button('›', () => step(after), { class: 'icon', 'aria-label': 'Next ad' });
    back.disabled = before === undefined;
    next.disabled = after === undefined;
    const close = button('×', () => drawer.close(), { class: 'icon', 'aria-label': 'Close' });
    const picture = pictureOf(ad, view);
    // They stay while the rest comes, with what a reader has typed.
    const actions = el('div', { class: 'actions' }, ...actionsOn(view, () => [ad.id]));
    let rest: HTMLElement[] = [];
    const fill = (problem?: HTMLElement) => {
      for (const part of rest) part.remove();
      const known = whole.get(ad.id);
      const cards = known && cardsOf(known, view);
      rest = contentOf(known ?? ad, view, [actions, linkOf(known ?? ad, view)], [problem, cards]);
      drawer.append(...rest);
    };
    /** Reads the neighbouring ads too, so that a step to them shows them at once. */
    const read = async () => {
      const ids = [ad, after, before].flatMap((wanted) => (wanted && !whole.has(wanted.id) ? wanted.id : []));
      if (ids.length === 0) return;
      try {
        const { ads } = await view.server.ads({ ids, detail: 'full' });
        for (const read of ads) whole.set(read.id, read);
        if (current === ad) fill();
      } catch (error) {
        const again = button('Try again', () => void read());
        const text = el('p', {}, `The rest of the ad could not be read. ${problemOf(error)}`);
        if (current === ad && !whole.has(ad.id)) fill(el('div', { class: 'problem', role: 'alert' }, text, again));
      }
    };
    const number = el('span', { class: 'number' }, `Ad ${view.numberOf(ad.id)}`);
    drawer.replaceChildren(el('nav', {}, back, next, number, close), picture);
    fill();
    void read();
    drawer.scrollTop = 0;
    if (!drawer.open) drawer.showModal();
    close.focus();
  };
  // A click beside the drawer.
  drawer.addEventListener('click', ({ target }) => {
    if (target === drawer) drawer.close();
  });
  return { open };
}

type Part = HTMLElement | false | undefined;

function contentOf(ad: BoardAd, view: View, aboveCopy: Part[], belowCopy: Part[]): HTMLElement[] {
  const { headline, body, linkDescription } = ad;
  const title = el('h2', { id: 'drawer-title', dir: 'auto' }, titleOf(ad));
  const copy = [body, headline === titleOf(ad) ? undefined : headline, linkDescription]
    .filter((text) => text !== undefined)
    .map((text) => el('p', { class: 'copy', dir: 'auto' }, text));
  return [
    el('p', { class: 'page', dir: 'auto' }, ad.pageName ?? 'Unknown advertiser'),
    title,
    ...aboveCopy,
    ...copy,
    ...belowCopy,
    runBar(ad, view.state.axis),
    labelsOf(ad),
    factList(ad),
  ].filter((part) => part !== undefined && part !== false);
}

function pictureOf(ad: BoardAd, { pictures }: View): HTMLElement {
  const { initial, hue } = monogramOf(ad);
  const badge = badgeOf(ad);
  const frame = pictures.frame(ad.id, hue, initial);
  return el('div', { class: 'picture large' }, frame, badge !== '' && el('span', { class: 'badge' }, badge));
}

function cardsOf(ad: BoardAd, { pictures }: View): HTMLElement | undefined {
  if (ad.cards === undefined || ad.cards.length === 0) return undefined;
  const { hue } = monogramOf(ad);
  const cards = ad.cards.map(({ title, body }, index) =>
    el(
      'li',
      {},
      el('div', { class: 'picture' }, pictures.frame(`${ad.id}#${index + 1}`, hue, String(index + 1))),
      el(
        'div',
        {},
        el('b', { dir: 'auto' }, title ?? `Card ${index + 1}`),
        body !== undefined && body !== ad.body && el('p', { class: 'copy', dir: 'auto' }, body),
      ),
    ),
  );
  return el('ol', { class: 'ad-cards', 'aria-label': 'Cards' }, ...cards);
}

function linkOf({ landingUrl }: BoardAd, view: View): HTMLElement | false {
  if (landingUrl === undefined || !view.can('openLinks')) return false;
  const { hostname } = new URL(landingUrl);
  const open = () =>
    view.host
      .request('ui/open-link', { url: landingUrl })
      .catch((error) => view.update({ status: `${hostname} was not opened: ${problemOf(error)}` }));
  return button(`Open ${hostname} ↗`, () => void open(), { class: 'link' });
}

function factList(ad: BoardAd): HTMLElement {
  const { startedAt, lastSeenAt, endDate, countries, publisherPlatform, audienceReach, duplicates } = ad;
  const facts: [string, string | undefined][] = [
    ['Ran', [runOf(ad), stateOf(ad) || 'unknown whether it still runs'].filter(Boolean).join(', ')],
    ['Started', startedAt && day(startedAt)],
    ['Last seen', lastSeenAt && day(lastSeenAt)],
    [ad.active === false ? 'Ended' : 'Ends', endDate && day(endDate)],
    ['Call to action', ad.ctaType && label(ad.ctaType)],
    ['Leads to', ad.landingDomain],
    ['Countries', countries?.map(country).join(', ')],
    ['Platforms', publisherPlatform?.map(label).join(', ')],
    ['Reach', audienceReach === undefined ? undefined : round(audienceReach)],
    ['Spend, estimated', spendOf(ad)],
    ['Copies', duplicates === undefined ? undefined : number(duplicates)],
    ['Id', ad.id],
  ];
  const shown = facts.flatMap(([name, value]) => (value ? [el('dt', {}, name), el('dd', { dir: 'auto' }, value)] : []));
  return el('dl', {}, ...shown);
}

function spendOf({ adSpendMin, adSpendMax, currency = '' }: BoardAd): string | undefined {
  const range = [...new Set([adSpendMin, adSpendMax])].filter((value) => value !== undefined);
  return range.length === 0 ? undefined : `${range.map(number).join('–')} ${currency}`.trim();
}
