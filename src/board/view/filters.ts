import { button, byId, el, refill } from './elements.ts';
import {
  choosable,
  type FacetName,
  type FacetValue,
  facetOf,
  facetValues,
  messagesIn,
  toggled,
  type View,
} from './state.ts';
import { number } from './words.ts';

/** Values of each facet until a reader asks for all. */
const inGroup = 2;

/** Filters with counts, by what they filter. Choosing one filters at once, and costs nothing. */
export function createChips(view: View): { draw(): void } {
  const container = byId('chips');
  const whole = new Set<FacetName>();

  const draw = () => {
    const { ads, chosen, message } = view.state;
    const from = choosable(view.state);
    const groups = facetValues(from, chosen)
      // What all ads have filters nothing.
      .filter(([first, ...others]) => first && (first.isChosen || others.length > 0 || first.ofAll < from.length))
      .map(group);
    const isFiltered = Object.values(chosen).some((values) => (values?.size ?? 0) > 0);
    const all = `‹ All ${number(messagesIn(ads))} messages`;
    const back = message !== undefined && button(all, close, { class: 'chip primary', 'data-key': 'messages' });
    const clear =
      isFiltered && button('Clear', () => view.update({ chosen: {} }), { class: 'chip quiet', 'data-key': 'clear' });
    const parts = [back, ...groups, clear].filter((part) => part !== false);
    container.hidden = parts.length === 0;
    refill(container, ...parts);
  };
  /** Back to where its card is. */
  const close = () => {
    const { message } = view.state;
    view.update({ message: undefined });
    byId('list')
      .querySelector<HTMLElement>(`[data-message="${CSS.escape(message ?? '')}"] .open`)
      ?.focus();
  };
  const group = (values: readonly FacetValue[]): HTMLElement => {
    const facet = values[0]?.facet ?? 'state';
    const { title } = facetOf(facet);
    // By the rank among all ads: a choice moves none of the others.
    const first = values.filter(({ isChosen, rank }) => isChosen || rank < inGroup);
    const shown = whole.has(facet) || values.length === first.length + 1 ? values : first;
    const element = el(
      'div',
      { class: `group chips ${whole.has(facet) ? 'whole' : ''}`, role: 'group', 'aria-label': title },
      el('span', { class: 'facet', dir: 'auto' }, title),
      ...shown.map(chip),
    );
    const hidden = values.length - shown.length;
    if (hidden > 0 || (whole.has(facet) && values.length > inGroup + 1)) element.append(more(facet, hidden));
    return element;
  };
  const chip = ({ facet, value, text, ads, isChosen }: FacetValue): HTMLElement => {
    const onClick = () => view.update({ chosen: toggled(view.state.chosen, facet, value) });
    const element = button('', onClick, {
      class: 'chip',
      'aria-pressed': String(isChosen),
      'data-key': `${facet} ${value}`,
    });
    element.append(el('span', { dir: 'auto' }, text), el('small', {}, number(ads)));
    return element;
  };
  const more = (facet: FacetName, hidden: number): HTMLElement => {
    const onClick = () => {
      if (!whole.delete(facet)) whole.add(facet);
      draw();
    };
    return button(hidden > 0 ? `+${number(hidden)}` : 'Fewer', onClick, {
      class: 'chip quiet',
      'aria-label': `${facetOf(facet).title}: ${hidden > 0 ? `${number(hidden)} more` : 'fewer'}`,
      'aria-expanded': String(hidden === 0),
      'data-key': `more ${facet}`,
    });
  };
  return { draw };
}
