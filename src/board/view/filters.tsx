import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import type { Formatters } from '../../ui/formats.ts';
import {
  type BoardController,
  countActiveFilters,
  type FacetName,
  type FacetValue,
  getFacet,
  listFacetValues,
  selectFilterableAds,
  toggleValue,
} from './state.ts';

/** The number of values that each filter shows before the user expands it. */
const collapsedValueCount = 2;

/**
 * The filters of the board: one row per facet (a property of ads, such as *Country*), with the values that the user can
 * choose.
 */
export function Filters({ board, children }: { board: BoardController; children: ComponentChildren }) {
  const { chosenValues, ads, openVariantId, formatters } = board.state;
  const [openFacetName, setOpenFacetName] = useState<FacetName>();
  const facetGroups = useMemo(
    () => listFacetValues(selectFilterableAds(board.state), chosenValues, formatters),
    [ads, openVariantId, chosenValues, formatters],
  );
  return (
    <section id="chips" aria-label="Filters">
      {children}
      {facetGroups.map((values) => {
        const facetName = values[0]?.facet ?? 'runState';
        const isOpen = openFacetName === facetName;
        return (
          <FacetGroup
            key={facetName}
            values={values}
            formatters={formatters}
            isOpen={isOpen}
            onToggle={() => setOpenFacetName(isOpen ? undefined : facetName)}
            onChoose={(value) => board.updateState({ chosenValues: toggleValue(chosenValues, facetName, value) })}
          />
        );
      })}
      {countActiveFilters(chosenValues) > 0 && (
        <button type="button" class="chip quiet" onClick={() => board.updateState({ chosenValues: {} })}>
          Clear
        </button>
      )}
    </section>
  );
}

interface FacetGroupProps {
  formatters: Formatters;
  values: readonly FacetValue[];
  isOpen: boolean;
  onToggle(): void;
  onChoose(value: string): void;
}

function FacetGroup({ values, formatters: { formatNumber }, isOpen, onToggle, onChoose }: FacetGroupProps) {
  const { title } = getFacet(values[0]?.facet ?? 'runState');
  // The `rank` of a value is its position among all values of the facet. The rank does not depend on the chosen values,
  // so the visible values stay in place while the user chooses some of them.
  const topValues = values.filter(({ isChosen, rank }) => isChosen || rank < collapsedValueCount);
  const visibleValues = isOpen || values.length === topValues.length + 1 ? values : topValues;
  const hiddenValueCount = values.length - visibleValues.length;
  return (
    <fieldset class={`group chips ${isOpen ? 'whole' : ''}`} aria-label={title}>
      <span class="facet" dir="auto">
        {title}
      </span>
      {visibleValues.map(({ value, text, detail, matchingAdCount, isChosen }) => (
        <button type="button" key={value} class="chip" aria-pressed={isChosen} onClick={() => onChoose(value)}>
          <span dir="auto">{text}</span>
          {detail !== undefined && <bdi>{detail}</bdi>}
          <small>{formatNumber(matchingAdCount)}</small>
        </button>
      ))}
      {(hiddenValueCount > 0 || (isOpen && values.length > collapsedValueCount + 1)) && (
        <button
          type="button"
          class="chip quiet"
          aria-label={`${title}: ${hiddenValueCount > 0 ? `${formatNumber(hiddenValueCount)} more` : 'fewer'}`}
          aria-expanded={hiddenValueCount === 0}
          onClick={onToggle}
        >
          {hiddenValueCount > 0 ? `+${formatNumber(hiddenValueCount)}` : 'Fewer'}
        </button>
      )}
    </fieldset>
  );
}
