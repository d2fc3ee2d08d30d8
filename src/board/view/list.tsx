import { Component } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { AdCard, buildAdCardContent, pickTitle, RunText } from '../../ui/ad-card.tsx';
import type { Formatters } from '../../ui/formats.ts';
import type { BriefAd } from '../payload.ts';
import { getVariantId } from './finding.ts';
import { LazyPicture } from './pictures.tsx';
import { areVariantsGrouped, type BoardController, listAxisMonths, locateRunBar, type TimeAxis } from './state.ts';

/**
 * The number of list items (cards or rows of the timeline) that the list renders at first, and the number that it adds
 * each time the user scrolls toward its end.
 */
const itemsPerBatch = 30;
/**
 * The maximum number of list items that remain rendered when the user changes the filters or the sort order. With more
 * items, the change would be slow.
 */
const maxRenderedItemsAfterChange = 4 * itemsPerBatch;

/** The list of ads, shown as cards or as rows of a timeline. */
export function AdList({ board }: { board: BoardController }) {
  const { adGroups, listLayout, selectedIds, ads } = board.state;
  const [renderLimit, setRenderLimit] = useState({ adGroups, itemCount: itemsPerBatch });
  const endMarkerRef = useRef<HTMLDivElement>(null);
  const renderedItemCount = Math.min(
    adGroups.length,
    renderLimit.adGroups === adGroups
      ? renderLimit.itemCount
      : Math.min(renderLimit.itemCount, maxRenderedItemsAfterChange),
  );
  useEffect(() => {
    const endObserver = new IntersectionObserver(
      ([entry]) => entry?.isIntersecting && setRenderLimit({ adGroups, itemCount: renderedItemCount + itemsPerBatch }),
      // Use this document as the root, so that `rootMargin` has an effect. The default root is the window of the host,
      // for which browsers ignore `rootMargin`.
      { root: document, rootMargin: '1200px' },
    );
    if (endMarkerRef.current) endObserver.observe(endMarkerRef.current);
    return () => endObserver.disconnect();
  }, [adGroups, renderedItemCount]);
  const ItemComponent = listLayout === 'cards' ? AdCardItem : TimelineRowItem;
  return (
    <>
      {listLayout === 'timeline' && adGroups.length > 0 && board.state.timeAxis && (
        <TimelineAxis axis={board.state.timeAxis} formatters={board.state.formatters} />
      )}
      {adGroups.length > 0 && (
        <ul id="list" class={listLayout} aria-label="Ads">
          {adGroups.slice(0, renderedItemCount).map((adGroup) => {
            const ad = adGroup[0] as BriefAd;
            return (
              <ItemComponent
                key={ad.id}
                board={board}
                ad={ad}
                axis={board.state.timeAxis}
                adCount={adGroup.length}
                adNumber={board.getAdNumber(ad)}
                isSelected={adGroup.some(({ id }) => selectedIds.has(id))}
              />
            );
          })}
        </ul>
      )}
      {adGroups.length === 0 && ads.length > 0 && (
        <div class="nothing">
          <p>No ad has all of these filters.</p>
          <button type="button" class="primary" onClick={() => board.updateState({ chosenValues: {} })}>
            Clear filters
          </button>
        </div>
      )}
      {renderedItemCount < adGroups.length && <div id="end" ref={endMarkerRef} />}
    </>
  );
}

interface AdItemProps {
  board: BoardController;
  ad: BriefAd;
  axis: TimeAxis | undefined;
  /** The number of ads that the item represents. If there are several, their texts are nearly the same. */
  adCount: number;
  adNumber: string;
  isSelected: boolean;
}

/**
 * The base class for an ad in the list. It re-renders only if one of its props changes, because a list can contain
 * thousands of ads and rendering all of them again would be slow.
 */
abstract class AdItem extends Component<AdItemProps> {
  override shouldComponentUpdate(nextProps: AdItemProps): boolean {
    return (Object.keys(nextProps) as (keyof AdItemProps)[]).some((name) => nextProps[name] !== this.props[name]);
  }
}

/** An ad as a card. Clicking the card opens the ad; clicking the checkbox selects it. */
class AdCardItem extends AdItem {
  override render({ board, ad, axis, adCount, isSelected }: AdItemProps) {
    return (
      <AdCard
        ad={buildAdCardContent(ad)}
        formatters={board.state.formatters}
        class={[isSelected && 'selected', adCount > 1 && 'many', ad.isNew && 'new'].filter(Boolean).join(' ')}
        pictureFrame={<LazyPicture ad={ad} board={board} />}
        runBar={<RunBar ad={ad} axis={axis} />}
        heading={<OpenAdButton {...this.props} />}
        cornerContent={<SelectionCheckbox {...this.props} />}
      >
        <VariantsButton {...this.props} />
      </AdCard>
    );
  }
}

