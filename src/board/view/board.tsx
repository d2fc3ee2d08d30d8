import { useMemo, useState } from 'preact/hooks';
import { CommonValuesChart, DaysRunningChart, LaunchesChart } from '../../ui/bars.tsx';
import type { BoardContext } from '../payload.ts';
import { Compare, maxCompared } from './compare.tsx';
import { Drawer } from './drawer.tsx';
import { Filters } from './filters.tsx';
import { type Finding, minAds } from './finding.ts';
import { aboutText, creditsText, estimateText, headingOf, paidText, partsText, partText } from './heading.ts';
import { AdList } from './list.tsx';
import { Actions, Save } from './selection.tsx';
import {
  type Chosen,
  choosable,
  type FacetName,
  facets,
  isGrouped,
  messagesIn,
  type Problem,
  problemFrom,
  type SortName,
  type State,
  sortNames,
  sortTitle,
  toggled,
  type View,
} from './state.ts';

export function Board({ view }: { view: View }) {
  const { state } = view;
  const { ads, opened, compared, saving, display, panel = !display.isTight } = state;
  const hasPanel = choosable(state).length >= minAds;
  const estimate = estimateText(state);
  const adOpened = ads.find(({ id }) => id === opened);
  return (
    <>
      <main class={[display.isTight && 'tight', estimate && 'estimate'].filter(Boolean).join(' ')}>
        <header>
          <Heading state={state} estimate={estimate} />
          {ads.length > 0 && <Controls view={view} panel={hasPanel ? panel : undefined} />}
        </header>
        {state.finding && <Found view={view} finding={state.finding} />}
        {hasPanel && panel && (
          <section id="panel" aria-label="Charts and filters">
            <Filters view={view}>
              <Grouping view={view} />
            </Filters>
            <p id="part">{partText(state)}</p>
            <Charts view={view} />
          </section>
        )}
        <AdList view={view} />
        <Footer view={view} />
      </main>
      {adOpened && <Drawer view={view} ad={adOpened} />}
      {compared && <Compare view={view} ids={compared} />}
      {saving && <Save view={view} ids={saving} />}
    </>
  );
}

function Heading({ state, estimate }: { state: State; estimate: string | undefined }) {
  const heading = headingOf(state);
  return (
    <div id="heading">
      <h1>
        <bdi id="title">{estimate ?? heading.title}</bdi>{' '}
        {state.context.isDemo && estimate === undefined && <span id="notice">Demo data</span>}
      </h1>
      {estimate === undefined && (
        <p id="subtitle">
          <b id="count">{state.ads.length > 0 ? partsText(state) : state.problem ? 'No ads came' : ''}</b>{' '}
          <span id="about">{aboutText(state, heading.rest)}</span>
        </p>
      )}
    </div>
  );
}

/** @param panel whether charts and filters are shown; undefined where there is nothing to filter */
function Controls({ view, panel }: { view: View; panel: boolean | undefined }) {
  const { message, mode, sort, chosen, display, formats } = view.state;
  const filters = Object.values(chosen).filter((values) => (values?.size ?? 0) > 0).length;
  return (
    <div id="tools">
      {message !== undefined && <BackButton view={view} />}
      <Choice
        label="View"
        signs={['▦', '☰']}
        names={['Cards', 'Timeline']}
        isFirst={mode === 'cards'}
        choose={(isFirst) => view.update({ mode: isFirst ? 'cards' : 'timeline' })}
      />
      <label class="sort">
        <span>Sort</span>{' '}
        <select
          id="sort"
          value={sort}
          onChange={({ currentTarget }) => view.update({ sort: currentTarget.value as SortName })}
        >
          {sortNames.map((name) => (
            <option value={name}>{sortTitle(name)}</option>
          ))}
        </select>
      </label>
      {panel !== undefined && (
        <button type="button" id="filters" aria-expanded={panel} onClick={() => view.update({ panel: !panel })}>
          Filters{filters > 0 && ` · ${formats.formatNumber(filters)}`}
        </button>
      )}
      {display.canExpand && <ExpandButton view={view} />}
    </div>
  );
}

