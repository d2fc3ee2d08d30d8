import { render } from 'preact';
import { createFormatters } from '../../ui/formats.ts';
import type { BoardAdsResult, BriefAd } from '../payload.ts';
import { Board } from './board.tsx';
import { getVariantId, selectFinding } from './finding.ts';
import { formatEmptyResult, hasTimeFilter } from './heading.ts';
import {
  applyTheme,
  connectHost,
  createToolClient,
  getErrorExplanation,
  isDemoResult,
  type JsonObject,
  observeDisplay,
  readAdsInResult,
  readBoardData,
  readIsRetryable,
} from './host.ts';
import { createPictureLoader } from './pictures.tsx';
import { askToRetry, updateModelContext } from './selection.tsx';
import {
  applyStateChange,
  type BoardController,
  type BoardState,
  countAllMatches,
  createProblem,
  createTimeAxis,
  initialState,
} from './state.ts';

/** The maximum number of ad ids in one call. The server returns as many of these ads as fit into one result. */
const maxIdsPerCall = 1000;

let state: BoardState = initialState;
let capabilities: JsonObject = {};
const host = connectHost({
  'ui/notifications/tool-input': (params) =>
    board.updateState({ toolArguments: omitEmptyArguments(params.arguments as BoardState['toolArguments']) }),
  'ui/notifications/tool-result': (result) => void showResult(result),
  'ui/notifications/tool-cancelled': () => board.updateState({ statusText: 'The call was cancelled.' }),
  'ui/notifications/host-context-changed': (context) => applyHostContext(context),
});
const toolClient = createToolClient(host);
/**
 * The number of each variant (a group of ads with nearly the same text) by variant id, and the ids of its ads in the
 * order in which the board first showed them. For example, the second ad of variant 3 is labeled `3.2`.
 */
const numberedVariants = new Map<string, { number: number; ids: string[] }>();

const board: BoardController = {
  get state() {
    return state;
  },
  updateState: (change) => {
    const { selectedIds } = state;
    state = applyStateChange(state, change);
    render(<Board board={board} />, document.body);
    if (state.selectedIds !== selectedIds) void updateModelContext(board);
  },
  getAdNumber: (ad) => {
    const variantId = getVariantId(ad);
    const { number, ids } = numberedVariants.get(variantId) ?? { number: numberedVariants.size + 1, ids: [] };
    if (!ids.includes(ad.id)) ids.push(ad.id);
    numberedVariants.set(variantId, { number, ids });
    const index = ids.indexOf(ad.id);
    return index === 0 ? String(number) : `${number}.${index + 1}`;
  },
  hasCapability: (capability) => capabilities[capability] !== undefined,
  loadAds: (ids) => readWithStatus(() => loadAds(ids)),
  applyHostContext,
  fullAds: new Map(),
  toolClient,
  host,
  pictureLoader: createPictureLoader(toolClient),
};

/** Omits arguments that are null or an empty text. To the server, such arguments are missing, too. */
const omitEmptyArguments = (toolArguments: BoardState['toolArguments'] | undefined): BoardState['toolArguments'] =>
  Object.fromEntries(Object.entries(toolArguments ?? {}).filter(([, value]) => value !== null && value !== ''));

function applyHostContext(context: JsonObject): void {
  applyTheme(context);
  applyDisplayContext(context);
}

/** Shows the result of the tool call for which the host opened the board. */
async function showResult(toolResult: JsonObject): Promise<void> {
  const boardData = { ...readBoardData(toolResult), isDemo: isDemoResult(toolResult) };
  board.updateState({ boardData, problem: undefined });
  if (toolResult.isError === true) {
    const canAskToRetry = board.hasCapability('message') && readIsRetryable(toolResult) !== false;
    const retry = canAskToRetry ? () => void askToRetry(board) : undefined;
    return board.updateState({ statusText: '', problem: { text: getErrorExplanation(toolResult), retry } });
  }
  if (boardData.isPages) return board.updateState({ statusText: 'This list holds pages. The board shows ads.' });
  if (boardData.estimate && !boardData.gathering) return board.updateState({ statusText: '' });
  await readWithStatus(() =>
    boardData.gathering ? loadGathering(boardData.gathering) : loadListedAds(toolResult, boardData.ids ?? []),
  );
  const { collectionId } = state.toolArguments;
  if (collectionId === undefined || !state.offeredTools.includes('list_collections')) return;
  const collections = await toolClient.listCollections().catch(() => []);
  board.updateState({ collectionName: collections.find(({ id }) => id === collectionId)?.name });
}

/**
 * Runs `readAds` and shows its progress or its error. After an error, the ads that were already received stay on the
 * board.
 */
async function readWithStatus(readAds: () => Promise<void>): Promise<void> {
  board.updateState({ statusText: 'Reading the ads …', problem: undefined });
  try {
    await readAds();
    board.updateState({ statusText: state.ads.length === 0 ? formatEmptyResult(state) : '' });
  } catch (error) {
    const { text, retry } = createProblem(error, () =>
      readWithStatus(state.pendingIds.length > 0 ? () => loadAds(state.pendingIds) : readAds),
    );
    board.updateState({ statusText: '', problem: { text: `The ads could not be read. ${text}`, retry } });
  }
}

/**
 * Loads the ads of a tool result from the server. For an ad that the server no longer stores, the board shows the
 * fields that the tool result contains.
 */
