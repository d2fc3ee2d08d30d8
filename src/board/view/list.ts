import type { BoardAd } from '../payload.ts';
import { button, byId, el, refill } from './elements.ts';
import { barOf, isGrouped, messageOf, monthsOn, sorted, type TimeAxis, type View } from './state.ts';
import { badgeOf, count, monogramOf, month, number, runOf, stateOf, stateText, titleOf } from './words.ts';

/** Ads drawn at once; more are drawn when a reader comes near the end. */
const part = 60;

export interface AdList {
  draw(): void;
  /** The ad before or after another in the order shown. */
  neighbour(ad: BoardAd, step: 1 | -1): BoardAd | undefined;
  numberOf(id: string): number;
}

/** The cards or rows of the ads that the filters leave, in the chosen order. */
export function createList(view: View): AdList {
  const list = byId('list');
  const end = byId('end');
  const items = { cards: new Map<string, HTMLLIElement>(), timeline: new Map<string, HTMLLIElement>() };
  let drawnFor = view.state.axis;
  /** The first ad of each card, with all ads that the card stands for. */
  let shown: BoardAd[] = [];
  let groups = new Map<BoardAd, BoardAd[]>();
  let drawn = 0;
  const numbers = new Map<string, number>();
  let isWaiting = true;
  const numberOf = (id: string) => {
    const number = numbers.get(id) ?? numbers.size + 1;
    numbers.set(id, number);
    return number;
  };

  const itemOf = (ad: BoardAd): HTMLLIElement => {
    const { mode } = view.state;
    const known = items[mode].get(ad.id);
    const item = known ?? (mode === 'cards' ? adCard : adRow)(ad, view);
    if (known === undefined) items[mode].set(ad.id, item);
    mark(item, groups.get(ad) ?? [ad], view);
    return item;
  };
  const nextPart = () => {
    const next = shown.slice(drawn, drawn + part).map(itemOf);
    drawn += next.length;
    end.hidden = drawn >= shown.length;
    return next;
  };
  new ResizeObserver(() => drawAxis(view, view.state.mode === 'timeline' && shown.length > 0)).observe(list);
  new IntersectionObserver(
    ([entry]) => {
      if (entry?.isIntersecting && drawn < shown.length) list.append(...nextPart());
    },
    // The frame's own window: margins do not reach beyond it from another origin.
    { root: document, rootMargin: '1200px' },
  ).observe(end);

  return {
    draw: () => {
      const { sort, mode, axis, coming } = view.state;
      if (axis !== drawnFor) {
        for (const known of Object.values(items)) known.clear();
        // The first ones are drawn before all are sorted.
        if (isWaiting) numbers.clear();
        isWaiting = coming.length > 0;
      }
      drawnFor = axis;
      groups = groupsOf(sorted(view.state.shown, sort), isGrouped(view.state) ? messageOf : ({ id }) => id);
      shown = [...groups.keys()];
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
    numberOf,
  };
}

/** The first ad of each key in their order, with all that have it. */
function groupsOf(ads: readonly BoardAd[], keyOf: (ad: BoardAd) => string): Map<BoardAd, BoardAd[]> {
  const groups = new Map<string, BoardAd[]>();
  for (const ad of ads) {
    const group = groups.get(keyOf(ad));
    if (group) group.push(ad);
    else groups.set(keyOf(ad), [ad]);
  }
  return new Map([...groups.values()].map((group) => [group[0] as BoardAd, group]));
}

const nothingLeft = (view: View): HTMLElement =>
  el(
    'li',
    { class: 'nothing' },
    el('p', {}, 'No ad has all of these filters.'),
    button('Clear filters', () => view.update({ chosen: {} }), { class: 'primary' }),
  );

/** Marks a card with the number of ads that it stands for, and with whether one of them is selected. */
function mark(item: HTMLLIElement, group: readonly BoardAd[], { state }: View): void {
  const isSelected = group.some(({ id }) => state.selected.has(id));
  item.classList.toggle('selected', isSelected);
  item.classList.toggle('many', group.length > 1);
  const box = item.querySelector('input');
  if (box) box.checked = isSelected;
  const variants = item.querySelector<HTMLElement>('.variants');
  if (variants) variants.hidden = group.length === 1;
  variants?.replaceChildren(el('b', {}, `×${number(group.length)}`), ' variants');
}

/** Shows the ads of one message, each on a card of its own. */
function openMessage(view: View, message: string): void {
  view.update({ message });
  byId('chips').querySelector<HTMLElement>('[data-key="messages"]')?.focus();
}

function drawAxis({ state }: View, isShown: boolean): void {
  const axis = byId('axis');
  axis.hidden = !isShown;
  const labels = axis.firstElementChild;
  if (!isShown || !labels) return;
  const months = monthsOn(state.axis, Math.floor(labels.clientWidth / 84));
  const lines = months.map(({ at }) => `linear-gradient(var(--line), var(--line)) ${100 * at}% 0 / 1px 100% no-repeat`);
  byId('list').style.setProperty('--grid', lines.join() || 'none');
  const marks = months.map(({ at, name }) => {
    const tick = el('span', {}, month(name));
    tick.style.insetInlineStart = `${100 * at}%`;
    // The first begins where the axis does, and the last ends there.
    tick.style.translate = `${-100 * at}%`;
    return tick;
  });
  labels.replaceChildren(...marks);
}

/** An ad as a card. The whole card opens it, and its checkbox selects it. */
function adCard(ad: BoardAd, view: View): HTMLLIElement {
  const badge = badgeOf(ad);
  const title = titleOf(ad);
  const line = ad.firstLine === title ? undefined : ad.firstLine;
  const frame = frameOf(ad, view);
  frame.append(el('p', { class: 'poster', dir: 'auto', 'aria-hidden': 'true' }, line ?? title));
  return el(
    'li',
    { class: 'card', 'data-message': messageOf(ad) },
    el('div', { class: 'picture' }, frame, badge !== '' && el('span', { class: 'badge' }, badge)),
    runBar(ad, view.state.axis),
    el(
      'div',
      { class: 'top' },
      el('p', { class: 'page', dir: 'auto' }, ad.pageName ?? 'Unknown advertiser'),
      selectBox(ad, view),
    ),
    button(title, () => view.openAd(ad), { class: 'open', dir: 'auto', 'data-key': ad.id }),
    line !== undefined && el('p', { class: 'line', dir: 'auto' }, line),
    labelsOf(ad),
    runFacts(ad, view),
    variantsButton(ad, view),
  );
}

/** An ad as a row of the timeline. */
function adRow(ad: BoardAd, view: View): HTMLLIElement {
  return el(
    'li',
    { class: 'row', 'data-message': messageOf(ad) },
    selectBox(ad, view),
    el('div', { class: 'picture' }, frameOf(ad, view)),
    el(
      'div',
      { class: 'names' },
      el('p', { class: 'page', dir: 'auto' }, ad.isNew && el('b', {}, 'New '), ad.pageName ?? 'Unknown advertiser'),
      button(titleOf(ad), () => view.openAd(ad), { class: 'open', dir: 'auto', 'data-key': ad.id }),
      variantsButton(ad, view),
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

const variantsButton = (ad: BoardAd, view: View): HTMLElement =>
  button('', () => openMessage(view, messageOf(ad)), { class: 'variants', 'data-key': `variants ${ad.id}` });

/** Selecting a message selects the ad that is shown. Clearing it clears every ad of the message that is selected. */
function selectBox(ad: BoardAd, view: View): HTMLElement {
  const number = view.numberOf(ad.id);
  const box = el('input', { type: 'checkbox', 'aria-label': `Select ${number}: ${titleOf(ad)}` });
  box.addEventListener('change', () => {
    const { state } = view;
    const selected = new Set(state.selected);
    if (box.checked) selected.add(ad.id);
    else if (isGrouped(state)) {
      for (const other of state.shown) if (messageOf(other) === messageOf(ad)) selected.delete(other.id);
    } else selected.delete(ad.id);
    view.update({ selected });
  });
  return el('label', { class: 'pick' }, el('span', { class: 'number', 'aria-hidden': 'true' }, String(number)), box);
}

function runFacts(ad: BoardAd, view: View): HTMLElement {
  const { duplicates = 0 } = ad;
  return el(
    'p',
    { class: `facts ${stateOf(ad)}` },
    el('b', {}, runOf(ad)),
    el('span', {}, stateText(ad, view.state.asOf)),
    duplicates > 1 && el('span', { class: 'copies' }, count(duplicates, 'copy', 'copies')),
  );
}

export function runBar(ad: BoardAd, axis: TimeAxis): HTMLElement {
  const track = el('div', { class: `track ${stateOf(ad)}`, 'aria-hidden': 'true' });
  const bar = barOf(ad, axis);
  if (bar === undefined) return track;
  const run = el('i');
  run.style.insetInlineStart = `${100 * bar.start}%`;
  run.style.width = `${100 * bar.length}%`;
  track.append(run);
  return track;
}
