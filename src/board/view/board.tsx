import { useMemo, useState } from 'preact/hooks';
import { CommonValuesChart, DaysRunningChart, LaunchesChart } from '../../ui/bars.tsx';
import type { BoardData } from '../payload.ts';
import { CompareDialog, maxComparedAds } from './compare.tsx';
import { AdDrawer } from './drawer.tsx';
import { Filters } from './filters.tsx';
import { type Finding, getVariantId, minAdsForOverview } from './finding.ts';
import {
  buildHeading,
  describeChecks,
  formatChartScopeWarning,
  formatEstimate,
  formatHeadingDetails,
  formatPrice,
  formatReceipt,
  formatVisibleCounts,
} from './heading.ts';
import { AdList } from './list.tsx';
import { AdActions, SaveDialog } from './selection.tsx';
import {
  areVariantsGrouped,
  type BoardController,
  type BoardProblem,
  type BoardState,
  type ChosenValues,
  countActiveFilters,
  countVariants,
  createProblem,
  type FacetName,
  facets,
  getSortTitle,
  type SortName,
  selectFilterableAds,
  sortNames,
  toggleValue,
} from './state.ts';

/**
 * The whole ad board: the heading, the panel with charts and filters, the ads, the footer and the dialogs. If there is
 * little space, the panel is closed until the user opens it.
 */
export function Board({ board }: { board: BoardController }) {
  const { state } = board;
  const { ads, openAdId, comparedIds, idsToSave, display, isPanelOpen = !display.hasLittleSpace } = state;
  // If filters are active, always show the panel, because the user clears the filters there.
  const hasPanel = selectFilterableAds(state).length >= minAdsForOverview || countActiveFilters(state.chosenValues) > 0;
  const estimate = formatEstimate(state);
  const openAd = ads.find(({ id }) => id === openAdId);
  return (
    <>
      <main class={[display.hasLittleSpace && 'tight', estimate && 'estimate'].filter(Boolean).join(' ')}>
        <header>
          <Heading state={state} estimate={estimate} />
          {ads.length > 0 && <Controls board={board} isPanelOpen={hasPanel ? isPanelOpen : undefined} />}
        </header>
        {state.finding && <FindingButton board={board} finding={state.finding} />}
        {hasPanel && isPanelOpen && (
          <section id="panel" aria-label="Charts and filters">
            <Filters board={board}>
              <GroupingChoice board={board} />
            </Filters>
            <p id="part">{formatChartScopeWarning(state)}</p>
            <Charts board={board} />
          </section>
        )}
        <AdList board={board} />
        <Footer board={board} />
      </main>
      {openAd && <AdDrawer board={board} ad={openAd} />}
      {comparedIds && <CompareDialog board={board} ids={comparedIds} />}
      {idsToSave && <SaveDialog board={board} ids={idsToSave} />}
    </>
  );
}

function Heading({ state, estimate }: { state: BoardState; estimate: string | undefined }) {
  const heading = buildHeading(state);
  return (
    <div id="heading">
      <h1>
        <bdi id="title">{estimate ?? heading.title}</bdi>{' '}
        {state.boardData.isDemo && estimate === undefined && <span id="notice">Demo data</span>}
      </h1>
      {estimate === undefined && (
        <p id="subtitle">
          <b id="count">{state.ads.length > 0 ? formatVisibleCounts(state) : state.problem ? 'No ads came' : ''}</b>{' '}
          <span id="about">{formatHeadingDetails(state, heading.conditions)}</span>
        </p>
      )}
      <CheckNotes state={state} />
      {estimate === undefined && state.gathering?.notes.map((note) => <p class="note">{note}</p>)}
    </div>
  );
}

/** The maximum number of sentences about checked watches that are visible without a click. */
const maxVisibleCheckNotes = 3;

/** One sentence for each checked watch. Many sentences are collapsed, so that the ads stay visible. */
function CheckNotes({ state }: { state: BoardState }) {
  const checks = describeChecks(state);
  const notes = checks.map(({ sentence }) => (
    <p class="note" dir="auto">
      {sentence}
    </p>
  ));
  if (checks.length <= maxVisibleCheckNotes) return <>{notes}</>;
  const { formatCount, formatNumber } = state.formatters;
  const shownCount = checks.filter(({ areAdsShown }) => areAdsShown).length;
  return (
    <details class="note">
      <summary>
        Shows ads of {formatNumber(shownCount)} of {formatCount(checks.length, 'watch', 'watches')}
      </summary>
      {notes}
    </details>
  );
}