async function loadListedAds(toolResult: JsonObject, ids: readonly string[]): Promise<void> {
  const loadError = await loadAds(ids).catch((error: unknown) => error);
  const loadedIds = new Set(state.ads.map(({ id }) => id.toLowerCase()));
  const adsOnlyInResult = readAdsInResult(toolResult).filter(({ id }) => !loadedIds.has(id.toLowerCase()));
  if (adsOnlyInResult.length === 0 && loadError !== undefined) throw loadError;
  const idsOnlyInResult = new Set(adsOnlyInResult.map(({ id }) => id.toLowerCase()));
  for (const ad of adsOnlyInResult) board.fullAds.set(ad.id, ad);
  if (adsOnlyInResult.length > 0)
    addAds(adsOnlyInResult, { pendingIds: [], missingIds: state.missingIds.filter((id) => !idsOnlyInResult.has(id)) });
}

async function loadGathering(id: string): Promise<void> {
  const response = await toolClient.readAds({ gathering: id });
  board.updateState({ gathering: response.gathering, sortName: 'days' });
  showResponses([response], response.left);
  await loadAds(response.left);
}

/**
 * Loads ads by id, in several calls. The board shows the ads of the first call immediately. It shows all other ads
 * together at the end, so that the list does not keep changing.
 */
async function loadAds(ids: readonly string[]): Promise<void> {
  let responses: BoardAdsResult[] = [];
  let remainingIds = [...ids];
  try {
    while (remainingIds.length > 0) {
      const response = await toolClient.readAds({ ids: remainingIds.slice(0, maxIdsPerCall) });
      if (response.ads.length === 0 && response.left.length > 0)
        throw new Error('The server returned none of these ads.');
      remainingIds = [...response.left, ...remainingIds.slice(maxIdsPerCall)];
      responses.push(response);
      if (state.ads.length > 0 && remainingIds.length > 0) board.updateState({ pendingIds: remainingIds });
      else if (state.ads.length === 0) {
        showResponses(responses, remainingIds);
        responses = [];
      }
    }
  } finally {
    showResponses(responses, remainingIds);
  }
}

function showResponses(responses: readonly BoardAdsResult[], pendingIds: readonly string[]): void {
  const missingIds = [...state.missingIds, ...responses.flatMap((response) => response.missingIds)];
  const { asOf, offeredTools } = responses.at(-1) ?? state;
  const readAt = [state.readAt, ...responses.map((response) => response.readAt)]
    .filter((time) => time !== undefined)
    .sort()[0];
  addAds(
    responses.flatMap(({ ads }) => ads),
    { pendingIds, missingIds, asOf, readAt, offeredTools },
  );
}

function addAds(ads: readonly BriefAd[], stateChange: Partial<BoardState>): void {
  const knownIds = new Set(state.ads.map(({ id }) => id));
  const newAds = ads.filter(({ id }) => !knownIds.has(id));
  // While the board is still loading ads, the ads on the board have preliminary numbers. Remove these numbers, so that
  // all ads are numbered in their final order. Keep them if the user has selected ads or asked about them, because the
  // model then knows these ads by their numbers.
  const hasModelSeenNumbers = state.selectedIds.size > 0 || state.idsAskedAbout.length > 0;
  if (newAds.length > 0 && state.pendingIds.length > 0 && !hasModelSeenNumbers) numberedVariants.clear();
  const allAds = [...state.ads, ...newAds];
  const nextState = { ...state, ...stateChange, ads: allAds };
  const { gathering, boardData, toolArguments } = nextState;
  // Count launches only if the board shows the result of a search. Ads that somebody picked, e.g. for `view_ads` or a
  // collection, are only some ads of their advertisers. The board does not know the filters of a watch, which can limit
  // the dates of its ads.
  const isSearch = gathering !== undefined || boardData.tool === 'search_ads' || boardData.totalHits !== undefined;
  const isPlainSearch = isSearch && toolArguments.collectionId === undefined && boardData.checks === undefined;
  const hasAllLaunches = isPlainSearch && countAllMatches(nextState) === undefined && !hasTimeFilter(toolArguments);
  const isComplete = nextState.pendingIds.length === 0;
  board.updateState({
    ...stateChange,
    ...(newAds.length > 0 && { ads: allAds, timeAxis: createTimeAxis(allAds, nextState.asOf) }),
    finding: isComplete
      ? selectFinding(allAds, { readAt: nextState.readAt, hasAllLaunches, formatters: nextState.formatters })
      : undefined,
  });
}

const { hostContext, hostCapabilities } = await host.request('ui/initialize', {
  protocolVersion: '2026-01-26',
  appInfo: { name: 'ad-library-board', version: '1.0.0' },
  appCapabilities: { availableDisplayModes: ['inline', 'fullscreen'] },
});
const initialContext = (hostContext as JsonObject | undefined) ?? {};
if (typeof initialContext.locale === 'string')
  state = { ...state, formatters: createFormatters(initialContext.locale) };
capabilities = (hostCapabilities as JsonObject | undefined) ?? {};
host.notify('ui/notifications/initialized', {});
const applyDisplayContext = observeDisplay(host, (display) => {
  // Make an inline board transparent, so that the background of the conversation is visible.
  document.documentElement.classList.toggle('inline', display.mode === 'inline');
  board.updateState({ display });
});
applyHostContext(initialContext);
