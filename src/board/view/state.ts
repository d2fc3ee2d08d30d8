import { countValues } from '../../ui/bars.tsx';
import { englishFormats, type Formats, formatConstant, formatCountry } from '../../ui/formats.ts';
import { dayMs } from '../../views/durations.ts';
import type { BoardContext, BoardGathering, BriefAd, FullAd } from '../payload.ts';
import { type Finding, groupsBy, messageOf } from './finding.ts';
import { type Display, type Host, type Message, type Server, ToolError } from './host.ts';
import type { Pictures } from './pictures.tsx';

export interface State {
  /** How the reader writes numbers and dates. */
  formats: Formats;
  ads: readonly BriefAd[];
  shown: readonly BriefAd[];
  /** The ads of each card in the order shown: one ad, or all that the filters leave of a message. */
  cards: readonly (readonly BriefAd[])[];
  /** Undefined where no ad has a date. */
  axis?: TimeAxis | undefined;
  finding?: Finding | undefined;
  /** Ids of ads that are still to come. */
  coming: readonly string[];
  /** Ids of ads that were listed and that the server no longer has. */
  missing: readonly string[];
  chosen: Chosen;
  message?: string | undefined;
  /** Whether a message has one card; undefined until a reader chooses. */
  byMessage?: boolean | undefined;
  sort: SortName;
  mode: 'cards' | 'timeline';
  /** Whether charts and filters are shown; undefined until a reader chooses: then they are where there is room. */
  panel?: boolean | undefined;
  selected: ReadonlySet<string>;
  /** Ids that were handed to the conversation. */
  sent: readonly string[];
  /** Ids of the ads in each of the dialogs. */
  opened?: string | undefined;
  compared?: readonly string[] | undefined;
  saving?: readonly string[] | undefined;
  offered: readonly string[];
  /** The time of the last call, and when the ads were read; undefined until the server has told. In ISO text. */
  asOf?: string | undefined;
  readAt?: string | undefined;
  gathering?: BoardGathering | undefined;
  /** What the tool was called with, and what it said to the board. */
  args: Readonly<Record<string, unknown>>;
  context: BoardContext;
  collection?: string | undefined;
  display: Display;
  status: string;
  problem?: Problem | undefined;
}

export interface Problem {
  text: string;
  /** Tries again; undefined where that cannot help, or the board cannot. */
  again?: (() => void) | undefined;
}

export interface View {
  readonly state: Readonly<State>;
  update(change: Partial<Omit<State, 'shown' | 'cards'>>): void;
  /**
   * The number by which a reader and the conversation name an ad. Ads have numbers in the order in which they are first
   * drawn, and keep them; the second ad of message 3 is 3.2.
   */
  numberOf(ad: BriefAd): string;
  follow(context: Message): void;
  /** Whether the host announced a capability, as `message`. */
  can(capability: string): boolean;
  /** Adds ads that the server has by their ids. */
  load(ids: readonly string[]): Promise<void>;
  /** Whole ads by id. At first, the board has only the facts of an ad. */
  wholeAds: Map<string, FullAd>;
  server: Server;
  host: Host;
  pictures: Pictures;
}

export const emptyState: State = {
  formats: englishFormats,
  ads: [],
  shown: [],
  cards: [],
  coming: [],
  missing: [],
  chosen: {},
  sort: 'relevance',
  mode: 'cards',
  selected: new Set(),
  sent: [],
  offered: [],
  args: {},
  context: {},
  display: { isTight: false, canExpand: false },
  status: 'Waiting for ads …',
};

export const problemOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

export const problemFrom = (error: unknown, again: () => unknown): Problem => ({
  text: problemOf(error),
  again: error instanceof ToolError && !error.canRetry ? undefined : () => void again(),
});

/** How many ads match in all; `Infinity` if there are more, and their number is unknown; undefined if the board has all. */
export function wholeOf({ ads, args, context, gathering, coming, missing }: State): number | undefined {
  const here = ads.length + coming.length + missing.length;
  const { totalHits = 0, cursor } = context;
  const matching = gathering ? Math.max(gathering.read, gathering.complete ? 0 : (gathering.found ?? 0)) : totalHits;
  if (matching > ads.length || here > ads.length) return Math.max(matching, here);
  const hasMore = gathering ? !gathering.complete : Boolean(cursor || args.cursor);
  return hasMore ? Number.POSITIVE_INFINITY : undefined;
}

/** The same ads are counted in several places each time the board is drawn. */
const counted = new WeakMap<readonly BriefAd[], number>();
export function messagesIn(ads: readonly BriefAd[]): number {
  const messages = counted.get(ads) ?? new Set(ads.map(messageOf)).size;
  counted.set(ads, messages);
  return messages;
}

/** Whether each message has one card: as the reader chose, or because a quarter of the ads repeat another ad. */
export const isGrouped = ({ ads, message, byMessage }: State): boolean =>
  message === undefined && (byMessage ?? messagesIn(ads) <= 0.75 * ads.length);