/**
 * The controls next to the board's heading, such as the sort menu and the buttons for filters and full screen.
 * @param props.isPanelOpen true if charts and filters are shown; undefined if there are too few ads for them
 */
function Controls({ board, isPanelOpen }: { board: BoardController; isPanelOpen: boolean | undefined }) {
  const { openVariantId, listLayout, sortName, chosenValues, display, formatters } = board.state;
  const activeFilterCount = countActiveFilters(chosenValues);
  return (
    <div id="tools">
      {openVariantId !== undefined && <BackButton board={board} />}
      <TwoOptionChoice
        label="View"
        symbols={['▦', '☰']}
        names={['Cards', 'Timeline']}
        isFirstChosen={listLayout === 'cards'}
        onChoose={(isFirst) => board.updateState({ listLayout: isFirst ? 'cards' : 'timeline' })}
      />
      <label class="sort">
        <span>Sort</span>{' '}
        <select
          id="sort"
          value={sortName}
          onChange={({ currentTarget }) => board.updateState({ sortName: currentTarget.value as SortName })}
        >
          {sortNames.map((name) => (
            <option value={name}>{getSortTitle(name)}</option>
          ))}
        </select>
      </label>
      {isPanelOpen !== undefined && (
        <button
          type="button"
          id="filters"
          aria-expanded={isPanelOpen}
          onClick={() => board.updateState({ isPanelOpen: !isPanelOpen })}
        >
          Filters{activeFilterCount > 0 && ` · ${formatters.formatNumber(activeFilterCount)}`}
        </button>
      )}
      {display.canShowFullScreen && <ExpandButton board={board} />}
    </div>
  );
}

/** Charts of the visible ads. Renders nothing if there are so few ads that the user can look at each of them. */
function Charts({ board }: { board: BoardController }) {
  const { visibleAds, readAt, chosenValues, formatters } = board.state;
  const createToggleHandler = (facet: 'format' | 'cta') => (value: string) =>
    board.updateState({ chosenValues: toggleValue(chosenValues, facet, value) });
  return useMemo(
    () =>
      visibleAds.length < minAdsForOverview ? null : (
        <section id="charts" class="charts" aria-label="Overview">
          <LaunchesChart ads={visibleAds} readAt={readAt} formatters={formatters} />
          <DaysRunningChart ads={visibleAds} formatters={formatters} />
          <CommonValuesChart
            title={facets.format.title}
            values={visibleAds.map(({ displayFormat }) => displayFormat)}
            onChoose={createToggleHandler('format')}
            formatters={formatters}
          />
          <CommonValuesChart
            title={facets.cta.title}
            values={visibleAds.map(({ ctaType }) => ctaType)}
            onChoose={createToggleHandler('cta')}
            formatters={formatters}
          />
        </section>
      ),
    [visibleAds, readAt, chosenValues, formatters],
  );
}

/**
 * Two buttons with which the user chooses whether ads with nearly the same text (a variant) share one card. Renders
 * nothing if this choice would make no difference.
 */
const GroupingChoice = ({ board }: { board: BoardController }) =>
  board.state.openVariantId !== undefined || countVariants(board.state.ads) === board.state.ads.length ? null : (
    <TwoOptionChoice
      label="One card for each"
      names={['Messages', 'Ads']}
      isFirstChosen={areVariantsGrouped(board.state)}
      onChoose={(isFirst) => board.updateState({ shouldGroupVariants: isFirst })}
    />
  );

interface TwoOptionChoiceProps {
  label: string;
  /** The symbols that replace the names on the buttons in narrow windows. */
  symbols?: readonly string[];
  names: readonly string[];
  isFirstChosen: boolean;
  onChoose(isFirst: boolean): void;
}

