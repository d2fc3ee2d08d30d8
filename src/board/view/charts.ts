import type { BoardAd } from '../payload.ts';
import { button, byId, el, refill, svg } from './elements.ts';
import { choosable, countsOf, facets, toggled, type View, wholeOf } from './state.ts';
import { count, label, month, number } from './words.ts';

/** With fewer ads, a reader sees everything at a glance, and no chart is drawn. */
const minAds = 8;

/** Charts of the ads that the filters leave, and a note where these are only a part of all ads. */
export function drawCharts(view: View): void {
  const { state } = view;
  const { ads, shown, asOf } = state;
  const choose: Choose = (facet, value) => view.update({ chosen: toggled(state.chosen, facet, value) });
  const charts = byId('charts');
  const whole = ads.length < minAds ? undefined : wholeOf(state);
  byId('part').textContent = whole === undefined ? '' : partText(shown.length, whole);
  charts.hidden = choosable(state).length < minAds;
  // Where nothing is left they stay as they were, so that what is below does not jump.
  charts.classList.toggle('old', shown.length === 0);
  if (charts.hidden || shown.length === 0) return;
  // Where they are wider than the frame, a keyboard has to scroll them.
  charts.tabIndex = isNarrow() ? 0 : -1;
  const all = [
    launches(shown, asOf, choose),
    runs(shown),
    shares('format', shown, choose),
    shares('cta', shown, choose),
  ];
  refill(charts, ...all.filter((chart) => chart !== undefined));
}

const partText = (shown: number, whole: number): string =>
  whole === Number.POSITIVE_INFINITY
    ? `Charts of the ${count(shown, 'ad')} shown. There are more, which may look different.`
    : `Charts of the ${count(shown, 'ad')} shown, out of ${number(whole)}. The others may look different.`;

/** Whether a bar is too narrow for a finger: then only the chips filter. */
const isNarrow = () => matchMedia('(max-width: 640px)').matches;

/** Adds or removes a filter by a value. */
type Choose = (facet: 'format' | 'cta' | 'month', value: string) => void;

interface Column {
  name: string;
  ads: number;
  /** The month has not ended. */
  isPart?: boolean;
  onClick?: () => void;
}

/** Ads by the month they started, in at most two years. Those of earlier months stand in the first column. */
function launches(ads: readonly BoardAd[], asOf: string, choose: Choose): HTMLElement | undefined {
  const months = ads.map(({ startedAt }) => monthNumber(startedAt)).filter((month) => !Number.isNaN(month));
  if (months.length === 0) return undefined;
  const earliest = months.reduce((least, month) => Math.min(least, month));
  const latest = months.reduce((most, month) => Math.max(most, month));
  const to = Math.min(latest, monthNumber(asOf) || latest);
  // At least a year, so that a few months do not look like many.
  const length = Math.min(24, Math.max(12, 4 * Math.ceil((to - earliest + 1) / 4)));
  const now = monthNumber(asOf);
  const columns = Array.from({ length }, (_, index): Column => {
    const at = to - length + 1 + index;
    const value = monthText(at);
    const name = at === now ? `${month(value)}, so far` : month(value);
    return { name, ads: 0, isPart: at === now, onClick: () => choose('month', value) };
  });
  for (const month of months) {
    const column = columns[Math.min(length - 1, Math.max(0, month - to + length - 1))];
    if (column) column.ads++;
  }
  const [first, last] = [columns[0], columns[length - 1]];
  // What holds several months filters by none.
  if (first && earliest <= to - length) Object.assign(first, { name: `${first.name} or earlier`, onClick: undefined });
  if (last && latest > to) Object.assign(last, { name: `${last.name} or later`, onClick: undefined });
  const peak = columns.reduce((top, column) => Math.max(top, column.ads), 0);
  // Each below the end of its quarter of the columns.
  const quarters = [1, 2, 3, 4].map((quarter) => month(monthText(to - length + (quarter * length) / 4)));
  const isEarlier = first?.name.endsWith('earlier');
  const note = unknown(ads.length - months.length) || `peak ${number(peak)}`;
  const ends = isEarlier ? ['earlier', ...quarters.slice(1)] : quarters;
  return chart('Launches by month', note, columnChart(columns), ends, 'months');
}

/** Months since the year 0; NaN where there is no date. */
function monthNumber(iso: string | undefined): number {
  return iso === undefined ? Number.NaN : Number(iso.slice(0, 4)) * 12 + Number(iso.slice(5, 7)) - 1;
}

const monthText = (at: number): string =>
  `${String(Math.floor(at / 12)).padStart(4, '0')}-${String((at % 12) + 1).padStart(2, '0')}`;

