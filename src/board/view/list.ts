import type { BoardAd } from '../payload.ts';
import { button, byId, el, refill } from './elements.ts';
import type { Server } from './host.ts';
import type { View } from './state.ts';
import { formatOf, monogramOf, number, runOf, shortMonth, stateOf, stateText, titleOf } from './words.ts';

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

const descending = (value: (ad: BoardAd) => number | string | undefined) => (a: BoardAd, b: BoardAd) => {
  const [left, right] = [value(a), value(b)];
  if (left === right) return 0;
  if (left === undefined || right === undefined) return left === undefined ? 1 : -1;
  return left < right ? 1 : -1;
};

const names = new Intl.Collator('en');

/** Ways to order ads, with their names. Ads that lack a value come last. */
const orders = {
  relevance: ['As listed', () => 0],
  days: ['Days running', descending(({ daysRunning }) => daysRunning)],
  newest: ['Newest first', descending(({ startedAt }) => startedAt)],
  duplicates: ['Copies of the ad', descending(({ duplicates }) => duplicates)],
  reach: ['Reach', descending(({ audienceReach }) => audienceReach)],
  advertiser: ['Advertiser', (a: BoardAd, b: BoardAd) => names.compare(a.pageName ?? '￿', b.pageName ?? '￿')],
} satisfies Record<string, [string, (a: BoardAd, b: BoardAd) => number]>;

export type SortName = keyof typeof orders;
export const sortNames = Object.keys(orders) as SortName[];
export const sortTitle = (name: SortName): string => orders[name][0];
export const sorted = (ads: readonly BoardAd[], name: SortName): BoardAd[] => [...ads].sort(orders[name][1]);

/** An ad as a card. The whole card opens it, and its checkbox selects it. */
export function adCard(ad: BoardAd, view: View): HTMLLIElement {
  const format = formatOf(ad);
  const title = titleOf(ad);
  const line = ad.firstLine === title ? undefined : ad.firstLine;
  return el(
    'li',
    { class: 'card', 'data-ad': ad.id },
    el('div', { class: 'picture' }, frameOf(ad, view), format !== '' && el('span', { class: 'badge' }, format)),
    selectBox(ad, view),
    runBar(ad, view.state.axis),
    el('p', { class: 'page', dir: 'auto' }, ad.pageName ?? 'Unknown advertiser'),
    button(title, () => view.openAd(ad), { class: 'open', dir: 'auto', 'data-key': ad.id }),
    line !== undefined && el('p', { class: 'line', dir: 'auto' }, line),
    runFacts(ad),
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
      el('p', { class: 'page', dir: 'auto' }, ad.pageName ?? 'Unknown advertiser'),
      button(titleOf(ad), () => view.openAd(ad), { class: 'open', dir: 'auto', 'data-key': ad.id }),
    ),
    runBar(ad, view.state.axis),
    runFacts(ad),
  );
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

