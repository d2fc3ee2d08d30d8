import type { BoardAd, BoardAds } from '../payload.ts';
import { reportSelection } from './ask.ts';
import { drawCharts } from './charts.ts';
import { createChips } from './chips.ts';
import { createDrawer } from './drawer.ts';
import { createFrame } from './frame.ts';
import { connectHost, type Message } from './host.ts';
import { createList } from './list.ts';
import { adsIn, contextOf } from './listed-ads.ts';
import { createPictures } from './pictures.ts';
import { serverBehind, textOf } from './server.ts';
import { followSize } from './size.ts';
import { emptyState, problemOf, type State, type View } from './state.ts';
import { applyTheme } from './theme.ts';
import { axisOf } from './time-axis.ts';

/** How many ads are asked for in one call; the server sends as many of them as fit. */
const perCall = 400;

let state: State = emptyState;
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
    draw(before);
  },
  openAd: (ad) => drawer.open(ad),
  load: loadAds,
  server,
  host,
  pictures: createPictures(server),
};
const list = createList(view);
const drawer = createDrawer(view, list);
const chips = createChips(view);
const frame = createFrame(view);
const size = followSize(host);

/** Draws again what depends on what has changed. */
function draw(before: State): void {
  const { ads, chosen, sort, mode, selected } = state;
  const isOther = ads !== before.ads || chosen !== before.chosen;
  if (isOther) {
    drawCharts(view);
    chips.draw();
  }
  if (isOther || sort !== before.sort || mode !== before.mode || selected !== before.selected) list.draw();
  if (selected !== before.selected) reportSelection(view);
  frame.draw();
}

function takeContext(context: Message): void {
  applyTheme(context);
  size.follow(context);
}

async function showResult(result: Message): Promise<void> {
  const context = contextOf(result);
  if (result.isError === true) return view.update({ status: textOf(result) });
  if (context.isPages) return view.update({ status: 'This list holds pages. The board shows ads.' });
  view.update({ context, status: 'Reading the ads …' });
  try {
    if (context.gathering) await loadGathering(context.gathering);
    else await loadListed(result, context.ids ?? []);
    view.update({ status: state.ads.length === 0 ? 'There are no ads to show.' : '' });
  } catch (error) {
    view.update({ status: problemOf(error) });
  }
}

/** What the server keeps of the ads, and what the result says of the others. */
async function loadListed(result: Message, ids: readonly string[]): Promise<void> {
  const problem = await loadAds(ids).catch((error: unknown) => error);
  const shown = new Set(state.ads.map(({ id }) => id.toLowerCase()));
  const others = adsIn(result).filter(({ id }) => !shown.has(id.toLowerCase()));
  if (others.length === 0 && problem !== undefined) throw problem;
  const left = new Set(others.map(({ id }) => id.toLowerCase()));
  if (others.length > 0) add(others, { coming: 0, missing: state.missing.filter((id) => !left.has(id)) });
}

async function loadGathering(id: string): Promise<void> {
  const { gathering, left, ...first } = await server.ads({ gathering: id });
  view.update({ gathering, sort: 'days' });
  show(first, left.length);
  await loadAds(left);
}

async function loadAds(ids: readonly string[]): Promise<void> {
  let left = [...ids];
  while (left.length > 0) {
    const answer = await server.ads({ ids: left.slice(0, perCall) });
    left = [...answer.left, ...left.slice(perCall)];
    // Nothing of what was asked for: the rest would not come either.
    if (answer.ads.length === 0 && answer.left.length > 0) break;
    show(answer, left.length);
  }
}

function show({ ads, missing, asOf, offered }: Omit<BoardAds, 'left'>, coming: number): void {
  add(ads, { coming, missing: [...state.missing, ...missing], asOf, offered });
}

/** Adds ads to those that are shown. */
function add(more: readonly BoardAd[], change: Partial<State>): void {
  const known = new Set(state.ads.map(({ id }) => id));
  const ads = [...state.ads, ...more.filter(({ id }) => !known.has(id))];
  view.update({ ...change, ads, axis: axisOf(ads, change.asOf ?? state.asOf) });
}

const { hostContext } = await host.request('ui/initialize', {
  protocolVersion: '2026-01-26',
  appInfo: { name: 'ad-library-board', version: '1.0.0' },
  appCapabilities: { availableDisplayModes: ['inline', 'fullscreen'] },
});
takeContext((hostContext as Message | undefined) ?? {});
host.notify('ui/notifications/initialized', {});
frame.draw();