/** Charts of the ads that the filters leave; none where a reader sees all of them at a glance. */
function Charts({ view }: { view: View }) {
  const { shown, readAt, chosen, formats } = view.state;
  const choose = (facet: 'format' | 'cta') => (value: string) => view.update({ chosen: toggled(chosen, facet, value) });
  return useMemo(
    () =>
      shown.length < minAds ? null : (
        <section id="charts" class="charts" aria-label="Overview">
          <LaunchesChart ads={shown} readAt={readAt} formats={formats} />
          <DaysRunningChart ads={shown} formats={formats} />
          <CommonValuesChart
            title={facets.format.title}
            values={shown.map(({ displayFormat }) => displayFormat)}
            onChoose={choose('format')}
            formats={formats}
          />
          <CommonValuesChart
            title={facets.cta.title}
            values={shown.map(({ ctaType }) => ctaType)}
            onChoose={choose('cta')}
            formats={formats}
          />
        </section>
      ),
    [shown, readAt, chosen, formats],
  );
}

const Grouping = ({ view }: { view: View }) =>
  view.state.message !== undefined || messagesIn(view.state.ads) === view.state.ads.length ? null : (
    <Choice
      label="One card for each"
      names={['Messages', 'Ads']}
      isFirst={isGrouped(view.state)}
      choose={(isFirst) => view.update({ byMessage: isFirst })}
    />
  );

interface ChoiceProps {
  label: string;
  /** Signs for narrow windows. */
  signs?: readonly string[];
  names: readonly string[];
  isFirst: boolean;
  choose(isFirst: boolean): void;
}

const Choice = ({ label, signs, names, isFirst, choose }: ChoiceProps) => (
  <fieldset class="modes" aria-label={label}>
    {names.map((name, at) => (
      <button
        type="button"
        key={name}
        aria-label={name}
        aria-pressed={isFirst === (at === 0)}
        onClick={() => choose(at === 0)}
      >
        {signs && <span class="sign">{signs[at]}</span>}
        <span class="name">{name}</span>
      </button>
    ))}
  </fieldset>
);

function BackButton({ view }: { view: View }) {
  const close = () => {
    const { message } = view.state;
    view.update({ message: undefined });
    const at = view.state.cards.findIndex(([ad]) => ad !== undefined && (ad.variant ?? ad.id) === message);
    document.querySelectorAll<HTMLElement>('#list .open')[at]?.focus();
  };
  return (
    <button type="button" id="back" class="primary" onClick={close}>
      ‹ All {view.state.formats.formatNumber(messagesIn(view.state.ads))} messages
    </button>
  );
}

function ExpandButton({ view }: { view: View }) {
  const isFull = view.state.display.mode === 'fullscreen';
  const expand = () =>
    view.host
      .request('ui/request-display-mode', { mode: isFull ? 'inline' : 'fullscreen' })
      .then(view.follow, () => view.follow({ availableDisplayModes: [] }));
  const name = isFull ? 'Close' : 'Expand';
  return (
    <button type="button" id="expand" aria-label={name} onClick={() => void expand()}>
      <span class="sign">{isFull ? '⤡' : '⤢'}</span>
      <span class="name">{name}</span>
    </button>
  );
}

function Found({ view, finding: { sentence, opens } }: { view: View; finding: Finding }) {
  const { chosen } = view.state;
  const open = () => {
    if ('ad' in opens) return view.update({ opened: opens.ad });
    if ('message' in opens) return view.update({ message: opens.message, chosen: {} });
    const values = Object.entries(opens.values) as [FacetName, string][];
    const isChosen = values.every(([facet, value]) => chosen[facet]?.has(value));
    const wanted: Chosen = Object.fromEntries(values.map(([facet, value]) => [facet, new Set([value])]));
    view.update({ message: undefined, chosen: isChosen ? chosen : wanted });
  };
  return (
    <button type="button" id="finding" onClick={open}>
      <span>{sentence.map((part) => (typeof part === 'string' ? part : <bdi>{part.name}</bdi>))}</span>
    </button>
  );
}

