import type { BoardAd } from '../payload.ts';
import { button, byId, el, refill } from './elements.ts';
import { barOf, monthsOn, sorted, type TimeAxis, type View } from './state.ts';
import { badgeOf, monogramOf, number, runOf, shortMonth, stateOf, stateText, titleOf } from './words.ts';

/** Ads drawn at once; more are drawn when a reader comes near the end. */
const part = 60;

export interface AdList {
  draw(): void;
  /** The ad before or after another in the order shown. */
  neighbour(ad: BoardAd, step: 1 | -1): BoardAd | undefined;
}

/** The cards or rows of the ads that the filters leave, in the chosen order. */
export function createList(view: View): AdList {
  const list = byId('list');
  const end = byId('end');
  const items = { cards: new Map<string, HTMLLIElement>(), timeline: new Map<string, HTMLLIElement>() };
  let drawnFor = view.state.axis;
  let shown: BoardAd[] = [];
  let drawn = 0;

  const itemOf = (ad: BoardAd): HTMLLIElement => {
    const { mode } = view.state;
    const known = items[mode].get(ad.id);
    const item = known ?? (mode === 'cards' ? adCard : adRow)(ad, view);
    if (known === undefined) items[mode].set(ad.id, item);
    mark(item, view.state.selected.has(ad.id));
    return item;
  };
  const nextPart = () => {
    const next = shown.slice(drawn, drawn + part).map(itemOf);
    drawn += next.length;
    end.hidden = drawn >= shown.length;
    return next;
  };
  new IntersectionObserver(
    ([entry]) => {
      if (entry?.isIntersecting && drawn < shown.length) list.append(...nextPart());
    },
    // The frame's own window: margins do not reach beyond it from another origin.
    { root: document, rootMargin: '1200px' },
  ).observe(end);

  return {
    draw: () => {
      const { sort, mode, axis } = view.state;
      if (axis !== drawnFor) for (const known of Object.values(items)) known.clear();
      drawnFor = axis;
      shown = sorted(view.state.shown, sort);
      // As many as were drawn before, so that a change leaves the reader where they are.
      const before = Math.min(drawn, shown.length);
      drawn = 0;
      const first: HTMLLIElement[] = nextPart();
      while (drawn < before && list.className === mode && drawn < 4 * part) first.push(...nextPart());
      list.className = mode;
      const isEmpty = shown.length === 0 && view.state.ads.length > 0;
      refill(list, ...(isEmpty ? [nothingLeft(view)] : first));
      drawAxis(view, mode === 'timeline' && shown.length > 0);
    },
    neighbour: (ad, step) => shown[shown.indexOf(ad) + step],
  };
}

function nothingLeft(view: View): HTMLElement {
  const clear = () => view.update({ chosen: {} });
  return el(
    'li',
    { class: 'nothing' },
    el('p', {}, 'No ad has all of these filters.'),
    button('Clear filters', clear, { class: 'primary', 'data-key': 'clear all' }),
  );
}

function mark(item: HTMLLIElement, isSelected: boolean): void {
  item.classList.toggle('selected', isSelected);
  const box = item.querySelector('input');
  if (box) box.checked = isSelected;
}

function drawAxis({ state }: View, isShown: boolean): void {
  const axis = byId('axis');
  axis.hidden = !isShown;
  if (!isShown) return;
  const months = monthsOn(state.axis);
  const lines = months.map(({ at }) => `linear-gradient(var(--line), var(--line)) ${100 * at}% 0 / 1px 100% no-repeat`);
  byId('list').style.setProperty('--grid', lines.join() || 'none');
  const marks = months.map(({ at, name }) => {
    const tick = el('span', {}, shortMonth(name));
    tick.style.insetInlineStart = `${100 * at}%`;
    return tick;
  });
  axis.firstElementChild?.replaceChildren(...marks);
}

/** An ad as a card. The whole card opens it, and its checkbox selects it. */
export function adCard(ad: BoardAd, view: View): HTMLLIElement {
  const badge = badgeOf(ad);
  const title = titleOf(ad);
  const line = ad.firstLine === title ? undefined : ad.firstLine;
  return el(
    'li',
    { class: 'card', 'data-ad': ad.id },
    el('div', { class: 'picture' }, frameOf(ad, view), badge !== '' && el('span', { class: 'badge' }, badge)),
    selectBox(ad, view),
    runBar(ad, view.state.axis),
    el('p', { class: 'page', dir: 'auto' }, ad.pageName ?? 'Unknown advertiser'),
    button(title, () => view.openAd(ad), { class: 'open', dir: 'auto', 'data-key': ad.id }),
    line !== undefined && el('p', { class: 'line', dir: 'auto' }, line),
    labelsOf(ad),
    runFacts(ad, view),
  );
}

/** An ad as a row of the timeline. */
export function adRow(ad: BoardAd, view: View): HTMLLIElement {
  return el(
    'li',
    { class: 'row', 'data-ad': ad.id },
    selectBox(ad, view),
    el('div', { class: 'picture' }, frameOf(ad, view)),
    el(
      'div',
      { class: 'names' },
      el('p', { class: 'page', dir: 'auto' }, ad.isNew && el('b', {}, 'New '), ad.pageName ?? 'Unknown advertiser'),
      button(titleOf(ad), () => view.openAd(ad), { class: 'open', dir: 'auto', 'data-key': ad.id }),
    ),
    runBar(ad, view.state.axis),
    runFacts(ad, view),
  );
}

export function labelsOf({ labels = [] }: BoardAd): HTMLElement | false {
  const texts = labels.map(({ label, value }) => (value === undefined ? label : `${label}: ${value}`));
  return labels.length > 0 && el('p', { class: 'labels' }, ...texts.map((text) => el('span', { dir: 'auto' }, text)));
}

function frameOf(ad: BoardAd, { pictures }: View): HTMLElement {
  const { initial, hue } = monogramOf(ad);
  return pictures.frame(ad.id, hue, initial);
}

function selectBox(ad: BoardAd, view: View): HTMLElement {
  const box = el('input', { type: 'checkbox', 'aria-label': `Select: ${titleOf(ad)}` });
  box.checked = view.state.selected.has(ad.id);
  box.addEventListener('change', () => {
    const selected = new Set(view.state.selected);
    if (box.checked) selected.add(ad.id);
    else selected.delete(ad.id);
    view.update({ selected });
  });
  return el('label', { class: 'pick' }, box);
}

function runFacts(ad: BoardAd, view: View): HTMLElement {
  const { duplicates = 0 } = ad;
  return el(
    'p',
    { class: `facts ${stateOf(ad)}` },
    el('b', {}, runOf(ad)),
    el('span', {}, stateText(ad, view.state.asOf)),
    duplicates > 1 && el('span', { class: 'copies', title: 'Copies of this ad' }, `×${number(duplicates)}`),
  );
}

export function runBar(ad: BoardAd, axis: TimeAxis): HTMLElement {
  const track = el('div', { class: `track ${stateOf(ad)}`, 'aria-hidden': 'true' });
  const bar = barOf(ad, axis);
  if (bar === undefined) return track;
  const run = el('i', { class: bar.isCut ? 'cut' : undefined });
  run.style.insetInlineStart = `${100 * bar.start}%`;
  run.style.width = `${100 * bar.length}%`;
  track.append(run);
  return track;
}