/** An ad as a row of the timeline, with a bar from its first to its last day. */
class TimelineRowItem extends AdItem {
  override render({ board, ad, axis, isSelected }: AdItemProps) {
    return (
      <li class={`row ${isSelected ? 'selected' : ''}`}>
        <SelectionCheckbox {...this.props} />
        <LazyPicture ad={ad} board={board} />
        <div class="names">
          <p class="page" dir="auto">
            {ad.isNew && <b>New </b>}
            {ad.pageName ?? 'Advertiser unknown'}
          </p>
          <OpenAdButton {...this.props} />
        </div>
        <VariantsButton {...this.props} />
        <RunBar ad={ad} axis={axis} />
        <RunText ad={buildAdCardContent(ad)} formatters={board.state.formatters} />
      </li>
    );
  }
}

const OpenAdButton = ({ ad, board }: AdItemProps) => (
  <button type="button" class="open" dir="auto" onClick={() => board.updateState({ openAdId: ad.id })}>
    {pickTitle(buildAdCardContent(ad))}
  </button>
);

/** A button that opens all ads with nearly the same text as this ad. Renders nothing if no other ad has such a text. */
function VariantsButton({ ad, adCount, board }: AdItemProps) {
  if (adCount < 2) return null;
  const openVariantAds = () => {
    board.updateState({ openVariantId: getVariantId(ad) });
    document.querySelector<HTMLElement>('#back')?.focus();
  };
  return (
    <button type="button" class="variants" onClick={openVariantAds}>
      <b>×{board.state.formatters.formatNumber(adCount)}</b> variants
    </button>
  );
}

/**
 * The checkbox that selects an ad. A card may represent several ads with nearly the same text. Checking the box then
 * selects only the ad on the card, and clearing the box deselects all of its ads.
 */
function SelectionCheckbox({ ad, board, adNumber, isSelected }: AdItemProps) {
  const toggleSelection = () => {
    const { state } = board;
    const selectedIds = new Set(state.selectedIds);
    if (!isSelected) selectedIds.add(ad.id);
    else if (areVariantsGrouped(state)) {
      for (const visibleAd of state.visibleAds)
        if (getVariantId(visibleAd) === getVariantId(ad)) selectedIds.delete(visibleAd.id);
    } else selectedIds.delete(ad.id);
    board.updateState({ selectedIds });
  };
  return (
    <label class="pick">
      <span class="number" aria-hidden="true">
        {adNumber}
      </span>
      <input
        type="checkbox"
        aria-label={`Select ${adNumber}: ${pickTitle(buildAdCardContent(ad))}`}
        checked={isSelected}
        onChange={toggleSelection}
      />
    </label>
  );
}

/** A bar on the time axis that shows from when to when an ad ran. */
export function RunBar({ ad, axis }: { ad: BriefAd; axis: TimeAxis | undefined }) {
  const barPosition = locateRunBar(ad, axis);
  return (
    <div class={`track ${ad.active ? 'running' : ''}`} aria-hidden="true">
      {barPosition && (
        <i
          style={{
            insetInlineStart: `${100 * barPosition.startFraction}%`,
            width: `${100 * barPosition.lengthFraction}%`,
          }}
        />
      )}
    </div>
  );
}

/** The width that one month label needs on the axis of the timeline, in pixels. */
const monthLabelWidthPx = 84;

/**
 * The month labels above the timeline. The component also sets the CSS variable that draws the vertical lines behind
 * the bars.
 */
function TimelineAxis({ axis, formatters }: { axis: TimeAxis; formatters: Formatters }) {
  const labelsRef = useRef<HTMLDivElement>(null);
  const [axisWidthPx, setAxisWidthPx] = useState(0);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => setAxisWidthPx(labelsRef.current?.clientWidth ?? 0));
    if (labelsRef.current) observer.observe(labelsRef.current);
    return () => observer.disconnect();
  }, []);
  const months = axisWidthPx === 0 ? [] : listAxisMonths(axis, Math.floor(axisWidthPx / monthLabelWidthPx));
  const gridLines = months.map(
    ({ positionFraction }) =>
      `linear-gradient(var(--line), var(--line)) ${100 * positionFraction}% 0 / 1px 100% no-repeat`,
  );
  useLayoutEffect(() => {
    document.documentElement.style.setProperty('--grid', gridLines.join() || 'none');
  });
  return (
    <div id="axis" aria-hidden="true">
      <div ref={labelsRef}>
        {months.map(({ positionFraction, isoMonth }) => (
          // Shift each label to the left in proportion to its position, from 0% to 100% of its width. The first and the
          // last label then stay within the axis.
          <span
            key={isoMonth}
            style={{ insetInlineStart: `${100 * positionFraction}%`, translate: `${-100 * positionFraction}%` }}
          >
            {formatters.formatMonth(isoMonth)}
          </span>
        ))}
      </div>
    </div>
  );
}