/** Two buttons for two options. The button of the chosen option appears pressed. */
const TwoOptionChoice = ({ label, symbols, names, isFirstChosen, onChoose }: TwoOptionChoiceProps) => (
  <fieldset class="modes" aria-label={label}>
    {names.map((name, index) => (
      <button
        type="button"
        key={name}
        aria-label={name}
        aria-pressed={isFirstChosen === (index === 0)}
        onClick={() => onChoose(index === 0)}
      >
        {symbols && <span class="sign">{symbols[index]}</span>}
        <span class="name">{name}</span>
      </button>
    ))}
  </fieldset>
);

/** The button that returns to all ads from the ads of one variant (a group of ads with nearly the same text). */
function BackButton({ board }: { board: BoardController }) {
  const showAllAds = () => {
    const { openVariantId } = board.state;
    board.updateState({ openVariantId: undefined });
    const groupIndex = board.state.adGroups.findIndex(([ad]) => ad !== undefined && getVariantId(ad) === openVariantId);
    document.querySelectorAll<HTMLElement>('#list .open')[groupIndex]?.focus();
  };
  return (
    <button type="button" id="back" class="primary" onClick={showAllAds}>
      ‹ All {board.state.formatters.formatNumber(countVariants(board.state.ads))} messages
    </button>
  );
}

/** The button that switches between full screen and the display within the conversation. */
function ExpandButton({ board }: { board: BoardController }) {
  const isFullScreen = board.state.display.mode === 'fullscreen';
  const toggleFullScreen = () =>
    board.host
      .request('ui/request-display-mode', { mode: isFullScreen ? 'inline' : 'fullscreen' })
      .then(board.applyHostContext, () => board.applyHostContext({ availableDisplayModes: [] }));
  const name = isFullScreen ? 'Close' : 'Expand';
  return (
    <button type="button" id="expand" aria-label={name} onClick={() => void toggleFullScreen()}>
      <span class="sign">{isFullScreen ? '⤡' : '⤢'}</span>
      <span class="name">{name}</span>
    </button>
  );
}

/**
 * A button with a sentence about a notable fact, e.g. which ad has run the longest. A click on the button opens the ads
 * that the sentence mentions.
 */
function FindingButton({
  board,
  finding: { sentenceParts, clickTarget },
}: {
  board: BoardController;
  finding: Finding;
}) {
  const { chosenValues } = board.state;
  const openTarget = () => {
    if ('ad' in clickTarget) return board.updateState({ openAdId: clickTarget.ad });
    if ('variant' in clickTarget) return board.updateState({ openVariantId: clickTarget.variant, chosenValues: {} });
    const values = Object.entries(clickTarget.values) as [FacetName, string][];
    const isChosen = values.every(([facet, value]) => chosenValues[facet]?.has(value));
    const valuesToChoose: ChosenValues = Object.fromEntries(values.map(([facet, value]) => [facet, new Set([value])]));
    board.updateState({ openVariantId: undefined, chosenValues: isChosen ? chosenValues : valuesToChoose });
  };
  return (
    <button type="button" id="finding" onClick={openTarget}>
      <span>{sentenceParts.map((part) => (typeof part === 'string' ? part : <bdi>{part.name}</bdi>))}</span>
    </button>
  );
}

/**
 * The footer of the board: the button that loads the next page, the actions for selected ads, the status line and the
 * current error.
 */
function Footer({ board }: { board: BoardController }) {
  const { selectedIds, visibleAds, statusText, problem, formatters } = board.state;
  const { formatNumber } = formatters;
  const hiddenCount = selectedIds.size - visibleAds.filter(({ id }) => selectedIds.has(id)).length;
  const selectionText = `${formatNumber(selectedIds.size)} selected${hiddenCount > 0 ? `, ${formatNumber(hiddenCount)} filtered out` : ''}`;
  const canCompare = selectedIds.size >= 2 && selectedIds.size <= maxComparedAds;
  return (
    <>
      <NextPageButton board={board} />
      <footer id="footer" class={selectedIds.size > 0 || statusText !== '' || problem ? 'busy' : ''}>
        {selectedIds.size > 0 && (
          <div id="selection">
            <button
              type="button"
              class="quiet"
              aria-label={`Clear the selection: ${selectionText}`}
              onClick={() => board.updateState({ selectedIds: new Set() })}
            >
              <span class="count">
                <b>{formatNumber(selectedIds.size)}</b>
                <span class="name">{selectionText.replace(/^\S+/, '')}</span>
              </span>{' '}
              ×
            </button>
            {canCompare && (
              <button type="button" onClick={() => board.updateState({ comparedIds: [...selectedIds] })}>
                Compare
              </button>
            )}
            <AdActions board={board} ids={[...selectedIds]} />
          </div>
        )}
        <p id="status" role="status">
          {statusText}
        </p>
        <div id="problem" role="alert">
          {problem && <ProblemText problem={problem} />}
        </div>
      </footer>
    </>
  );
}