function Footer({ view }: { view: View }) {
  const { selected, shown, status, problem, formats } = view.state;
  const { formatNumber } = formats;
  const away = selected.size - shown.filter(({ id }) => selected.has(id)).length;
  const text = `${formatNumber(selected.size)} selected${away > 0 ? `, ${formatNumber(away)} filtered out` : ''}`;
  const canCompare = selected.size >= 2 && selected.size <= maxCompared;
  return (
    <>
      <NextPage view={view} />
      <footer id="footer" class={selected.size > 0 || status !== '' || problem ? 'busy' : ''}>
        {selected.size > 0 && (
          <div id="selection">
            <button
              type="button"
              class="quiet"
              aria-label={`Clear the selection: ${text}`}
              onClick={() => view.update({ selected: new Set() })}
            >
              <span class="count">
                <b>{formatNumber(selected.size)}</b>
                <span class="name">{text.replace(/^\S+/, '')}</span>
              </span>{' '}
              ×
            </button>
            {canCompare && (
              <button type="button" onClick={() => view.update({ compared: [...selected] })}>
                Compare
              </button>
            )}
            <Actions view={view} ids={[...selected]} />
          </div>
        )}
        <p id="status" role="status">
          {status}
        </p>
        <div id="problem" role="alert">
          {problem && <Explained problem={problem} />}
        </div>
      </footer>
    </>
  );
}

/** Longer texts are for models. Their first sentence of their own says what is wrong. */
const sentence = /^(?:The call is not valid\.[^\n]*\n)?(?:The service says: ")?([^\n]{0,300}?[.!?])(?=[\s"]|$)/;
const maxShown = 160;

function Explained({ problem: { text, again } }: { problem: Problem }) {
  const isLong = text.length > maxShown || text.includes('\n');
  const first = (isLong && sentence.exec(text)?.[1]) || text;
  return (
    <>
      <p dir="auto">{first}</p>
      {first !== text && (
        <details>
          <summary>Details</summary>
          <p dir="auto">{text}</p>
        </details>
      )}
      {again && (
        <button type="button" class="primary" onClick={again}>
          Try again
        </button>
      )}
    </>
  );
}

/** The next page of a search. It takes a second click, on a button that names the price. */
function NextPage({ view }: { view: View }) {
  const { context, offered, formats } = view.state;
  /** The result whose next page waits for a second click. Another result starts anew. */
  const [confirming, setConfirming] = useState<BoardContext>();
  const [isBusy, setBusy] = useState(false);
  if (!context.cursor || context.tool !== 'search_ads' || !offered.includes('search_ads')) return null;
  const load = async () => {
    setConfirming(undefined);
    setBusy(true);
    view.update({ status: 'Searching …', problem: undefined });
    try {
      // With `fresh`, the following pages would be paid again.
      const { fresh: _fresh, ...search } = view.state.args;
      const next = await view.server.search({ ...search, cursor: context.cursor });
      const { nextCredits: _, ...before } = context;
      view.update({ context: { ...before, ...next } });
      await view.load(next.ids ?? []);
      view.update({ status: paidText(next.receipt, formats) });
    } catch (error) {
      view.update({ status: '', problem: problemFrom(error, () => setConfirming(view.state.context)) });
    }
    setBusy(false);
  };
  // A page that is cached now may no longer be cached when it is asked for.
  const { nextCredits } = context;
  const price = `${nextCredits?.atMost === 0 ? ',' : nextCredits === undefined ? '' : ' for'} ${creditsText(nextCredits, formats)}`;
  const isConfirming = confirming === context;
  return (
    <div id="more">
      {/* The same button takes the focus, so that neither a key held down nor a double click pays. */}
      <button type="button" disabled={isBusy} onClick={() => setConfirming(isConfirming ? undefined : context)}>
        {isBusy ? 'Searching …' : isConfirming ? 'Cancel' : `More ads${price} …`}
      </button>
      {isConfirming && (
        <button type="button" class="primary" onClick={({ detail }) => detail < 2 && void load()}>
          Search{price}
        </button>
      )}
    </div>
  );
}
