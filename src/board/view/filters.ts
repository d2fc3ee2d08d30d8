import type { BoardAd } from '../payload.ts';
import { button, byId, el, refill } from './elements.ts';
import type { View } from './state.ts';
import { country, label, month, number } from './words.ts';

/** A property to filter by: the values of an ad, and how one reads. */
interface Facet {
  title: string;
  values(ad: BoardAd): readonly string[];
  read(value: string): string;
  /** By value rather than by how many ads have it. */
  inOrder?: true;
}

const one = (value: string | undefined) => (value === undefined ? [] : [value]);
const same = (value: string) => value;

export const facets = {
  state: {
    title: 'State',
    values: ({ active }) => [active === undefined ? 'Unknown' : active ? 'Running' : 'Ended'],
    read: same,
    inOrder: true,
  },
  format: { title: 'Format', values: ({ displayFormat }) => one(displayFormat), read: label },
  cta: { title: 'Call to action', values: ({ ctaType }) => one(ctaType), read: label },
  advertiser: { title: 'Advertiser', values: ({ pageName }) => one(pageName), read: same },
  country: { title: 'Country', values: ({ countries = [] }) => countries, read: country },
  month: { title: 'Started', values: ({ startedAt }) => one(startedAt?.slice(0, 7)), read: month, inOrder: true },
} satisfies Record<string, Facet>;

export type FacetName = keyof typeof facets;
export const facetNames = Object.keys(facets) as FacetName[];

/** The chosen values: any of those of one facet, and all facets together. */
export type Chosen = Partial<Record<FacetName, ReadonlySet<string>>>;

/** The facets with chosen values of which an ad has none, as bits. */
function lackedBy(ad: BoardAd, chosen: Chosen): number {
  let lacked = 0;
  for (const [index, name] of facetNames.entries()) {
    const wanted = chosen[name];
    if (wanted?.size && !facets[name].values(ad).some((value) => wanted.has(value))) lacked |= 1 << index;
  }
  return lacked;
}

export const filtered = (ads: readonly BoardAd[], chosen: Chosen): BoardAd[] =>
  ads.filter((ad) => lackedBy(ad, chosen) === 0);

export interface FacetValue {
  facet: FacetName;
  value: string;
  text: string;
  ads: number;
  isChosen: boolean;
}

/** The values of each facet with the number of ads that choosing each would show beside the other facets. */
export function facetValues(ads: readonly BoardAd[], chosen: Chosen): FacetValue[][] {
  const lacked = ads.map((ad) => lackedBy(ad, chosen));
  return facetNames.map((facet, index) => {
    const { values, read, inOrder }: Facet = facets[facet];
    const counts = new Map<string, number>();
    for (const [at, ad] of ads.entries()) {
      const isCounted = ((lacked[at] ?? 0) & ~(1 << index)) === 0;
      for (const value of values(ad)) counts.set(value, (counts.get(value) ?? 0) + Number(isCounted));
    }
    const all = [...counts].map(([value, ads]) => {
      const isChosen = chosen[facet]?.has(value) === true;
      return { facet, value, text: read(value), ads, isChosen };
    });
    return all.sort(inOrder ? (a, b) => (a.value < b.value ? 1 : -1) : (a, b) => b.ads - a.ads);
  });
}

/** Chosen values with one more, or without it. */
export function toggled(chosen: Chosen, facet: FacetName, value: string): Chosen {
  const values = new Set(chosen[facet]);
  if (!values.delete(value)) values.add(value);
  return { ...chosen, [facet]: values };
}

/** Values of each facet in the short row, and in the full view until a reader asks for all. */
const inShortRow: Record<FacetName, number> = { state: 1, format: 2, cta: 1, advertiser: 2, country: 1, month: 1 };
const inGroup = 12;

/** Filters with counts. Choosing one filters at once, and costs nothing. */
export function createChips(view: View): { draw(): void } {
  const container = byId('chips');
  let isOpen = false;
  const whole = new Set<FacetName>();

  const draw = () => {
    const { ads, chosen } = view.state;
    const all = facetValues(ads, chosen).filter((values) => values.length > 0);
    container.hidden = all.length === 0;
    refill(container, ...(isOpen ? groups(all) : [shortRow(all)]));
  };
  const chip = ({ facet, value, text, ads, isChosen }: FacetValue) => {
    const onClick = () => view.update({ chosen: toggled(view.state.chosen, facet, value) });
    const element = button('', onClick, {
      class: 'chip',
      'aria-pressed': String(isChosen),
      'data-key': `${facet} ${value}`,
      title: facets[facet].title,
    });
    element.append(el('span', { dir: 'auto' }, text), el('small', {}, number(ads)));
    return element;
  };
  const toggle = (text: string) => {
    const onClick = () => {
      isOpen = !isOpen;
      draw();
    };
    return button(text, onClick, { class: 'chip quiet', 'aria-expanded': String(isOpen), 'data-key': 'all filters' });
  };
  const clear = () => button('Clear', () => view.update({ chosen: {} }), { class: 'chip quiet', 'data-key': 'clear' });
  const isFiltered = () => Object.values(view.state.chosen).some((values) => values.size > 0);

  const shortRow = (all: readonly FacetValue[][]) => {
    const { length } = view.state.ads;
    // What none or all of the ads have would filter nothing.
    const shown = all.flatMap((values) =>
      values.filter(
        ({ facet, isChosen, ads }, index) => isChosen || (index < inShortRow[facet] && ads > 0 && ads < length),
      ),
    );
    const hidden = all.flat().length - shown.length;
    const row = el('div', { class: 'chips short' }, ...shown.map(chip));
    if (isFiltered()) row.append(clear());
    if (hidden > 0) row.append(toggle(`All filters · ${number(all.flat().length)}`));
    return row;
  };
  const groups = (all: readonly FacetValue[][]) => [
    ...all.map((values) => {
      const facet = values[0]?.facet ?? 'state';
      const shown = whole.has(facet) ? values : values.filter(({ isChosen }, index) => isChosen || index < inGroup);
      const { title } = facets[facet];
      const chips = el('div', { class: 'chips' }, ...shown.map(chip));
      if (shown.length < values.length) chips.append(more(facet, values.length - shown.length));
      return el(
        'div',
        { class: 'group', role: 'group', 'aria-label': title },
        el('span', { class: 'facet' }, title),
        chips,
      );
    }),
    el('div', { class: 'chips' }, isFiltered() && clear(), toggle('Fewer filters')),
  ];
  const more = (facet: FacetName, count: number) => {
    const onClick = () => {
      whole.add(facet);
      draw();
    };
    return button(`${number(count)} more`, onClick, { class: 'chip quiet', 'data-key': `more ${facet}` });
  };
  return { draw };
}
