import type { BoardAd, BoardAds } from '../payload.ts';
import { drawCharts } from './charts.ts';
import { createDrawer } from './drawer.ts';
import { createChips } from './filters.ts';
import { createFrame } from './frame.ts';
import {
  adsIn,
  applyTheme,
  connectHost,
  contextOf,
  explanationIn,
  followSize,
  isDemo,
  type Message,
  serverBehind,
} from './host.ts';
import { createList } from './list.ts';
import { createPictures } from './pictures.ts';
import { askToTryAgain, tellModel } from './selection.ts';
import { axisOf, choosable, emptyState, filtered, problemOf, type State, type View } from './state.ts';
import { useLocale } from './words.ts';

/** How many ads are asked for in one call; the server sends as many of them as fit. */
const perCall = 1000;

let state: State = emptyState;
let capabilities: Message = {};
const host = connectHost({
  'ui/notifications/tool-input': (params) => view.update({ args: (params.arguments as State['args']) ?? {} }),
  'ui/notifications/tool-result': (result) => void showResult(result),
  'ui/notifications/tool-cancelled': () => view.update({ status: 'The call was cancelled.' }),
  'ui/notifications/host-context-changed': (context) => takeContext(context),
});
const server = serverBehind(host);

const view: View = {
  get state() {
    return state;
  },
  update: (change) => {
    const before = state;
    state = { ...state, ...change };
    const isOther = state.ads !== before.ads || state.message !== before.message;
    if (isOther || state.chosen !== before.chosen) state.shown = filtered(choosable(state), state.chosen);
    draw(before);
  },
  openAd: (ad) => drawer.open(ad),
  numberOf: (id) => list.numberOf(id),
  can: (capability) => capabilities[capability] !== undefined,
  load: (ids) => reading(() => loadAds(ids)),
  server,
  host,
  pictures: createPictures(server),
};
const list = createList(view);
const drawer = createDrawer(view, list);
const chips = createChips(view);
const frame = createFrame(view);
const size = followSize(host);

/** Redraws the parts that depend on the change. */
function draw(before: State): void {
  const { shown, sort, mode, selected, byMessage } = state;
  const isOther = shown !== before.shown;
  if (isOther) chips.draw();
  const isElse = sort !== before.sort || mode !== before.mode || byMessage !== before.byMessage;
  if (isOther || isElse || selected !== before.selected) list.draw();
  if (isOther || state.coming !== before.coming || state.context !== before.context) drawCharts(view);
  if (selected !== before.selected) void tellModel(view);
  frame.draw();
}

function takeContext(context: Message): void {
  applyTheme(context);
  size.follow(context);
}

async function showResult(result: Message): Promise<void> {
  const context = { ...contextOf(result), isDemo: isDemo(result) };
  view.update({ context, problem: undefined });
  if (result.isError === true)
    return view.update({
      status: '',
      problem: { text: explanationIn(result), again: view.can('message') ? () => void askToTryAgain(view) : undefined },
    });
  if (context.isPages) return view.update({ status: 'This list holds pages. The board shows ads.' });
  if (context.estimate && !context.gathering) return view.update({ status: '' });
  await reading(() => (context.gathering ? loadGathering(context.gathering) : loadListed(result, context.ids ?? [])));
  const { collectionId } = state.args;
  if (collectionId === undefined || !state.offered.includes('list_collections')) return;
  const collections = await server.collections().catch(() => []);
  view.update({ collection: collections.find(({ id }) => id === collectionId)?.name });
}

/**
 * Shows the progress while ads are read, and a button to try again after a failure. Ads that have come by then stay.
 */
async function reading(read: () => Promise<void>): Promise<void> {
  view.update({ status: 'Reading the ads …', problem: undefined });
  try {
    await read();
    view.update({ status: state.ads.length === 0 ? 'There are no ads to show.' : '' });
  } catch (error) {
    const again = () => void reading(state.coming.length > 0 ? () => loadAds(state.coming) : read);
    view.update({ status: '', problem: { text: `The ads could not be read. ${problemOf(error)}`, again } });
  }
}

/** Ads from the server, and for those that the server no longer has, what the result says of them. */
async function loadListed(result: Message, ids: readonly string[]): Promise<void> {
  const problem = await loadAds(ids).catch((error: unknown) => error);
  const shown = new Set(state.ads.map(({ id }) => id.toLowerCase()));
  const others = adsIn(result).filter(({ id }) => !shown.has(id.toLowerCase()));
  if (others.length === 0 && problem !== undefined) throw problem;
  const left = new Set(others.map(({ id }) => id.toLowerCase()));
  if (others.length > 0) add(others, { coming: [], missing: state.missing.filter((id) => !left.has(id)) });
}

async function loadGathering(id: string): Promise<void> {
  const first = await server.ads({ gathering: id });
  view.update({ gathering: first.gathering, sort: 'days' });
  show([first], first.left);
  await loadAds(first.left);
}

/** Draws the first ads at once, and all others together: a list that moves with every portion cannot be read. */
async function loadAds(ids: readonly string[]): Promise<void> {
  let come: BoardAds[] = [];
  let left = [...ids];
  try {
    while (left.length > 0) {
      const answer = await server.ads({ ids: left.slice(0, perCall) });
      if (answer.ads.length === 0 && answer.left.length > 0) throw new Error('The server gives none of them.');
      left = [...answer.left, ...left.slice(perCall)];
      come.push(answer);
      if (state.ads.length > 0) view.update({ coming: left });
      else {
        show(come, left);
        come = [];
      }
    }
  } finally {
    show(come, left);
  }
}

function show(answers: readonly BoardAds[], coming: readonly string[]): void {
  const missing = [...state.missing, ...answers.flatMap((answer) => answer.missing)];
  const { asOf, offered } = answers.at(-1) ?? state;
  add(
    answers.flatMap(({ ads }) => ads),
    { coming, missing, asOf, offered },
  );
}

/** Adds ads to those that are shown. */
function add(more: readonly BoardAd[], change: Partial<State>): void {
  const known = new Set(state.ads.map(({ id }) => id));
  const others = more.filter(({ id }) => !known.has(id));
  const ads = [...state.ads, ...others];
  view.update({ ...change, ...(others.length > 0 && { ads, axis: axisOf(ads, change.asOf ?? state.asOf) }) });
}

const { hostContext, hostCapabilities } = await host.request('ui/initialize', {
  protocolVersion: '2026-01-26',
  appInfo: { name: 'ad-library-board', version: '1.0.0' },
  appCapabilities: { availableDisplayModes: ['inline', 'fullscreen'] },
});
const { locale } = (hostContext as Message | undefined) ?? {};
if (typeof locale === 'string') useLocale(locale);
capabilities = (hostCapabilities as Message | undefined) ?? {};
takeContext((hostContext as Message | undefined) ?? {});
host.notify('ui/notifications/initialized', {});
frame.draw();
