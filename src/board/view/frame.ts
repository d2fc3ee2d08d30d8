import { sanitizeLine } from '../../present/safe-text.ts';
import type { BoardContext, BoardEstimate, PriceBounds } from '../payload.ts';
import { button, byId, el, refill } from './elements.ts';
import { actionsOn } from './selection.ts';
import {
  isGrouped,
  messagesIn,
  type Problem,
  problemOf,
  type SortName,
  type State,
  sortNames,
  sortTitle,
  type View,
  wholeOf,
} from './state.ts';
import { count, country, day, joined, label, number } from './words.ts';

/** The header and the footer of the board: title, sorting, status, and the actions for selected ads. */
export function createFrame(view: View): { draw(): void } {
  const more = createMore(view);
  const sort = byId<HTMLSelectElement>('sort');
  sort.append(...sortNames.map((name) => el('option', { value: name }, sortTitle(name))));
  sort.addEventListener('change', () => view.update({ sort: sort.value as SortName }));
  const pressed: [HTMLElement, () => boolean][] = [];
  const choice = (id: string, change: Partial<State>, isOn: () => boolean) => {
    byId(id).addEventListener('click', () => view.update(change));
    pressed.push([byId(id), isOn]);
  };
  for (const mode of ['cards', 'timeline'] as const) choice(`as-${mode}`, { mode }, () => view.state.mode === mode);
  for (const byMessage of [true, false])
    choice(byMessage ? 'by-message' : 'by-ad', { byMessage }, () => isGrouped(view.state) === byMessage);
  const selection = byId('selection');
  const selectedCount = el('span', { class: 'count' });
  selection.append(
    selectedCount,
    button('×', () => view.update({ selected: new Set() }), { class: 'quiet', 'aria-label': 'Clear the selection' }),
    ...actionsOn(view, () => [...view.state.selected]),
  );
  return {
    draw: () => {
      const { state } = view;
      const { ads, shown, selected, status, context, problem, message } = state;
      const heading = headingOf(state);
      const line = context.estimate && !context.gathering ? estimateText(context, context.estimate) : undefined;
      document.body.classList.toggle('line', line !== undefined);
      document.body.classList.toggle('asks', view.can('message'));
      const saving = ['list_collections', 'add_collection_item'];
      document.body.classList.toggle(
        'saves',
        saving.every((tool) => state.offered.includes(tool)),
      );
      byId('title').textContent = line ?? heading.title;
      byId('count').textContent = ads.length > 0 ? countText(state) : problem ? 'No ads came' : '';
      byId('about').textContent = aboutText(state, heading.rest);
      byId('notice').textContent = context.isDemo ? 'Demo data' : '';
      byId('status').textContent = status;
      refill(byId('problem'), ...(problem ? problemParts(problem) : []));
      for (const [control, isOn] of pressed) control.setAttribute('aria-pressed', String(isOn()));
      byId('by').hidden = message !== undefined || messagesIn(ads) === ads.length;
      sort.value = state.sort;
      byId('tools').hidden = ads.length === 0;
      selection.hidden = selected.size === 0;
      const away = selected.size - shown.filter(({ id }) => selected.has(id)).length;
      selectedCount.textContent = `${number(selected.size)} selected${away > 0 ? `, ${number(away)} filtered out` : ''}`;
      const next = more.buttons();
      refill(byId('more'), ...next);
      const isIdle = selected.size === 0 && next.length === 0 && status === '' && problem === undefined;
      byId('footer').classList.toggle('idle', isIdle);
    },
  };
}

/** `12 of 58 messages, 300 of 1,821 ads`: what is shown, or of how many ads those here are a part. */
function countText(state: State): string {
  const { ads, shown } = state;
  const part = (some: number, all: number, noun: string) =>
    `${some < all ? `${number(some)} of ` : ''}${count(all, noun)}`;
  const whole = wholeOf(state) ?? ads.length;
  const isAll = shown.length === ads.length && whole !== Number.POSITIVE_INFINITY;
  const inAds = part(shown.length, isAll ? whole : ads.length, 'ad');
  const messages = messagesIn(ads);
  return messages === ads.length ? inAds : `${part(messagesIn(shown), messages, 'message')}, ${inAds}`;
}

/** `146 ads in 2 pages, about 15 credits` */
function estimateText(
  { isDemo }: BoardContext,
  { ads, read = 0, pages, credits, atLeast = 0, atMost }: BoardEstimate,
): string {
  if (ads === null) return 'The service does not say how many ads there are.';
  const all = `${read > 0 && read < ads ? `${number(ads - read)} of ` : ''}${count(ads, isDemo ? 'demo ad' : 'ad')}`;
  const size = read >= ads && read > 0 ? 'read already' : `in ${count(pages ?? 0, 'page')}`;
  return `${all}${pages === null ? '' : ` ${size}`}, ${creditsText(credits === null ? atMost && { atLeast, atMost } : { atLeast: credits, atMost: credits })}`;
}

/** `free`, `15 credits`, `at most 3 credits`, `between 3 and 146 credits` */
function creditsText(price: PriceBounds | 0 | undefined): string {
  if (!price) return 'at an unknown price';
  const { atLeast, atMost } = price;
  if (atMost === 0) return 'free';
  const least = atLeast === 0 ? 'at most ' : `between ${number(atLeast)} and `;
  return `${atLeast === atMost ? '' : least}${count(atMost, 'credit')}`;
}

