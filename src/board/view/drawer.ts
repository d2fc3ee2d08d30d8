import type { BoardAd } from '../payload.ts';
import { formatOf, monogramOf, runOf, stateOf, titleOf } from './ad-words.ts';
import { askAbout } from './ask.ts';
import { runBar } from './cards.ts';
import { button, byId, el } from './elements.ts';
import type { AdList } from './list.ts';
import { canSave, openSave } from './save.ts';
import { problemOf, type View } from './state.ts';
import { country, day, label, number, round } from './words.ts';

/** The whole ad beside the others. A modal dialog keeps the focus, and gives it back. */
export function createDrawer(view: View, list: AdList): { open(ad: BoardAd): void } {
  const drawer = byId<HTMLDialogElement>('drawer');
  const open = (ad: BoardAd) => {
    const step = (by: 1 | -1) => {
      const next = list.neighbour(ad, by);
      if (next) open(next);
    };
    drawer.onkeydown = ({ key }) => {
      if (key === 'ArrowLeft') step(-1);
      if (key === 'ArrowRight') step(1);
    };
    const back = button('‹', () => step(-1), { class: 'icon', 'aria-label': 'Previous ad' });
    const next = button('›', () => step(1), { class: 'icon', 'aria-label': 'Next ad' });
    back.disabled = list.neighbour(ad, -1) === undefined;
    next.disabled = list.neighbour(ad, 1) === undefined;
    const close = button('×', () => drawer.close(), { class: 'icon', 'aria-label': 'Close' });
    drawer.replaceChildren(el('nav', {}, back, next, close), ...contentOf(ad, view));
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

function contentOf(ad: BoardAd, view: View): HTMLElement[] {
  const { headline, body, linkDescription } = ad;
  const title = el('h2', { id: 'drawer-title', dir: 'auto' }, titleOf(ad));
  const copy = [body, headline === titleOf(ad) ? undefined : headline, linkDescription]
    .filter((text) => text !== undefined)
    .map((text) => el('p', { class: 'copy', dir: 'auto' }, text));
  return [
    pictureOf(ad, view),
    el('p', { class: 'page', dir: 'auto' }, ad.pageName ?? 'Unknown advertiser'),
    title,
    actionsOf(ad, view),
    ...copy,
    cardsOf(ad, view),
    runBar(ad, view.state.axis),
    factsOf(ad),
  ].filter((part) => part !== undefined);
}

function pictureOf(ad: BoardAd, { pictures }: View): HTMLElement {
  const { initial, hue } = monogramOf(ad);
  const format = formatOf(ad);
  const badge = format !== '' && el('span', { class: 'badge' }, format);
  return el('div', { class: 'picture large' }, pictures.frame(ad.id, hue, initial), badge);
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

function actionsOf(ad: BoardAd, view: View): HTMLElement {
  const actions = el(
    'div',
    { class: 'actions' },
    button('Ask about it', () => askAbout(view, [ad.id]), { class: 'primary' }),
  );
  if (canSave(view)) actions.append(button('Save', () => openSave(view, [ad.id])));
  const { landingUrl } = ad;
  if (landingUrl === undefined) return actions;
  const { hostname } = new URL(landingUrl);
  const open = () =>
    view.host
      .request('ui/open-link', { url: landingUrl })
      .catch((error) => view.update({ status: `${hostname} was not opened: ${problemOf(error)}` }));
  actions.append(button(`Open ${hostname} ↗`, () => void open(), { class: 'link' }));
  return actions;
}

function factsOf(ad: BoardAd): HTMLElement {
  const { startedAt, lastSeenAt, endDate, countries, publisherPlatform, audienceReach, duplicates } = ad;
  const facts: [string, string | undefined][] = [
    ['Ran', [runOf(ad), stateOf(ad)].filter(Boolean).join(', ')],
    ['Started', startedAt && day(startedAt)],
    ['Last seen', lastSeenAt && day(lastSeenAt)],
    ['Ends', endDate && day(endDate)],
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