/** The ads that filters choose from: all, or those of the message that is opened. */
export const choosable = ({ ads, message }: State): readonly BriefAd[] =>
  message === undefined ? ads : ads.filter((ad) => messageOf(ad) === message);

/** The state after a change, with what follows from it: no part is made anew that stays as it was. */
export function changed(before: State, change: Partial<State>): State {
  const state = { ...before, ...change };
  const hasChanged = (...names: (keyof State)[]) => names.some((name) => state[name] !== before[name]);
  if (hasChanged('ads', 'message', 'chosen')) state.shown = filtered(choosable(state), state.chosen);
  if (hasChanged('shown', 'sort', 'byMessage', 'message'))
    state.cards = [
      ...groupsBy(sorted(state.shown, state.sort), isGrouped(state) ? messageOf : ({ id }) => id).values(),
    ];
  return state;
}

/** A property to filter by: the values of an ad, and how one reads. */
interface Facet {
  title: string;
  values(ad: BriefAd): readonly string[];
  read(value: string, formats: Formats): string;
  /** In the order of the values rather than of how many ads have them. */
  inOrder?: true;
}

const one = (value: string | undefined) => (value === undefined ? [] : [value]);
const same = (value: string) => value;

export const facets = {
  state: {
    title: 'State',
    values: ({ active }) => [active === undefined ? 'Unknown' : active ? 'Running' : 'Ended'],
    read: (state) => (state === 'Unknown' ? 'State unknown' : state),
    inOrder: true,
  },
  format: { title: 'Format', values: ({ displayFormat }) => one(displayFormat), read: formatConstant },
  cta: { title: 'Call to action', values: ({ ctaType }) => one(ctaType), read: formatConstant },
  advertiser: { title: 'Advertiser', values: ({ pageName }) => one(pageName), read: same },
  country: { title: 'Country', values: ({ countries = [] }) => countries, read: formatCountry },
  landing: { title: 'Landing page', values: ({ landing }) => one(landing), read: same },
  month: {
    title: 'Started',
    values: ({ startedAt }) => one(startedAt?.slice(0, 7)),
    read: (month, { formatMonth }) => formatMonth(month),
    inOrder: true,
  },
} satisfies Record<string, Facet>;

/** Facets of the service's fields, and one for each label, such as `#hook`. */
export type FacetName = keyof typeof facets | `#${string}`;

const isOfLabel = (name: FacetName): name is `#${string}` => name.startsWith('#');

export function facetOf(name: FacetName): Facet {
  if (!isOfLabel(name)) return facets[name];
  const title = name.slice(1);
  return {
    title,
    values: ({ labels = [] }) => labels.flatMap(({ label, value = '' }) => (label === title ? [value] : [])),
    read: (value) => value || title,
  };
}

const maxLabels = 12;

function facetNamesOf(ads: readonly BriefAd[]): FacetName[] {
  const labels = new Set<FacetName>();
  for (const ad of ads) for (const { label } of ad.labels ?? []) if (labels.size < maxLabels) labels.add(`#${label}`);
  return [...(Object.keys(facets) as FacetName[]), ...labels];
}

/** The chosen values: any of those of one facet, and all facets together. */
export type Chosen = Partial<Record<FacetName, ReadonlySet<string>>>;

/** The facets with chosen values where the ad has none of the chosen values. */
const lackedBy = (ad: BriefAd, chosen: ReturnType<typeof chosenFacets>): FacetName[] =>
  chosen.flatMap(({ name, facet, wanted }) => (facet.values(ad).some((value) => wanted.has(value)) ? [] : [name]));

const chosenFacets = (chosen: Chosen) =>
  (Object.keys(chosen) as FacetName[]).flatMap((name) => {
    const wanted = chosen[name];
    return wanted?.size ? [{ name, facet: facetOf(name), wanted }] : [];
  });

function filtered(ads: readonly BriefAd[], chosen: Chosen): BriefAd[] {
  const facets = chosenFacets(chosen);
  return ads.filter((ad) => lackedBy(ad, facets).length === 0);
}

export type FacetValue = ReturnType<typeof facetValues>[number][number];

/** With more values of one ad each, they are names and no filter. */
const maxSingle = 8;

/**
 * The values of each facet that tells ads apart, each with the number of ads that choosing it would show beside the
 * choices in other facets.
 */
