import type { BoardAd } from '../payload.ts';
import { adCard, adRow } from './cards.ts';
import { byId, el, refill } from './elements.ts';
import { filtered } from './facets.ts';
import { sorted } from './sorting.ts';
import type { View } from './state.ts';
import { monthsOn } from './time-axis.ts';
import { shortMonth } from './words.ts';

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
      const { ads, chosen, sort, mode, axis } = view.state;
      if (axis !== drawnFor) for (const known of Object.values(items)) known.clear();
      drawnFor = axis;
      shown = sorted(filtered(ads, chosen), sort);
      // As many as were drawn before, so that a change leaves the reader where they are.
      const before = Math.min(drawn, shown.length);
      drawn = 0;
      const first: HTMLLIElement[] = nextPart();
      while (drawn < before && list.className === mode && drawn < 4 * part) first.push(...nextPart());
      list.className = mode;
      refill(list, ...first);
      drawAxis(view, mode === 'timeline' && shown.length > 0);
    },
    neighbour: (ad, step) => shown[shown.indexOf(ad) + step],
  };
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
