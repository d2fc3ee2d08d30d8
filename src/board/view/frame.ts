import { isWord, sanitizeLine } from '../../present/safe-text.ts';
import type { BoardAd, BoardContext, BoardEstimate } from '../payload.ts';
import { button, byId, el, refill } from './elements.ts';
import { type Problem, problemOf, type SortName, sortNames, sortTitle, type View, wholeOf } from './state.ts';
import { count, country, day, label, number } from './words.ts';

/** What stands above and below the ads: title, sorting, status, and what can be done with the selected ones. */
export function createFrame(view: View): { draw(): void } {
  const more = createMore(view);
  const sort = byId<HTMLSelectElement>('sort');
  sort.append(...sortNames.map((name) => el('option', { value: name }, sortTitle(name))));
  sort.addEventListener('change', () => view.update({ sort: sort.value as SortName }));
  const modes = (['cards', 'timeline'] as const).map((mode) => {
    const control = byId(`as-${mode}`);
    control.addEventListener('click', () => view.update({ mode }));
    return { mode, control };
  });
  return {
    draw: () => {
      const { state } = view;
      const { ads, selected, mode, status, context, problem } = state;
      const line = context.estimate && !context.gathering ? estimateText(context, context.estimate) : undefined;
      document.body.classList.toggle('line', line !== undefined);
      byId('title').textContent = line ?? title(view);
      byId('subtitle').textContent = subtitle(view);
      byId('notice').textContent = context.isDemo ? 'Demo data' : '';
      byId('status').textContent = status;
      refill(byId('problem'), ...(problem ? problemParts(problem) : []));
      for (const each of modes) each.control.setAttribute('aria-pressed', String(each.mode === mode));
      sort.value = state.sort;
      byId('tools').hidden = ads.length === 0;
      const selection = byId('selection');
      selection.hidden = selected.size === 0;
      refill(selection, ...(selected.size > 0 ? selectionControls(view) : []));
      const next = more.buttons();
      refill(byId('more'), ...next);
      const isIdle = selected.size === 0 && next.length === 0 && status === '' && problem === undefined;
      byId('footer').classList.toggle('idle', isIdle);
    },
  };
}

/** How many ads are here, and of how many they are a part. */
function title({ state }: View): string {
  const { ads, shown, problem } = state;
  const whole = wholeOf(state);
  if (ads.length === 0 && problem) return 'No ads came';
  if (shown.length < ads.length) return `${number(shown.length)} of ${count(ads.length, 'ad')}`;
  return whole === undefined || whole === Number.POSITIVE_INFINITY
    ? count(ads.length, 'ad')
    : `${number(ads.length)} of ${count(whole, 'ad')}`;
}

/** `146 ads in 2 pages, about 15 credits` */
function estimateText({ isDemo }: BoardContext, { ads, read = 0, pages, credits, atMost }: BoardEstimate): string {
  if (ads === null) return 'The service does not say how many ads there are.';
  const all = `${read > 0 && read < ads ? `${number(ads - read)} of ` : ''}${count(ads, isDemo ? 'demo ad' : 'ad')}`;
  const size = read >= ads && read > 0 ? 'read already' : `in ${count(pages ?? 0, 'page')}`;
  return `${all}${pages === null ? '' : ` ${size}`}, ${creditsText(credits ?? atMost, { atMost: credits === null })}`;
}

/** `free`, `about 15 credits`, `at most 146 credits` */
function creditsText(credits: number | undefined, { atMost = false }: { atMost?: boolean | undefined }): string {
  if (credits === undefined) return 'at an unknown price';
  return credits === 0 ? 'free' : `${atMost ? 'at most' : 'about'} ${count(credits, 'credit')}`;
}

function problemParts({ text, again }: Problem): HTMLElement[] {
  const explained = el('p', { dir: 'auto' }, text);
  if (again === undefined) return [explained, el('p', {}, 'To try again, ask in the conversation.')];
  return [explained, button('Try again', again, { class: 'primary', 'data-key': 'again' })];
}