export function facetValues(ads: readonly BriefAd[], chosen: Chosen, formats: Formats) {
  const chosenNow = chosenFacets(chosen);
  const lacked = ads.map((ad) => lackedBy(ad, chosenNow));
  return facetNamesOf(ads).flatMap((facet) => {
    const { values, read, inOrder } = facetOf(facet);
    const counts = new Map<string, { ads: number; ofAll: number }>();
    ads.forEach((ad, at) => {
      const isCounted = lacked[at]?.every((name) => name === facet) === true;
      for (const value of values(ad)) {
        const count = counts.get(value) ?? { ads: 0, ofAll: 0 };
        if (count.ofAll++ === 0) counts.set(value, count);
        if (isCounted) count.ads++;
      }
    });
    // What all ads have filters nothing, and what each has for itself leaves one.
    const isFilter = [...counts.values()].some(
      ({ ofAll }) => ofAll < ads.length && (ofAll > 1 || counts.size <= maxSingle),
    );
    if (!isFilter && !chosen[facet]?.size) return [];
    // By the number among all ads, so that no choice moves a value from where a reader saw it.
    const all = [...counts].sort(inOrder ? ([a], [b]) => (a < b ? 1 : -1) : ([, a], [, b]) => b.ofAll - a.ofAll);
    const shown = all.flatMap(([value, { ads }], rank) => {
      const isChosen = chosen[facet]?.has(value) === true;
      return ads > 0 || isChosen ? { facet, value, text: read(value, formats), ads, rank, isChosen } : [];
    });
    return shown.length > 0 ? [shown] : [];
  });
}

export function toggled(chosen: Chosen, facet: FacetName, value: string): Chosen {
  const values = new Set(chosen[facet]);
  if (!values.delete(value)) values.add(value);
  return { ...chosen, [facet]: values };
}

const descending = (value: (ad: BriefAd) => number | string | undefined) => (a: BriefAd, b: BriefAd) => {
  const [left, right] = [value(a), value(b)];
  if (left === right) return 0;
  if (left === undefined || right === undefined) return left === undefined ? 1 : -1;
  return left < right ? 1 : -1;
};

const names = new Intl.Collator('en');

/** Ways to order ads, with their names. Ads that lack a value come last. */
const orders = {
  relevance: ['As listed', () => 0],
  days: ['Days running', descending(({ daysRunning }) => daysRunning)],
  newest: ['Newest first', descending(({ startedAt }) => startedAt)],
  variants: ['Variants', () => 0],
  duplicates: ['Copies of the ad', descending(({ duplicates }) => duplicates)],
  reach: ['Reach', descending(({ audienceReach }) => audienceReach)],
  advertiser: ['Advertiser', (a: BriefAd, b: BriefAd) => names.compare(a.pageName ?? '￿', b.pageName ?? '￿')],
} satisfies Record<string, [string, (a: BriefAd, b: BriefAd) => number]>;

export type SortName = keyof typeof orders;
export const sortNames = Object.keys(orders) as SortName[];
export const sortTitle = (name: SortName): string => orders[name][0];

export function sorted(ads: readonly BriefAd[], name: SortName): BriefAd[] {
  if (name !== 'variants') return [...ads].sort(orders[name][1]);
  const counts = countValues(ads.map(messageOf));
  return [...ads].sort(descending((ad) => counts.get(messageOf(ad))));
}

/** One axis for the runs of all ads, so that bars can be compared. */
export interface TimeAxis {
  from: number;
  to: number;
}

const dayOf = (iso: string | undefined): number => Date.parse(iso?.slice(0, 10) ?? '');

const lastDayOf = ({ endDate, lastSeenAt, active }: BriefAd): number => dayOf(active === false ? endDate : lastSeenAt);

/** No ad is older; a wrong date must not squeeze all others. */
const maxDays = 3653;

/** Returns an axis from the first ad to the last, at most to today. Returns undefined where no ad has a date. */
export function axisOf(ads: readonly BriefAd[], today: string | undefined): TimeAxis | undefined {
  const end = dayOf(today) || Number.POSITIVE_INFINITY;
  const isPast = (time: number) => time <= end;
  const starts = ads.map(({ startedAt }) => dayOf(startedAt)).filter(isPast);
  const to = ads
    .map(lastDayOf)
    .concat(starts)
    .filter(isPast)
    .reduce((latest, time) => Math.max(latest, time), Number.NEGATIVE_INFINITY);
  if (to === Number.NEGATIVE_INFINITY) return undefined;
  const from = starts.reduce((first, time) => Math.min(first, time), to - 7 * dayMs);
  return { from: Math.max(from, to - maxDays * dayMs), to };
}

/** Returns a run as fractions of the axis; undefined if its dates are not known. */
export function barOf(ad: BriefAd, axis: TimeAxis | undefined) {
  if (axis === undefined) return undefined;
  const { from, to } = axis;
  const start = dayOf(ad.startedAt);
  const end = Math.max(start, lastDayOf(ad) || start);
  if (Number.isNaN(start) || start > to) return undefined;
  const at = (time: number) => Math.min(1, Math.max(0, (time - from) / (to - from)));
  return { start: at(start), length: at(end) - at(start) };
}

/** The first days of months on the axis, at most as many as there is room for. */
export function monthsOn({ from, to }: TimeAxis, room: number) {
  const first = new Date(from);
  const all: { at: number; name: string }[] = [];
  for (let month = first.getUTCMonth() + 1; all.length < 600; month++) {
    const time = Date.UTC(first.getUTCFullYear(), month);
    if (time > to) break;
    all.push({ at: (time - from) / (to - from), name: new Date(time).toISOString().slice(0, 7) });
  }
  const step = Math.ceil(all.length / Math.max(1, room));
  return all.filter((_, index) => index % step === 0);
}
