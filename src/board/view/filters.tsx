import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { Formats } from '../../ui/formats.ts';
import { choosable, type FacetName, type FacetValue, facetOf, facetValues, toggled, type View } from './state.ts';

/** Values of each facet until a reader asks for all. */
const inGroup = 2;
export function Filters({ view, children }: { view: View; children: ComponentChildren }) {
  const { chosen, ads, message, formats } = view.state;
  const [open, setOpen] = useState<FacetName>();
  const groups = useMemo(() => facetValues(choosable(view.state), chosen, formats), [ads, message, chosen, formats]);
  return (
    <section id="chips" aria-label="Filters">
      {children}
      {groups.map((values) => {
        const facet = values[0]?.facet ?? 'state';
        const isOpen = open === facet;
        return (
          <Group
            key={facet}
            values={values}
            formats={formats}
            isOpen={isOpen}
            onToggle={() => setOpen(isOpen ? undefined : facet)}
            onChoose={(value) => view.update({ chosen: toggled(chosen, facet, value) })}
          />
        );
      })}
      {Object.values(chosen).some((values) => (values?.size ?? 0) > 0) && (
        <button type="button" class="chip quiet" onClick={() => view.update({ chosen: {} })}>
          Clear
        </button>
      )}
    </section>
  );
}

interface GroupProps {
  formats: Formats;
  values: readonly FacetValue[];
  isOpen: boolean;
  onToggle(): void;
  onChoose(value: string): void;
}

function Group({ values, formats: { formatNumber }, isOpen, onToggle, onChoose }: GroupProps) {
  const { title } = facetOf(values[0]?.facet ?? 'state');
  // By the rank among all ads: a choice moves none of the others.
  const first = values.filter(({ isChosen, rank }) => isChosen || rank < inGroup);
  const shown = isOpen || values.length === first.length + 1 ? values : first;
  const hidden = values.length - shown.length;
  return (
    <fieldset class={`group chips ${isOpen ? 'whole' : ''}`} aria-label={title}>
      <span class="facet" dir="auto">
        {title}
      </span>
      {shown.map(({ value, text, ads, isChosen }) => (
        <button type="button" key={value} class="chip" aria-pressed={isChosen} onClick={() => onChoose(value)}>
          <span dir="auto">{text}</span>
          <small>{formatNumber(ads)}</small>
        </button>
      ))}
      {(hidden > 0 || (isOpen && values.length > inGroup + 1)) && (
        <button
          type="button"
          class="chip quiet"
          aria-label={`${title}: ${hidden > 0 ? `${formatNumber(hidden)} more` : 'fewer'}`}
          aria-expanded={hidden === 0}
          onClick={onToggle}
        >
          {hidden > 0 ? `+${formatNumber(hidden)}` : 'Fewer'}
        </button>
      )}
    </fieldset>
  );
}
