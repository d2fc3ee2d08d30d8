import { Component } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { AdCard, buildCardAd, pickTitle, RunText } from '../../ui/ad-card.tsx';
import type { Formats } from '../../ui/formats.ts';
import type { BriefAd } from '../payload.ts';
import { variantOf } from './finding.ts';
import { LazyPicture } from './pictures.tsx';
import { isGrouped, listAxisMonths, locateRun, type TimeAxis, type View } from './state.ts';

/** Ads drawn at once; more are drawn when a reader comes near the end. */
const adsPerBatch = 30;
/** After a change of filters or of their order, the board draws no more than that at once. */
const maxDrawnAfterChange = 4 * adsPerBatch;

export function AdList({ view }: { view: View }) {
  const { cards, mode, selectedIds, ads } = view.state;
  const [drawn, setDrawn] = useState({ cards, count: adsPerBatch });
  const end = useRef<HTMLDivElement>(null);
  const drawnCount = Math.min(
    cards.length,
    drawn.cards === cards ? drawn.count : Math.min(drawn.count, maxDrawnAfterChange),
  );
  useEffect(() => {
    const endObserver = new IntersectionObserver(
      ([entry]) => entry?.isIntersecting && setDrawn({ cards, count: drawnCount + adsPerBatch }),
      // The frame's own window: margins do not reach beyond it from another origin.
      { root: document, rootMargin: '1200px' },
    );
    if (end.current) endObserver.observe(end.current);
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
          {cards.slice(0, drawnCount).map((group) => {
            const ad = group[0] as BriefAd;
            return (
              <Item
                key={ad.id}
                view={view}
                ad={ad}
                axis={view.state.timeAxis}
                variants={group.length}
                number={view.getNumber(ad)}
                isSelected={group.some(({ id }) => selectedIds.has(id))}
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
      {drawnCount < cards.length && <div id="end" ref={end} />}
    </>
  );
}

interface ItemProps {
  view: View;
  ad: BriefAd;
  axis: TimeAxis | undefined;
  /** How many ads the card stands for. */
  variants: number;
  number: string;
  isSelected: boolean;
}

/** Drawn again only where something of it has changed: there may be thousands. */
abstract class Item extends Component<ItemProps> {
  override shouldComponentUpdate(next: ItemProps): boolean {
    return (Object.keys(next) as (keyof ItemProps)[]).some((name) => next[name] !== this.props[name]);
  }
}

/** An ad as a card. The whole card opens it, and its checkbox selects it. */
class CardItem extends Item {
  override render({ view, ad, axis, variants, isSelected }: ItemProps) {
    return (
      <AdCard
        ad={buildCardAd(ad)}
        formats={view.state.formats}
        class={[isSelected && 'selected', variants > 1 && 'many'].filter(Boolean).join(' ')}
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

function VariantsButton({ ad, variants, view }: ItemProps) {
  if (variants < 2) return null;
  const open = () => {
    view.update({ openVariant: variantOf(ad), chosenValues: view.state.chosenValues });
    document.querySelector<HTMLElement>('#back')?.focus();
  };
  return (
    <button type="button" class="variants" onClick={open}>
      <b>×{view.state.formats.formatNumber(variants)}</b> variants
    </button>
  );
}

/** Selecting a message selects the ad that is shown. Clearing it clears every ad of the message that is selected. */
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

export function RunBar({ ad, axis }: { ad: BriefAd; axis: TimeAxis | undefined }) {
  const bar = locateRun(ad, axis);
  return (
    <div class={`track ${ad.active ? 'running' : ''}`} aria-hidden="true">
      {bar && <i style={{ insetInlineStart: `${100 * bar.start}%`, width: `${100 * bar.length}%` }} />}
    </div>
  );
}

function Axis({ axis, formats }: { axis: TimeAxis; formats: Formats }) {
  const labels = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const follow = new ResizeObserver(() => setWidth(labels.current?.clientWidth ?? 0));
    if (labels.current) follow.observe(labels.current);
    return () => follow.disconnect();
  }, []);
  const months = width === 0 ? [] : listAxisMonths(axis, Math.floor(width / 84));
  const lines = months.map(
    ({ position }) => `linear-gradient(var(--line), var(--line)) ${100 * position}% 0 / 1px 100% no-repeat`,
  );
  useLayoutEffect(() => {
    document.documentElement.style.setProperty('--grid', lines.join() || 'none');
  });
  return (
    <div id="axis" aria-hidden="true">
      <div ref={labels}>
        {months.map(({ position, name }) => (
          // The first begins where the axis does, and the last ends there.
          <span key={name} style={{ insetInlineStart: `${100 * position}%`, translate: `${-100 * position}%` }}>
            {formats.formatMonth(name)}
          </span>
        ))}
      </div>
    </div>
  );
}