const unknown = (ads: number): string => (ads > 0 ? `${number(ads)} unknown` : '');

function runs(ads: readonly BoardAd[]): HTMLElement | undefined {
  const days = ads.flatMap(({ daysRunning }) => daysRunning ?? []).sort((a, b) => a - b);
  const max = days.at(-1);
  if (max === undefined) return undefined;
  const width = Math.max(1, Math.ceil((max + 1) / 12));
  const columns = Array.from({ length: Math.ceil((max + 1) / width) }, (_, index) => ({
    name: width === 1 ? count(index, 'day') : `${index * width} to ${(index + 1) * width - 1} days`,
    ads: 0,
  }));
  for (const day of days) {
    const column = columns[Math.floor(day / width)];
    if (column) column.ads++;
  }
  const ends = ['0', unknown(ads.length - days.length), number(max)];
  return chart('Days running', `median ${number(medianOf(days))}`, columnChart(columns, 'run'), ends);
}

/** The median. Of an even number of values, it lies halfway between the two in the middle. */
function medianOf(sorted: readonly number[]): number {
  const middle = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(middle)] ?? 0) + (sorted[Math.ceil(middle)] ?? 0)) / 2;
}

const maxShares = 4;

function shares(facet: 'format' | 'cta', ads: readonly BoardAd[], choose: Choose): HTMLElement | undefined {
  const { title } = facets[facet];
  const sentValue = ({ displayFormat, ctaType }: BoardAd) => (facet === 'format' ? displayFormat : ctaType);
  const counts = [...countsOf(ads.map(sentValue))].sort(([, a], [, b]) => b - a);
  if (counts.length === 0) return undefined;
  const named = counts.length <= maxShares ? maxShares : maxShares - 1;
  const sum = (values: readonly [string, number][]) => values.reduce((all, [, ads]) => all + ads, 0);
  const row = (name: string, part: number, value?: string) => {
    const bar = svg('svg', { viewBox: '0 0 100 6', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
    const width = (100 * part) / ads.length;
    bar.append(svg('rect', { width: 100, height: 6 }), svg('rect', { class: 'bar', width, height: 6 }));
    const key = `share ${facet} ${value}`;
    const parts = [el('span', { class: 'name' }, name), bar, el('b', {}, number(part))];
    if (value === undefined || isNarrow()) return el('li', {}, el('div', {}, ...parts));
    const row = button('', () => choose(facet, value), { 'data-key': key, title: `Show ${name} alone` });
    row.append(...parts);
    return el('li', {}, row);
  };
  const rows = counts.slice(0, named).map(([value, part]) => row(label(value), part, value));
  const others = sum(counts.slice(named));
  const missing = ads.length - sum(counts);
  if (others > 0) rows.push(row('Others', others));
  if (missing > 0) rows.push(row('Not stated', missing));
  return el('figure', { class: 'chart' }, el('figcaption', {}, title), el('ul', { class: 'shares' }, ...rows));
}

/** Columns side by side. A screen reader gets them as one sentence. */
function columnChart(columns: readonly Column[], kind = 'launch'): SVGElement {
  const max = columns.reduce((top, { ads }) => Math.max(top, ads), 1);
  const width = 100 / columns.length;
  const gap = Math.min(1.2, width / 5);
  const sentence = columns.filter(({ ads }) => ads > 0).map(({ name, ads }) => `${name}: ${ads}`);
  const bars = columns.map(({ name, ads, onClick, isPart }, index) => {
    const height = ads === 0 ? 0.6 : Math.max(1.5, (40 * ads) / max);
    const box = { x: index * width + gap / 2, y: 40 - height, width: width - gap, height };
    const style = [ads === 0 ? 'none' : kind, onClick && 'filters', isPart && 'part'].filter(Boolean).join(' ');
    const bar = svg('rect', { class: style, ...box }, svg('title', {}, `${name}: ${number(ads)}`));
    // The chips do the same for a keyboard.
    if (onClick && ads > 0) bar.addEventListener('click', onClick);
    return bar;
  });
  return svg(
    'svg',
    {
      class: 'columns',
      viewBox: '0 0 100 40',
      preserveAspectRatio: 'none',
      role: 'img',
      'aria-label': sentence.join(', '),
    },
    ...bars,
  );
}

const chart = (title: string, note: string, figure: SVGElement, ends: readonly string[], kind = ''): HTMLElement =>
  el(
    'figure',
    { class: 'chart' },
    el('figcaption', {}, title, el('span', {}, note)),
    figure,
    el('p', { class: `ends ${kind}` }, ...ends.filter(Boolean).map((text) => el('span', {}, text))),
  );
