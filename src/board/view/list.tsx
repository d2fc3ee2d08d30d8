import { Component } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { AdCard, buildCardAd, pickTitle, RunText } from '../../ui/ad-card.tsx';
import type { Formats } from '../../ui/formats.ts';
import type { BriefAd } from '../payload.ts';
import { variantOf } from './finding.ts';
import { LazyPicture } from './pictures.tsx';
import { isGrouped, listAxisMonths, locateRun, type TimeAxis, type View } from './state.ts';

/** The number of ads that are rendered at once. More ads are rendered when the reader scrolls near the end. */
const adsPerBatch = 30;
/** The most ads that stay rendered after a change of filters or of the sort order. */
const maxDrawnAfterChange = 4 * adsPerBatch;

/** Renders the ads as cards or as rows of the timeline. */
export function AdList({ view }: { view: View }) {
  const { cards, mode, selectedIds, ads } = view.state;
  const [batchState, setDrawn] = useState({ cards, count: adsPerBatch });
  const endMarker = useRef<HTMLDivElement>(null);
  const drawnCount = Math.min(
    cards.length,
    batchState.cards === cards ? batchState.count : Math.min(batchState.count, maxDrawnAfterChange),
  );
  useEffect(() => {
    const endObserver = new IntersectionObserver(
      ([entry]) => entry?.isIntersecting && setDrawn({ cards, count: drawnCount + adsPerBatch }),
      // The root must be the document of the frame. Browsers ignore the margin if the root belongs to another origin.
      { root: document, rootMargin: '1200px' },
    );
    if (endMarker.current) endObserver.observe(endMarker.current);
    return () => endObserver.disconnect();
  }, [cards, drawnCount]);
  const Item = mode === 'cards' ? CardItem : RowItem;
  return (
    <>
      {mode === 'timeline' && cards.length > 0 && view.state.timeAxis && (
        <Axis axis={view.state.timeAxis} formats={view.state.formats} />
      )}
      {cards.length > 0 && (
        <ul id="list" class={mode} aria-label="Ads">
          {cards.slice(0, drawnCount).map((cardAds) => {
            const ad = cardAds[0] as BriefAd;
            return (
              <Item
                key={ad.id}
                view={view}
                ad={ad}
                axis={view.state.timeAxis}
                adCount={cardAds.length}
                number={view.getNumber(ad)}
                isSelected={cardAds.some(({ id }) => selectedIds.has(id))}
              />
            );
          })}
        </ul>
      )}
      {cards.length === 0 && ads.length > 0 && (
        <div class="nothing">
          <p>No ad has all of these filters.</p>
          <button type="button" class="primary" onClick={() => view.update({ chosenValues: {} })}>
            Clear filters
          </button>
        </div>
      )}
      {drawnCount < cards.length && <div id="end" ref={endMarker} />}
    </>
  );
}

interface ItemProps {
  view: View;
  ad: BriefAd;
  axis: TimeAxis | undefined;
  /** The number of ads that the card represents. */
  adCount: number;
  number: string;
  isSelected: boolean;
}

/** An ad in the list. There may be thousands, so an item is rendered again only if one of its properties changes. */
abstract class Item extends Component<ItemProps> {
  override shouldComponentUpdate(next: ItemProps): boolean {
    return (Object.keys(next) as (keyof ItemProps)[]).some((name) => next[name] !== this.props[name]);
  }
}

/** Renders an ad as a card. A click anywhere on the card opens the ad; the checkbox selects it. */
class CardItem extends Item {
  override render({ view, ad, axis, adCount, isSelected }: ItemProps) {
    return (
      <AdCard
        ad={buildCardAd(ad)}
        formats={view.state.formats}
        class={[isSelected && 'selected', adCount > 1 && 'many'].filter(Boolean).join(' ')}
        frame={<LazyPicture ad={ad} view={view} />}
        bar={<RunBar ad={ad} axis={axis} />}
        name={<OpenButton {...this.props} />}
        corner={<SelectBox {...this.props} />}
      >
        <VariantsButton {...this.props} />
      </AdCard>
    );
  }
}

