import { button, byId, el, refill } from './elements.ts';
import { type FacetName, type FacetValue, facetOf, facetValues, toggled, type View } from './state.ts';
import { number } from './words.ts';

/** Values of each facet in the short row, and in the full view until a reader asks for all. */
const inShortRow: Partial<Record<FacetName, number>> = { format: 2, advertiser: 2 };
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
      title: facetOf(facet).title,
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
  const isFiltered = () => Object.values(view.state.chosen).some((values) => (values?.size ?? 0) > 0);

  const shortRow = (all: readonly FacetValue[][]) => {
    const { length } = view.state.ads;
    // What none or all of the ads have would filter nothing.
    const shown = all.flatMap((values) =>
      values.filter(
        ({ facet, isChosen, ads }, index) => isChosen || (index < (inShortRow[facet] ?? 1) && ads > 0 && ads < length),
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
      const { title } = facetOf(facet);
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
