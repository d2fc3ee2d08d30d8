import { useMemo } from 'preact/hooks';
import { type Column, Columns, Figure, type Share, Shares } from '../../looks/bars.tsx';
import { countText, monthText, numberText } from '../../looks/formats.ts';
import type { BoardAd } from '../payload.ts';
import { countsOf, medianOf, minAds } from './finding.ts';
import { facets, toggled, type View } from './state.ts';
import { label } from './words.ts';

/** Charts of the ads that the filters leave; none where a reader sees all of them at a glance. */
export function Charts({ view }: { view: View }) {
  const { shown, asOf, chosen } = view.state;
  const charts = useMemo(
    () =>
      shown.length < minAds ? null : (
        <section id="charts" class="charts" aria-label="Overview">
          <Launches ads={shown} asOf={asOf} />
          <Runs ads={shown} />
          <SharesOf view={view} facet="format" />
          <SharesOf view={view} facet="cta" />
        </section>
      ),
    [shown, asOf, chosen],
  );
  return charts;
}

/** Ads by the month they started, in at most two years. Those of earlier months stand in the first column. */
function Launches({ ads, asOf }: { ads: readonly BoardAd[]; asOf: string }) {
  const months = ads.map(({ startedAt }) => monthNumber(startedAt)).filter((month) => !Number.isNaN(month));
  if (months.length === 0) return null;
  const earliest = months.reduce((least, month) => Math.min(least, month));
  const latest = months.reduce((most, month) => Math.max(most, month));
  const now = monthNumber(asOf);
  const to = Math.min(latest, now || latest);
  // At least a year, so that a few months do not look like many.
  const length = Math.min(24, Math.max(12, 4 * Math.ceil((to - earliest + 1) / 4)));
  const names = Array.from({ length }, (_, index) => nameOfMonth(to - length + 1 + index));
  // A column at an end may hold the months beyond it.
  const suffix = (index: number) => {
    if (index === 0 && earliest <= to - length) return ' or earlier';
    if (index === length - 1 && latest > to) return ' or later';
    return to - length + 1 + index === now ? ', so far' : '';
  };
  const columns = names.map(
    (name, index): Column => ({ name: name + suffix(index), value: 0, isPart: to - length + 1 + index === now }),
  );
  for (const month of months) {
    const column = columns[Math.min(length - 1, Math.max(0, month - to + length - 1))];
    if (column) column.value++;
  }
  const peak = columns.reduce((top, { value }) => Math.max(top, value), 0);
  const ends = [suffix(0) === '' ? (names[0] ?? '') : 'earlier', names[length - 1] ?? ''];
  return (
    <Figure title="Launches by month" note={unknownText(ads.length - months.length) || `peak ${numberText(peak)}`}>
      <Columns columns={columns} ends={ends} kind="launches" />
    </Figure>
  );
}

/** Months since the year 0; NaN where there is no date. */
const monthNumber = (iso: string | undefined): number =>
  iso === undefined ? Number.NaN : Number(iso.slice(0, 4)) * 12 + Number(iso.slice(5, 7)) - 1;

const nameOfMonth = (at: number): string =>
  monthText(`${String(Math.floor(at / 12)).padStart(4, '0')}-${String((at % 12) + 1).padStart(2, '0')}`);

const unknownText = (ads: number): string => (ads > 0 ? `${numberText(ads)} unknown` : '');

function Runs({ ads }: { ads: readonly BoardAd[] }) {
  const days = ads.flatMap(({ daysRunning }) => daysRunning ?? []);
  if (days.length === 0) return null;
  const max = days.reduce((most, day) => Math.max(most, day));
  const width = Math.max(1, Math.ceil((max + 1) / 12));
  const columns = Array.from({ length: Math.ceil((max + 1) / width) }, (_, index) => ({
    name: width === 1 ? countText(index, 'day') : `${index * width} to ${(index + 1) * width - 1} days`,
    value: 0,
  }));
  for (const day of days) {
    const column = columns[Math.floor(day / width)];
    if (column) column.value++;
  }
  const ends = [numberText(0), unknownText(ads.length - days.length), numberText(max)];
  return (
    <Figure title="Days running" note={`median ${numberText(medianOf(days))}`}>
      <Columns columns={columns} ends={ends.filter(Boolean)} kind="runs" />
    </Figure>
  );
}

const maxShares = 4;

function SharesOf({ view, facet }: { view: View; facet: 'format' | 'cta' }) {
  const { shown, chosen } = view.state;
  const counts = [
    ...countsOf(shown.map(({ displayFormat, ctaType }) => (facet === 'format' ? displayFormat : ctaType))),
  ];
  if (counts.length === 0) return null;
  counts.sort(([, a], [, b]) => b - a);
  const named = counts.length <= maxShares ? maxShares : maxShares - 1;
  const sum = (values: readonly [string, number][]) => values.reduce((all, [, ads]) => all + ads, 0);
  const shares = counts.slice(0, named).map(
    ([value, ads]): Share => ({
      name: label(value),
      value: ads,
      onClick: () => view.update({ chosen: toggled(chosen, facet, value) }),
    }),
  );
  const rest = [
    { name: 'Others', value: sum(counts.slice(named)) },
    { name: 'Not stated', value: shown.length - sum(counts) },
  ].filter(({ value }) => value > 0);
  return (
    <Figure title={facets[facet].title}>
      <Shares shares={[...shares, ...rest]} of={shown.length} />
    </Figure>
  );
}