function selectionControls(view: View): HTMLElement[] {
  const ids = [...view.state.selected];
  const controls: HTMLElement[] = [
    el('span', { class: 'count' }, `${number(ids.length)} selected`),
    button('Ask about them', () => void askAbout(view, ids), { class: 'primary', 'data-key': 'ask' }),
  ];
  if (canSave(view)) controls.push(button('Save …', () => void openSave(view, ids), { 'data-key': 'save' }));
  controls.push(
    button('×', () => view.update({ selected: new Set() }), {
      class: 'quiet',
      'data-key': 'none',
      'aria-label': 'Clear the selection',
    }),
  );
  return controls;
}

/** What was searched for, how much of it is here, and when. */
function subtitle({ state }: View): string {
  const { args, gathering, context, coming, missing, asOf } = state;
  const { totalHits } = context;
  const parts = [
    ...filterWords(args.filters, state.ads),
    gathering &&
      `${number(gathering.read)} read${gathering.found === null ? '' : ` of ${number(gathering.found)} found`}`,
    gathering && !gathering.complete && 'not complete',
    gathering === undefined && totalHits !== undefined && `${number(totalHits)} found`,
    coming.length > 0 && `${number(coming.length)} more to come`,
    missing.length > 0 && `${number(missing.length)} no longer kept`,
    asOf !== '' && `as of ${day(gathering?.gatheredAt ?? asOf)}`,
  ];
  return parts.filter(Boolean).join(' · ');
}

/** What was searched for, in words. A model may have copied it from an ad. */
function filterWords(filters: unknown, ads: readonly BoardAd[]): string[] {
  if (typeof filters !== 'object' || filters === null) return [];
  const { query, sort: _, order: __, ...others } = filters as Record<string, unknown>;
  return Object.entries({ query, ...others })
    .filter(([, value]) => value !== undefined)
    .slice(0, 6)
    .flatMap(([key, value]) => {
      const values = [value].flat().map(textOf);
      if (key === 'query') return `“${textOf(value).replaceAll('"', '')}”`;
      if (key === 'countries') return `in ${values.map(country).join(', ')}`;
      if (key === 'active') return value === true ? 'running' : 'ended';
      if (key === 'pageId') return advertiserOf(ads) ?? [];
      if (key === 'displayFormat' || key === 'ctaType') return values.map(label).join(', ');
      return `${key} ${values.join(', ')}`;
    })
    .map((text) => sanitizeLine(text.slice(0, 80)));
}