function problemParts({ text, again }: Problem): HTMLElement[] {
  const explained = el('p', { dir: 'auto' }, text);
  if (again === undefined) return [explained, el('p', {}, 'To try again, ask in the conversation.')];
  return [explained, button('Try again', again, { class: 'primary', 'data-key': 'again' })];
}

/** The remaining conditions, the ads that are missing, and the date. */
function aboutText({ gathering, coming, missing, asOf }: State, conditions: readonly string[]): string {
  const parts = [
    ...conditions,
    gathering && !gathering.complete && 'not complete',
    coming.length > 0 && `${number(coming.length)} more to come`,
    missing.length > 0 && `${number(missing.length)} no longer stored`,
    asOf !== '' && `as of ${day(gathering?.gatheredAt ?? asOf)}`,
  ];
  return parts.filter(Boolean).join(' · ');
}

/** The next page of a search. It takes a second click, on a button that names the price. */
function createMore(view: View): { buttons(): HTMLElement[] } {
  /** The result whose next page waits for a second click. Another result starts anew. */
  let confirming: BoardContext | undefined;
  let isBusy = false;

  // A page that is cached now may no longer be cached when it is asked for.
  const price = () => {
    const { nextCredits } = view.state.context;
    const text = creditsText(nextCredits);
    return nextCredits?.atMost === 0 ? `, ${text}` : ` ${nextCredits === undefined ? '' : 'for '}${text}`;
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
      // With `fresh`, the following pages would be paid again.
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
        // The new button takes the focus, so that neither a key held down nor a double click pays.
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

const maxWords = 80;
const maxRest = 5;
const subjects: Record<string, string> = {
  view_ads: 'Ads looked at',
  check_watches: 'New in your watches',
  list_collection_items: 'Saved ads',
};

/**
 * What was searched for, in words, which a model may have copied from an ad: `“free shipping” in the United States`, and
 * the other conditions.
 */
function headingOf({ args, ads, context, collection }: State): { title: string; rest: string[] } {
  const filters = filtersIn(args);
  const { query = [], countries = [], active = [], advertiser = [], advertiserExact = [], ...others } = filters;
  const { pageId, sort: _, order: __, ...conditions } = others;
  const rest = Object.entries(conditions).map(([key, values]) => phrase(key, values));
  // An id says nothing to a reader: the ads name their advertiser.
  const ofIds = pageId ? ads.flatMap(({ pageName }) => pageName ?? []) : [];
  const known = [...new Set([...advertiser, ...advertiserExact, ...ofIds].map(String))];
  const words = query.map((text) => `“${String(text).replaceAll('"', '')}”`);
  const who = known.length > 3 ? `${number(known.length)} advertisers` : joined(known);
  const state = active.length === 0 ? 'Ads' : active.every((value) => value === true) ? 'Running ads' : 'Ended ads';
  if (active.length === 1 && (words.length > 0 || who)) rest.unshift(active[0] === true ? 'running' : 'ended');
  const subject = [...words, who].filter(Boolean).join(' by ');
  const places = countries.map((code) => country(String(code))).map(withArticle);
  const where = places.length > 3 ? `${number(places.length)} countries` : joined(places);
  const isAll = Object.keys(filters).length === 0;
  const title = line(subject || collection || subjects[context.tool ?? ''] || (isAll ? 'All ads' : state));
  return {
    title: where === '' ? title : `${title} in ${line(where)}`,
    rest: rest.filter(Boolean).slice(0, maxRest).map(line),
  };
}

const line = (text: string): string => sanitizeLine(text.slice(0, maxWords));

/** The filters by their keys, those of all parts together. */
function filtersIn({ filters, split }: State['args']): Record<string, unknown[]> {
  const all: Record<string, unknown[]> = Object.create(null);
  for (const part of [filters, split].flat())
    if (typeof part === 'object' && part !== null)
      for (const [key, value] of Object.entries(part))
        all[key] = [...new Set([...(all[key] ?? []), ...[value].flat()])];
  return all;
}

const isId = (value: unknown): boolean => typeof value === 'string' && /^[\da-f-]{20,}$|^\d{8,}$/i.test(value);

/** `daysRunningFrom: 30` as `days running from 30`. */
function phrase(key: string, values: readonly unknown[]): string {
  if (key === 'displayFormat' || key === 'ctaType') return values.map(valueText).join(' or ');
  const words = key.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).replaceAll('_', ' ');
  const known = values.filter((value) => !isId(value) && value !== true).map(valueText);
  return [words, known.join(' or ')].filter(Boolean).join(' ');
}

function valueText(value: unknown): string {
  if (typeof value === 'number') return number(value);
  if (typeof value === 'string')
    return (/^\d{4}-\d\d-\d\d/.test(value) && day(value)) || (country(value) === value ? label(value) : country(value));
  if (typeof value !== 'object' || value === null) return String(value);
  return joined(Object.entries(value).map(([key, inner]) => phrase(key, [inner].flat())));
}

const withArticle = (name: string): string =>
  /^(?:United|Netherlands|Philippines|Czech Rep|Dominican Rep|Bahamas|Gambia|Maldives)/.test(name)
    ? `the ${name}`
    : name;
