import type { BoardAd } from '../payload.ts';
import { byId, el, svg } from './elements.ts';
import { filtered } from './facets.ts';
import type { View } from './state.ts';
import { count, label, month, number } from './words.ts';

/** What the ads that the filters leave look like together. */
export function drawCharts({ state }: View): void {
  const ads = filtered(state.ads, state.chosen);
  const charts = byId('charts');
  charts.hidden = state.ads.length < 2;
  if (charts.hidden) return;
  // Where they are wider than the frame, a keyboard has to scroll them.
  charts.tabIndex = matchMedia('(max-width: 640px)').matches ? 0 : -1;
  const shown = [
    launches(ads, state.asOf.slice(0, 7)),
    runs(ads),
    shares('Format', ads, 'displayFormat'),
    shares('Call to action', ads, 'ctaType'),
  ];
  charts.replaceChildren(...shown.filter((chart) => chart !== undefined));
}

interface Column {
  name: string;
  ads: number;
}

function launches(ads: readonly BoardAd[], thisMonth: string): HTMLElement | undefined {
  const counts = countsOf(ads.map(({ startedAt }) => startedAt?.slice(0, 7)));
  const names = [...counts.keys()].filter((name) => name <= thisMonth).sort();
  const last = names.at(-1);
  if (last === undefined) return undefined;
  const columns = monthsUpTo(last, names[0] ?? last).map((name) => ({ name, ads: counts.get(name) ?? 0 }));
  const peak = columns.reduce((top, column) => (column.ads > top.ads ? column : top));
  return chart({
    title: 'Launches by month',
    note: `peak ${number(peak.ads)}`,
    figure: columnChart(columns, (name) => month(name)),
    ends: [month(columns[0]?.name ?? last), month(last)],
  });
}

/** The months from the first one on: at least a year, so that a few do not look like many, and at most two. */
function monthsUpTo(last: string, first: string): string[] {
  const numberOf = (name: string) => Number(name.slice(0, 4)) * 12 + Number(name.slice(5, 7)) - 1;
  const to = numberOf(last);
  const length = Math.min(24, Math.max(12, to - numberOf(first) + 1));
  const months = Array.from({ length }, (_, index) => to - index).reverse();
  return months.map((at) => `${Math.floor(at / 12)}-${String((at % 12) + 1).padStart(2, '0')}`);
}

function runs(ads: readonly BoardAd[]): HTMLElement | undefined {
  const days = ads.flatMap(({ daysRunning }) => daysRunning ?? []).sort((a, b) => a - b);
  const [max, median] = [days.at(-1), days[Math.floor(days.length / 2)]];
  if (max === undefined || median === undefined) return undefined;
  const width = Math.max(1, Math.ceil((max + 1) / 12));
  const columns = Array.from({ length: Math.ceil((max + 1) / width) }, (_, index) => ({
    name: width === 1 ? count(index, 'day') : `${index * width} to ${(index + 1) * width - 1} days`,
    ads: 0,
  }));
  for (const day of days) {
    const column = columns[Math.floor(day / width)];
    if (column) column.ads++;
  }
  return chart({
    title: 'Days running',
    note: `median ${number(median)}`,
    figure: columnChart(columns, (name) => name, 'run'),
    ends: ['0', number(max)],
  });
}

const maxShares = 4;

function shares(title: string, ads: readonly BoardAd[], field: 'displayFormat' | 'ctaType'): HTMLElement | undefined {
  const counts = [...countsOf(ads.map((ad) => ad[field]))].sort(([, a], [, b]) => b - a);
  if (counts.length === 0) return undefined;
  const named = counts.length <= maxShares ? maxShares : maxShares - 1;
  const others = counts.slice(named).reduce((sum, [, ads]) => sum + ads, 0);
  const parts = counts.slice(0, named).map(([name, ads]) => ({ name: label(name), ads }));
  if (others > 0) parts.push({ name: 'Others', ads: others });
  const sum = parts.reduce((all, { ads }) => all + ads, 0);
  const rows = parts.map(({ name, ads }) => {
    const bar = svg('svg', { viewBox: '0 0 100 6', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
    bar.append(
      svg('rect', { width: 100, height: 6 }),
      svg('rect', { class: 'bar', width: (100 * ads) / sum, height: 6 }),
    );
    return el('li', {}, el('span', { class: 'name' }, name), bar, el('b', {}, number(ads)));
  });
  return el('figure', { class: 'chart' }, el('figcaption', {}, title), el('ul', { class: 'shares' }, ...rows));
}

function countsOf(values: readonly (string | undefined)[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const value of values) if (value !== undefined) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}

/** Columns side by side. A screen reader gets them as one sentence. */
function columnChart(columns: readonly Column[], read: (name: string) => string, kind = 'launch'): SVGElement {
  const max = columns.reduce((top, { ads }) => Math.max(top, ads), 1);
  const width = 100 / columns.length;
  const gap = Math.min(1.2, width / 5);
  const sentence = columns.filter(({ ads }) => ads > 0).map(({ name, ads }) => `${read(name)}: ${ads}`);
  const bars = columns.map(({ name, ads }, index) => {
    const height = ads === 0 ? 0.6 : Math.max(1.5, (40 * ads) / max);
    const box = { x: index * width + gap / 2, y: 40 - height, width: width - gap, height };
    return svg('rect', { class: ads === 0 ? 'none' : kind, ...box }, svg('title', {}, `${read(name)}: ${number(ads)}`));
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

interface ChartParts {
  title: string;
  note: string;
  figure: SVGElement;
  ends: [string, string];
}

const chart = ({ title, note, figure, ends: [first, last] }: ChartParts): HTMLElement =>
  el(
    'figure',
    { class: 'chart' },
    el('figcaption', {}, title, el('span', {}, note)),
    figure,
    el('p', { class: 'ends' }, el('span', {}, first), el('span', {}, last)),
  );