/** The name of the one advertiser of all ads, which says more than its id. */
function advertiserOf([first, ...others]: readonly BoardAd[]): string | undefined {
  return others.every(({ pageName }) => pageName === first?.pageName) ? first?.pageName : undefined;
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** The next page of a search. It takes a second click, on a button that names the price. */
export function createMore(view: View): { buttons(): HTMLElement[] } {
  /** Of the result whose next page is to be confirmed: another result starts anew. */
  let confirming: BoardContext | undefined;
  let isBusy = false;

  // A page that is kept may be kept no longer when it is asked for.
  const price = () => {
    const { nextCredits, nextIsMost } = view.state.context;
    const text = creditsText(nextCredits, { atMost: nextIsMost });
    return nextCredits === 0 ? `, ${text}` : ` ${nextCredits === undefined ? '' : 'for '}${text}`;
  };
  const confirm = (context?: BoardContext) => {
    confirming = context;
    view.update({});
  };
  const load = async () => {
    confirming = undefined;
    isBusy = true;
    view.update({ status: 'Searching …', problem: undefined });
    try {
      const { args, context } = view.state;
      // What was fresh for the first page would be paid again on the next ones.
      const { fresh: _fresh, ...search } = args;
      const next = await view.server.search({ ...search, cursor: context.cursor });
      const { nextCredits: _, ...before } = context;
      view.update({ context: { ...before, ...next } });
      await view.load(next.ids ?? []);
      view.update({ status: paidText(next.receipt) });
    } catch (error) {
      view.update({ status: '', problem: { text: problemOf(error), again: () => confirm(view.state.context) } });
    }
    isBusy = false;
    view.update({});
  };
  return {
    buttons: () => {
      const { context, offered } = view.state;
      if (!context.cursor || context.tool !== 'search_ads' || !offered.includes('search_ads')) return [];
      if (isBusy) return [button('Searching …', () => {}, { disabled: true })];
      if (confirming !== context)
        return [button(`More ads${price()} …`, () => confirm(context), { 'data-key': 'more' })];
      return [
        // It takes the focus, so that a key held down pays nothing. Nor does a double click.
        button('Cancel', () => confirm(), { 'data-key': 'more' }),
        button(`Search${price()}`, ({ detail }) => detail < 2 && void load(), {
          class: 'primary',
          'data-key': 'search',
        }),
      ];
    },
  };
}

function paidText(receipt: { charged: number | null; remaining: number | null } | undefined): string {
  const { charged = null, remaining = null } = receipt ?? {};
  const paid = charged === null ? 'The service did not say what it charged' : `${count(charged, 'credit')} charged`;
  return `${paid}${remaining === null ? '' : `, ${number(remaining)} left`}.`;
}

const block = (text: string) => [{ type: 'text', text }];

/** Writes into the conversation, and says on the board whether that was taken. */
async function write(view: View, text: string, done: string): Promise<void> {
  try {
    const { isError } = await view.host.request('ui/message', { role: 'user', content: block(text) });
    if (isError === true) throw new Error('The host refused.');
    view.update({ status: done });
  } catch (error) {
    view.update({ status: `The conversation did not take the message: ${problemOf(error)}` });
  }
}

/** Hands ads to the conversation: our own words, and ids that hold no sentence; nothing that an advertiser wrote. */
export async function askAbout(view: View, all: readonly string[]): Promise<void> {
  const ids = all.filter(isWord);
  if (ids.length === 0) return view.update({ status: 'The conversation does not take the ids of these ads.' });
  const left = all.length - ids.length;
  const text = `Tell me about ${ids.length === 1 ? 'this ad' : `these ${ids.length} ads`} from the board: ${ids.join(', ')}`;
  const without = left === 0 ? '' : `, without ${number(left)} whose ids it does not take`;
  await write(view, text, `${count(ids.length, 'ad')} handed to the conversation${without}.`);
}

/** Asks the conversation to repeat a call that failed: only there is the answer read as well, and a price agreed to. */
export const askToTryAgain = (view: View): Promise<void> =>
  write(
    view,
    'The call for these ads failed, as the board says. Please try again, or tell me what has to change first.',
    'The conversation was asked to try again.',
  );

/** Lets the model know what is selected, for its next turn. */
export function reportSelection(view: View): void {
  const ids = [...view.state.selected].filter(isWord);
  const text = ids.length === 0 ? 'No ad is selected on the board.' : `Selected on the board: ${ids.join(', ')}`;
  view.host.request('ui/update-model-context', { content: block(text) }).catch(() => {
    // Hosts need not keep a context. The button hands the ads over all the same.
  });
}

export const canSave = ({ state: { offered } }: View): boolean =>
  offered.includes('list_collections') && offered.includes('add_collection_item');

/** Asks for a collection, and saves ads to it. */
export async function openSave(view: View, ids: readonly string[]): Promise<void> {
  const dialog = byId<HTMLDialogElement>('save');
  const message = el('p', { role: 'status' }, 'Reading your collections …');
  const close = button('Cancel', () => dialog.close());
  const title = el('h2', { id: 'save-title' }, `Save ${count(ids.length, 'ad')} to a collection`);
  const choices = el('div', { class: 'choices' });
  dialog.replaceChildren(title, message, choices, el('div', { class: 'actions' }, close));
  dialog.showModal();
  try {
    const collections = await view.server.collections();
    message.textContent = collections.length === 0 ? 'You have no collection for ads yet.' : '';
    for (const { id, name = id, ads } of collections) {
      const size = ads === undefined ? '' : count(ads, 'ad');
      const choice = button('', () => void save(id, name), { dir: 'auto' });
      choice.append(name, el('small', {}, size));
      choices.append(choice);
    }
  } catch (error) {
    message.textContent = problemOf(error);
  }

  const save = async (collectionId: string, name: string) => {
    choices.replaceChildren();
    let added = 0;
    let done = 0;
    try {
      for (const id of ids) {
        message.textContent = `Saving ${done + 1} of ${ids.length} …`;
        if (await view.server.save(collectionId, id)) added++;
        done++;
      }
      dialog.close();
      const known = done - added;
      const already = known === 0 ? '' : `, ${known === done ? 'all' : known} of them there already`;
      view.update({ status: `${count(done, 'ad')} saved to ${name}${already}.` });
    } catch (error) {
      message.textContent = `${done} of ${ids.length} saved. ${problemOf(error)}`;
    }
  };
}
