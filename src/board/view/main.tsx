import { render } from 'preact';
import { createFormats } from '../../ui/formats.ts';
import type { BoardAds, BriefAd } from '../payload.ts';
import { Board } from './board.tsx';
import { findingOf, messageOf } from './finding.ts';
import { emptyText, filtersByTime } from './heading.ts';
import {
  adsIn,
  applyTheme,
  canRetry,
  connectHost,
  contextOf,
  explanationIn,
  followSize,
  isDemo,
  type Message,
  serverBehind,
} from './host.ts';
import { createPictures } from './pictures.tsx';
import { askToTryAgain, tellModel } from './selection.tsx';
import { axisOf, changed, emptyState, problemFrom, type State, type View, wholeOf } from './state.ts';

/** How many ads are asked for in one call; the server sends as many of them as fit. */
const perCall = 1000;

let state: State = emptyState;
let capabilities: Message = {};
const host = connectHost({
  'ui/notifications/tool-input': (params) => view.update({ args: (params.arguments as State['args']) ?? {} }),
  'ui/notifications/tool-result': (result) => void showResult(result),
  'ui/notifications/tool-cancelled': () => view.update({ status: 'The call was cancelled.' }),
  'ui/notifications/host-context-changed': (context) => follow(context),
});
const server = serverBehind(host);
/** The number of each message, and its ads in the order in which they were first drawn. */
const numbers = new Map<string, { number: number; ids: string[] }>();

const view: View = {
  get state() {
    return state;
  },
  update: (change) => {
    const { selected } = state;
    state = changed(state, change);
    render(<Board view={view} />, document.body);
    if (state.selected !== selected) void tellModel(view);
  },
  numberOf: (ad) => {
    const message = messageOf(ad);
    const { number, ids } = numbers.get(message) ?? { number: numbers.size + 1, ids: [] };
    if (!ids.includes(ad.id)) ids.push(ad.id);
    numbers.set(message, { number, ids });
    const at = ids.indexOf(ad.id);
    return at === 0 ? String(number) : `${number}.${at + 1}`;
  },
  can: (capability) => capabilities[capability] !== undefined,
  load: (ids) => reading(() => loadAds(ids)),
  follow,
  wholeAds: new Map(),
  server,
  host,
  pictures: createPictures(server),
};

function follow(context: Message): void {
  applyTheme(context);
  followMode(context);
}

async function showResult(result: Message): Promise<void> {
  const context = { ...contextOf(result), isDemo: isDemo(result) };
  view.update({ context, problem: undefined });
  if (result.isError === true) {
    const canAsk = view.can('message') && canRetry(result);
    const again = canAsk ? () => void askToTryAgain(view) : undefined;
    return view.update({ status: '', problem: { text: explanationIn(result), again } });
  }
  if (context.isPages) return view.update({ status: 'This list holds pages. The board shows ads.' });
  if (context.estimate && !context.gathering) return view.update({ status: '' });
  await reading(() => (context.gathering ? loadGathering(context.gathering) : loadListed(result, context.ids ?? [])));
  const { collectionId } = state.args;
  if (collectionId === undefined || !state.offered.includes('list_collections')) return;
  const collections = await server.collections().catch(() => []);
  view.update({ collection: collections.find(({ id }) => id === collectionId)?.name });
}

/** Ads that have come before a failure stay. */
async function reading(read: () => Promise<void>): Promise<void> {
  view.update({ status: 'Reading the ads …', problem: undefined });
  try {
    await read();
    view.update({ status: state.ads.length === 0 ? emptyText(state) : '' });
  } catch (error) {
    const { text, again } = problemFrom(error, () =>
      reading(state.coming.length > 0 ? () => loadAds(state.coming) : read),
    );
    view.update({ status: '', problem: { text: `The ads could not be read. ${text}`, again } });
  }
}

/** Ads from the server, and for those that the server no longer has, what the result says of them. */
async function loadListed(result: Message, ids: readonly string[]): Promise<void> {
  const problem = await loadAds(ids).catch((error: unknown) => error);
  const shown = new Set(state.ads.map(({ id }) => id.toLowerCase()));
  const others = adsIn(result).filter(({ id }) => !shown.has(id.toLowerCase()));
  if (others.length === 0 && problem !== undefined) throw problem;
  const left = new Set(others.map(({ id }) => id.toLowerCase()));
  for (const ad of others) view.wholeAds.set(ad.id, ad);
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
      if (state.ads.length > 0 && left.length > 0) view.update({ coming: left });
      else if (state.ads.length === 0) {
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
  const readAt = [state.readAt, ...answers.map((answer) => answer.readAt)]
    .filter((time) => time !== undefined)
    .sort()[0];
  add(
    answers.flatMap(({ ads }) => ads),
    { coming, missing, asOf, readAt, offered },
  );
}

function add(more: readonly BriefAd[], change: Partial<State>): void {
  const listedIds = new Set(state.ads.map(({ id }) => id));
  const others = more.filter(({ id }) => !listedIds.has(id));
  // The first ones were drawn before all were sorted.
  if (others.length > 0 && state.coming.length > 0) numbers.clear();
  const ads = [...state.ads, ...others];
  const next = { ...state, ...change, ads };
  const hasAllLaunches = wholeOf(next) === undefined && !filtersByTime(next.args);
  const isRead = next.coming.length === 0;
  view.update({
    ...change,
    ...(others.length > 0 && { ads, axis: axisOf(ads, next.asOf) }),
    finding: isRead ? findingOf(ads, { readAt: next.readAt, hasAllLaunches, formats: next.formats }) : undefined,
  });
}

const { hostContext, hostCapabilities } = await host.request('ui/initialize', {
  protocolVersion: '2026-01-26',
  appInfo: { name: 'ad-library-board', version: '1.0.0' },
  appCapabilities: { availableDisplayModes: ['inline', 'fullscreen'] },
});
const context = (hostContext as Message | undefined) ?? {};
if (typeof context.locale === 'string') state = { ...state, formats: createFormats(context.locale) };
capabilities = (hostCapabilities as Message | undefined) ?? {};
host.notify('ui/notifications/initialized', {});
const followMode = followSize(host, (display) => {
  // What is behind the board belongs to the conversation.
  document.documentElement.classList.toggle('inline', display.mode === 'inline');
  view.update({ display });
});
follow(context);
