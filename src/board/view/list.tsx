import { Component } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { AdCard, buildCardAd, pickTitle, RunText } from '../../ui/ad-card.tsx';
import type { Formats } from '../../ui/formats.ts';
import type { BriefAd } from '../payload.ts';
import { messageOf } from './finding.ts';
import { LaterFrame } from './pictures.tsx';
import { barOf, isGrouped, monthsOn, type TimeAxis, type View } from './state.ts';

/** Ads drawn at once; more are drawn when a reader comes near the end. */
const part = 30;
/** After a change of filters or of their order, the board draws no more than that at once. */
const maxDrawn = 4 * part;

export function AdList({ view }: { view: View }) {
  const { cards, mode, selected, ads } = view.state;
  const [drawn, setDrawn] = useState({ cards, count: part });
  const end = useRef<HTMLDivElement>(null);
  const count = Math.min(cards.length, drawn.cards === cards ? drawn.count : Math.min(drawn.count, maxDrawn));
  useEffect(() => {
    const more = new IntersectionObserver(
      ([entry]) => entry?.isIntersecting && setDrawn({ cards, count: count + part }),
      // The frame's own window: margins do not reach beyond it from another origin.
      { root: document, rootMargin: '1200px' },
    );
    if (end.current) more.observe(end.current);
    return () => more.disconnect();
  }, [cards, count]);
  const Item = mode === 'cards' ? CardItem : RowItem;
  return (
    <>
      {mode === 'timeline' && cards.length > 0 && view.state.axis && (
        <Axis axis={view.state.axis} formats={view.state.formats} />
      )}
      {cards.length > 0 && (
        <ul id="list" class={mode} aria-label="Ads">
          {cards.slice(0, count).map((group) => {
            const ad = group[0] as BriefAd;
            return (
              <Item
                key={ad.id}
                view={view}
                ad={ad}
                axis={view.state.axis}
                variants={group.length}
                number={view.numberOf(ad)}
                isSelected={group.some(({ id }) => selected.has(id))}
              />
            );
          })}
        </ul>
      )}
      {cards.length === 0 && ads.length > 0 && (
        <div class="nothing">
          <p>No ad has all of these filters.</p>
          <button type="button" class="primary" onClick={() => view.update({ chosen: {} })}>
            Clear filters
          </button>
        </div>
      )}
      {count < cards.length && <div id="end" ref={end} />}
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
        frame={<LaterFrame ad={ad} view={view} />}
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
        <LaterFrame ad={ad} view={view} />
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
  <button type="button" class="open" dir="auto" onClick={() => view.update({ opened: ad.id })}>
    {pickTitle(buildCardAd(ad))}
  </button>
);

function VariantsButton({ ad, variants, view }: ItemProps) {
  if (variants < 2) return null;
  const open = () => {
    view.update({ message: messageOf(ad), chosen: view.state.chosen });
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
    const selected = new Set(state.selected);
    if (!isSelected) selected.add(ad.id);
    else if (isGrouped(state)) {
      for (const other of state.shown) if (messageOf(other) === messageOf(ad)) selected.delete(other.id);
    } else selected.delete(ad.id);
    view.update({ selected });
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
  const bar = barOf(ad, axis);
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
  const months = width === 0 ? [] : monthsOn(axis, Math.floor(width / 84));
  const lines = months.map(({ at }) => `linear-gradient(var(--line), var(--line)) ${100 * at}% 0 / 1px 100% no-repeat`);
  useLayoutEffect(() => {
    document.documentElement.style.setProperty('--grid', lines.join() || 'none');
  });
  return (
    <div id="axis" aria-hidden="true">
      <div ref={labels}>
        {months.map(({ at, name }) => (
          // The first begins where the axis does, and the last ends there.
          <span key={name} style={{ insetInlineStart: `${100 * at}%`, translate: `${-100 * at}%` }}>
            {formats.formatMonth(name)}
          </span>
        ))}
      </div>
    </div>
  );
}