/** Renders an ad as a row of the timeline. */
class RowItem extends Item {
  override render({ view, ad, axis, isSelected }: ItemProps) {
    return (
      <li class={`row ${isSelected ? 'selected' : ''}`}>
        <SelectBox {...this.props} />
        <LazyPicture ad={ad} view={view} />
        <div class="names">
          <p class="page" dir="auto">
            {ad.isNew && <b>New </b>}
            {ad.pageName ?? 'Advertiser unknown'}
          </p>
          <OpenButton {...this.props} />
        </div>
        <VariantsButton {...this.props} />
        <RunBar ad={ad} axis={axis} />
        <RunText ad={buildCardAd(ad)} formats={view.state.formats} />
      </li>
    );
  }
}

const OpenButton = ({ ad, view }: ItemProps) => (
  <button type="button" class="open" dir="auto" onClick={() => view.update({ openAdId: ad.id })}>
    {pickTitle(buildCardAd(ad))}
  </button>
);

/** Renders a button that shows all ads of a variant; nothing if there is only one. */
function VariantsButton({ ad, adCount, view }: ItemProps) {
  if (adCount < 2) return null;
  const open = () => {
    view.update({ openVariant: variantOf(ad), chosenValues: view.state.chosenValues });
    document.querySelector<HTMLElement>('#back')?.focus();
  };
  return (
    <button type="button" class="variants" onClick={open}>
      <b>×{view.state.formats.formatNumber(adCount)}</b> variants
    </button>
  );
}

/**
 * Renders the checkbox that selects an ad. A card may stand for several ads with nearly the same text (a variant):
 * checking its box selects the ad that the card shows, and unchecking deselects all ads of the variant.
 */
function SelectBox({ ad, view, number, isSelected }: ItemProps) {
  const toggle = () => {
    const { state } = view;
    const selectedIds = new Set(state.selectedIds);
    if (!isSelected) selectedIds.add(ad.id);
    else if (isGrouped(state)) {
      for (const visibleAd of state.visibleAds)
        if (variantOf(visibleAd) === variantOf(ad)) selectedIds.delete(visibleAd.id);
    } else selectedIds.delete(ad.id);
    view.update({ selectedIds });
  };
  return (
    <label class="pick">
      <span class="number" aria-hidden="true">
        {number}
      </span>
      <input
        type="checkbox"
        aria-label={`Select ${number}: ${pickTitle(buildCardAd(ad))}`}
        checked={isSelected}
        onChange={toggle}
      />
    </label>
  );
}

/** Renders the run of an ad as a bar on the time axis. */
export function RunBar({ ad, axis }: { ad: BriefAd; axis: TimeAxis | undefined }) {
  const bar = locateRun(ad, axis);
  return (
    <div class={`track ${ad.active ? 'running' : ''}`} aria-hidden="true">
      {bar && <i style={{ insetInlineStart: `${100 * bar.start}%`, width: `${100 * bar.length}%` }} />}
    </div>
  );
}

/** Renders the months above the timeline, and sets the CSS variable with the grid lines behind the bars. */
function Axis({ axis, formats }: { axis: TimeAxis; formats: Formats }) {
  const labelsRef = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => setWidth(labelsRef.current?.clientWidth ?? 0));
    if (labelsRef.current) observer.observe(labelsRef.current);
    return () => observer.disconnect();
  }, []);
  const months = width === 0 ? [] : listAxisMonths(axis, Math.floor(width / 84));
  const gridLines = months.map(
    ({ position }) => `linear-gradient(var(--line), var(--line)) ${100 * position}% 0 / 1px 100% no-repeat`,
  );
  useLayoutEffect(() => {
    document.documentElement.style.setProperty('--grid', gridLines.join() || 'none');
  });
  return (
    <div id="axis" aria-hidden="true">
      <div ref={labelsRef}>
        {months.map(({ position, name }) => (
          // Shifting each label by its own position keeps the first and the last label inside the axis.
          <span key={name} style={{ insetInlineStart: `${100 * position}%`, translate: `${-100 * position}%` }}>
            {formats.formatMonth(name)}
          </span>
        ))}
      </div>
    </div>
  );
}