/**
 * Captures the first sentence of an error text. The server writes long error texts for models, so the board shows this
 * sentence and lets the user expand the rest.
 */
const firstSentencePattern =
  /^(?:The call is not valid\.[^\n]*\n)?(?:The service says: ")?([^\n]{0,300}?[.!?])(?=[\s"]|$)/;
/** The maximum length of an error text that the board shows without collapsing it, in characters. */
const maxUncollapsedLength = 160;

function ProblemText({ problem: { text, retry } }: { problem: BoardProblem }) {
  const isLong = text.length > maxUncollapsedLength || text.includes('\n');
  const firstSentence = (isLong && firstSentencePattern.exec(text)?.[1]) || text;
  return (
    <>
      <p dir="auto">{firstSentence}</p>
      {firstSentence !== text && (
        <details>
          <summary>Details</summary>
          <p dir="auto">{text}</p>
        </details>
      )}
      {retry && (
        <button type="button" class="primary" onClick={retry}>
          Try again
        </button>
      )}
    </>
  );
}

/**
 * The button that loads the next page of a search. Because a page costs credits, the user must confirm its price with a
 * second click.
 */
function NextPageButton({ board }: { board: BoardController }) {
  const { boardData, offeredTools, formatters } = board.state;
  /**
   * The search result whose next page the user has chosen to load but not yet confirmed. If another result arrives
   * before the second click, the user must confirm again.
   */
  const [boardDataToConfirm, setBoardDataToConfirm] = useState<BoardData>();
  const [isBusy, setBusy] = useState(false);
  if (!boardData.cursor || boardData.tool !== 'search_ads' || !offeredTools.includes('search_ads')) return null;
  const loadNextPage = async () => {
    setBoardDataToConfirm(undefined);
    setBusy(true);
    board.updateState({ statusText: 'Searching …', problem: undefined });
    try {
      // Omit the `fresh` argument, which bypasses the cache. With `fresh`, the service would charge again for
      // cached pages.
      const { fresh: _fresh, ...searchArguments } = board.state.toolArguments;
      const nextBoardData = await board.toolClient.searchAds({ ...searchArguments, cursor: boardData.cursor });
      const { nextCredits: _, ...boardDataWithoutPrice } = boardData;
      board.updateState({ boardData: { ...boardDataWithoutPrice, ...nextBoardData } });
      await board.loadAds(nextBoardData.ids ?? []);
      board.updateState({ statusText: formatReceipt(nextBoardData.receipt, formatters) });
    } catch (error) {
      board.updateState({
        statusText: '',
        problem: createProblem(error, () => setBoardDataToConfirm(board.state.boardData)),
      });
    }
    setBusy(false);
  };
  // Even if the cache contains the next page, the button may show a price of "at most …", because the page may leave
  // the cache before the second click.
  const { nextCredits } = boardData;
  const priceText = `${nextCredits?.atMost === 0 ? ',' : nextCredits === undefined ? '' : ' for'} ${formatPrice(nextCredits, formatters)}`;
  const isConfirming = boardDataToConfirm === boardData;
  return (
    <div id="more">
      {/* The focused button becomes "Cancel", so that neither a key held down nor a double click confirms the price. */}
      <button
        type="button"
        disabled={isBusy}
        onClick={() => setBoardDataToConfirm(isConfirming ? undefined : boardData)}
      >
        {isBusy ? 'Searching …' : isConfirming ? 'Cancel' : `More ads${priceText} …`}
      </button>
      {isConfirming && (
        <button type="button" class="primary" onClick={({ detail }) => detail < 2 && void loadNextPage()}>
          Search{priceText}
        </button>
      )}
    </div>
  );
}