function runFacts(ad: BoardAd): HTMLElement {
  const { duplicates = 0 } = ad;
  return el(
    'p',
    { class: `facts ${stateOf(ad)}` },
    el('b', {}, runOf(ad)),
    el('span', {}, stateText(ad)),
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

/** One axis for the runs of all ads, so that bars can be compared. */
export interface TimeAxis {
  from: number;
  to: number;
}

/** A run as fractions of the axis; undefined if its dates are not known. */
export interface Bar {
  start: number;
  length: number;
  /** It began before the axis does. */
  isCut: boolean;
}

const DAY = 86_400_000;

export const dayOf = (iso: string | undefined): number => Date.parse(iso?.slice(0, 10) ?? '');

/** When an ad was last known to run. */
const endOf = ({ endDate, lastSeenAt, active }: BoardAd): number => dayOf(active === false ? endDate : lastSeenAt);

/** Ends today at the latest, where that is known. Begins with the first ad, or after the oldest twentieth where a few old ads would squeeze all the others. */
export function axisOf(ads: readonly BoardAd[], today: string): TimeAxis {
  const end = dayOf(today) || Number.POSITIVE_INFINITY;
  const isPast = (time: number) => time <= end;
  const starts = ads.map(({ startedAt }) => dayOf(startedAt)).filter(isPast);
  const ends = ads.map(endOf).filter(isPast);
  starts.sort((a, b) => a - b);
  const to = ends.reduce((latest, time) => Math.max(latest, time), starts.at(-1) ?? 0);
  const [first = to] = starts;
  const most = starts[Math.floor(starts.length / 20)] ?? to;
  const from = to - first > 2 * (to - most) ? most : first;
  return { from: Math.min(from, to - 7 * DAY), to };
}

export function barOf(ad: BoardAd, { from, to }: TimeAxis): Bar | undefined {
  const start = dayOf(ad.startedAt);
  const end = Math.max(start, endOf(ad) || start);
  if (Number.isNaN(start) || end < from || start > to) return undefined;
  const at = (time: number) => Math.min(1, Math.max(0, (time - from) / (to - from)));
  return { start: at(start), length: at(end) - at(start), isCut: start < from };
}

/** The first days of months on the axis, at most twelve of them. */
export function monthsOn({ from, to }: TimeAxis): { at: number; name: string }[] {
  const first = new Date(from);
  const all: { at: number; name: string }[] = [];
  for (let month = first.getUTCMonth() + 1; all.length < 600; month++) {
    const time = Date.UTC(first.getUTCFullYear(), month);
    if (time > to) break;
    all.push({ at: (time - from) / (to - from), name: new Date(time).toISOString().slice(0, 7) });
  }
  const step = Math.ceil(all.length / 12);
  return all.filter((_, index) => index % step === 0);
}

/** Pictures asked for in one call, and calls under way at once. */
const perCall = 12;
const maxCalls = 2;

export interface Pictures {
  /** A frame that fills with the picture of that id when it comes into sight. */
  frame(id: string, hue: number, initial: string): HTMLElement;
}

/**
 * Asks for pictures a few at a time, those in sight last asked first: a reader has scrolled on from the others. A picture
 * of a call that failed is asked for again when its frame next comes into sight.
 */
export function createPictures(server: Pick<Server, 'pictures'>): Pictures {
  const known = new Map<string, string | undefined>();
  const frames = new Map<string, Set<HTMLElement>>();
  let waiting: string[] = [];
  let calls = 0;

  const show = (id: string, src: string | undefined) => {
    known.set(id, src);
    for (const frame of frames.get(id) ?? []) {
      observer.unobserve(frame);
      fill(frame, src);
    }
    frames.delete(id);
  };
  const askNext = async (): Promise<void> => {
    if (calls >= maxCalls || waiting.length === 0) return;
    const ids = waiting.slice(-perCall).reverse();
    waiting = waiting.slice(0, -perCall);
    calls++;
    try {
      const { pictures, left } = await server.pictures(ids);
      for (const { id, src, isLate } of pictures) {
        if (isLate) frames.delete(id);
        else show(id, src?.startsWith('data:image/jpeg;base64,') ? src : undefined);
      }
      if (pictures.length === 0) throw new Error('The same call would be made for ever.');
      waiting.push(...left.toReversed());
    } catch {
      for (const id of ids) frames.delete(id);
    }
    calls--;
    void askNext();
  };
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        const frame = target as HTMLElement;
        const { id = '' } = frame.dataset;
        if (!known.has(id) && !frames.has(id)) waiting.push(id);
        frames.set(id, (frames.get(id) ?? new Set()).add(frame));
        if (known.has(id)) show(id, known.get(id));
      }
      for (let call = 0; call < maxCalls; call++) void askNext();
    },
    { root: document, rootMargin: '300px' },
  );
  return {
    frame: (id, hue, initial) => {
      const frame = el('div', { class: 'frame', 'data-id': id }, el('span', { 'aria-hidden': 'true' }, initial));
      frame.style.setProperty('--hue', String(hue));
      observer.observe(frame);
      return frame;
    },
  };
}

function fill(frame: HTMLElement, src: string | undefined): void {
  if (src === undefined || frame.querySelector('img')) return;
  const image = el('img', { alt: '', src });
  image.addEventListener('load', () => frame.classList.add('filled'), { once: true });
  frame.append(image);
}
