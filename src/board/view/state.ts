import { countValues } from '../../ui/bars.tsx';
import { englishFormats, type Formats, formatAdLibrary, formatConstant, formatCountry } from '../../ui/formats.ts';
import { dayMs } from '../../views/durations.ts';
import type { BoardContext, BoardGathering, BriefAd, FullAd } from '../payload.ts';
import { type Finding, groupBy, variantOf } from './finding.ts';
import { type Display, type Host, type JsonObject, type Server, ToolError } from './host.ts';
import type { PictureLoader } from './pictures.tsx';

/** Everything that the board shows. A change replaces the whole object. */
export interface State {
  /** Writes numbers and dates in the reader's locale. */
  formats: Formats;
  ads: readonly BriefAd[];
  /** The ads that match the chosen filter values. */
  visibleAds: readonly BriefAd[];
  /** The ads of each card, in the order shown: one ad, or all visible ads of a variant. */
  cards: readonly (readonly BriefAd[])[];
  /** The time axis for the runs of all ads; undefined if no ad has a date. */
  timeAxis?: TimeAxis | undefined;
  finding?: Finding | undefined;
  /** Ids of ads that the board has not received yet. */
  pendingIds: readonly string[];
  /** Ids of ads that a result listed and that the server no longer stores. */
  missingIds: readonly string[];
  chosenValues: ChosenValues;
  /** The id of the variant whose ads the board shows alone. */
  openVariant?: string | undefined;
  /** Whether each variant has one card; undefined until the reader chooses. */
  isGroupingChosen?: boolean | undefined;
  sort: SortName;
  mode: 'cards' | 'timeline';
  /** Whether charts and filters are shown; undefined until the reader chooses. Then they are shown if there is space. */
  isPanelOpen?: boolean | undefined;
  selectedIds: ReadonlySet<string>;
  /** Ids of ads that the reader has asked the conversation about. */
  sharedIds: readonly string[];
  /** The id of the ad in the drawer. */
  openAdId?: string | undefined;
  /** The ids of the ads in the comparison. */
  comparedIds?: readonly string[] | undefined;
  /** The ids of the ads in the dialog that saves ads. */
  idsToSave?: readonly string[] | undefined;
  /** The tools that the view may call and that the server offers. */
  offeredTools: readonly string[];
  /** The time of the last call, in ISO text; undefined until the server has answered. */
  asOf?: string | undefined;
  /** When the ads were read from the service, in ISO text; undefined until the server has answered. */
  readAt?: string | undefined;
  gathering?: BoardGathering | undefined;
  /** The arguments of the tool call that opened the board. */
  toolArguments: Readonly<Record<string, unknown>>;
  /** The data for the board in the result of that call. */
  context: BoardContext;
  collectionName?: string | undefined;
  display: Display;
  /** The status line below the ads. */
  status: string;
  problem?: Problem | undefined;
}

/** An error that the board shows. */
export interface Problem {
  text: string;
  /** Tries the failed step again; undefined if another attempt cannot help, or the board cannot make one. */
  retry?: (() => void) | undefined;
}

/** The state of the board, and everything that its components can do. */
export interface View {
  readonly state: Readonly<State>;
  /** Applies a change to the state and renders the board again. */
  update(change: Partial<Omit<State, 'visibleAds' | 'cards'>>): void;
  /**
   * Returns the number by which a reader and the conversation name an ad. Ads are numbered in the order in which they are
   * first drawn, and a number never changes. The second ad of variant 3 has the number 3.2.
   */
  getNumber(ad: BriefAd): string;
  /** Applies the theme and the size that the host announces. */
  applyHostContext(context: JsonObject): void;
  /** Returns true if the host announced a capability, such as `message`. */
  hasCapability(capability: string): boolean;
  /** Requests ads from the server by their ids and adds them to the board. */
  loadAds(ids: readonly string[]): Promise<void>;
  /** The ads with all fields, by id. At first, the board has only the facts of each ad. */
  fullAds: Map<string, FullAd>;
  server: Server;
  host: Host;
  pictureLoader: PictureLoader;
}

/** The state before the first result arrives. */
export const emptyState: State = {
  formats: englishFormats,
  ads: [],
  visibleAds: [],
  cards: [],
  pendingIds: [],
  missingIds: [],
  chosenValues: {},
  sort: 'relevance',
  mode: 'cards',
  selectedIds: new Set(),
  sharedIds: [],
  offeredTools: [],
  toolArguments: {},
  context: {},
  display: { isTight: false, canExpand: false },
  status: 'Waiting for ads …',
};

/** Returns the message of an error. */
export const getErrorText = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Returns a problem for an error. The problem offers a retry unless the server says that a retry cannot help. */
export const createProblem = (error: unknown, retry: () => unknown): Problem => ({
  text: getErrorText(error),
  retry: error instanceof ToolError && !error.canRetry ? undefined : () => void retry(),
});

/**
 * Returns how many ads match in total, if the board does not have all of them; undefined if it has all. Returns
 * `Infinity` if there are more ads and their number is unknown.
 */
export function countAllMatches({
  ads,
  toolArguments,
  context,
  gathering,
  pendingIds,
  missingIds,
}: State): number | undefined {
  const listedCount = ads.length + pendingIds.length + missingIds.length;
  const { totalHits = 0, cursor } = context;
  const matchCount = gathering ? Math.max(gathering.read, gathering.complete ? 0 : (gathering.found ?? 0)) : totalHits;
  if (matchCount > ads.length || listedCount > ads.length) return Math.max(matchCount, listedCount);
  const hasMore = gathering ? !gathering.complete : Boolean(cursor || toolArguments.cursor);
  return hasMore ? Number.POSITIVE_INFINITY : undefined;
}

const variantCounts = new WeakMap<readonly BriefAd[], number>();

/**
 * Returns how many variants a list of ads has. The count is cached, because several components count the same list each
 * time the board is rendered.
 */
export function countVariants(ads: readonly BriefAd[]): number {
  const variantCount = variantCounts.get(ads) ?? new Set(ads.map(variantOf)).size;
  variantCounts.set(ads, variantCount);
  return variantCount;
}

/**
 * Returns true if each variant has one card. The reader decides; until then, variants have one card if at least a quarter
 * of the ads repeat another ad.
 */
export const isGrouped = ({ ads, openVariant, isGroupingChosen }: State): boolean =>
  openVariant === undefined && (isGroupingChosen ?? countVariants(ads) <= 0.75 * ads.length);

/** Returns the ads to which filters apply: all ads, or the ads of the open variant. */
export const selectFilterableAds = ({ ads, openVariant }: State): readonly BriefAd[] =>
  openVariant === undefined ? ads : ads.filter((ad) => variantOf(ad) === openVariant);

/**
 * Returns the state after a change, with everything that is derived from the changed fields. Derived fields that the
 * change does not affect stay the same objects, so components that use them are not rendered again.
 */
export function applyChange(before: State, change: Partial<State>): State {
  const state = { ...before, ...change };
  const hasChanged = (...names: (keyof State)[]) => names.some((name) => state[name] !== before[name]);
  if (hasChanged('ads', 'openVariant', 'chosenValues'))
    state.visibleAds = filterAds(selectFilterableAds(state), state.chosenValues);
  if (hasChanged('visibleAds', 'sort', 'isGroupingChosen', 'openVariant'))
    state.cards = [
      ...groupBy(sortAds(state.visibleAds, state.sort), isGrouped(state) ? variantOf : ({ id }) => id).values(),
    ];
  return state;
}

/** A property by which a reader can filter ads. */
interface Facet {
  title: string;
  /** Returns the values that an ad has. */
  getValues(ad: BriefAd): readonly string[];
  /** Returns a value as a reader sees it. */
  formatValue(value: string, formats: Formats): string;
  /** True if values are listed in their own order. By default, the most common values come first. */
  isSortedByValue?: true;
}

const toArray = (value: string | undefined) => (value === undefined ? [] : [value]);
const keepAsIs = (value: string) => value;

/** The facets of the service's fields. */
export const facets = {
  state: {
    title: 'State',
    getValues: ({ active }) => [active === undefined ? 'Unknown' : active ? 'Running' : 'Ended'],
    formatValue: (state) => (state === 'Unknown' ? 'State unknown' : state),
    isSortedByValue: true,
  },
  format: { title: 'Format', getValues: ({ displayFormat }) => toArray(displayFormat), formatValue: formatConstant },
  library: {
    title: 'Ad library',
    getValues: ({ adLibrary }) => toArray(adLibrary),
    formatValue: formatAdLibrary,
  },
  cta: { title: 'Call to action', getValues: ({ ctaType }) => toArray(ctaType), formatValue: formatConstant },
  advertiser: { title: 'Advertiser', getValues: ({ pageName }) => toArray(pageName), formatValue: keepAsIs },
  country: { title: 'Country', getValues: ({ countries = [] }) => countries, formatValue: formatCountry },
  landing: { title: 'Landing page', getValues: ({ landing }) => toArray(landing), formatValue: keepAsIs },
  month: {
    title: 'Started',
    getValues: ({ startedAt }) => toArray(startedAt?.slice(0, 7)),
    formatValue: (month, { formatMonth }) => formatMonth(month),
    isSortedByValue: true,
  },
} satisfies Record<string, Facet>;

/** The name of a facet of the service's fields, or of a label. The facet of the label `hook` is named `#hook`. */
export type FacetName = keyof typeof facets | `#${string}`;

const isLabelFacet = (name: FacetName): name is `#${string}` => name.startsWith('#');

/** Returns the facet with a name. */
export function getFacet(name: FacetName): Facet {
  if (!isLabelFacet(name)) return facets[name];
  const title = name.slice(1);
  return {
    title,
    getValues: ({ labels = [] }) => labels.flatMap(({ label, value = '' }) => (label === title ? [value] : [])),
    formatValue: (value) => value || title,
  };
}

/** The most labels that become facets. */
const maxLabels = 12;

function listFacetNames(ads: readonly BriefAd[]): FacetName[] {
  const labels = new Set<FacetName>();
  for (const ad of ads) for (const { label } of ad.labels ?? []) if (labels.size < maxLabels) labels.add(`#${label}`);
  return [...(Object.keys(facets) as FacetName[]), ...labels];
}

/**
 * The filter values that the reader has chosen. An ad matches if it has, for each facet with chosen values, at least one
 * of these values.
 */
export type ChosenValues = Partial<Record<FacetName, ReadonlySet<string>>>;

/** Returns the facets for which the ad has none of the chosen values. */
const findUnmetFacets = (ad: BriefAd, chosenFacets: ReturnType<typeof listChosenFacets>): FacetName[] =>
  chosenFacets.flatMap(({ name, facet, values }) =>
    facet.getValues(ad).some((value) => values.has(value)) ? [] : [name],
  );

const listChosenFacets = (chosenValues: ChosenValues) =>
  (Object.keys(chosenValues) as FacetName[]).flatMap((name) => {
    const values = chosenValues[name];
    return values?.size ? [{ name, facet: getFacet(name), values }] : [];
  });

function filterAds(ads: readonly BriefAd[], chosenValues: ChosenValues): BriefAd[] {
  const chosenFacets = listChosenFacets(chosenValues);
  return ads.filter((ad) => findUnmetFacets(ad, chosenFacets).length === 0);
}

/** A value of a facet, with the number of ads that the board would show if the reader chose it. */
export type FacetValue = ReturnType<typeof listFacetValues>[number][number];

/** A facet with more values is not offered if each value belongs to only one ad. Such values are names, not filters. */
const maxValuesOfSingleAds = 8;

/**
 * Returns the values of each facet that distinguishes ads. `ads` of a value is the number of ads that have the value and
 * match the choices in all other facets.
 */
export function listFacetValues(ads: readonly BriefAd[], chosenValues: ChosenValues, formats: Formats) {
  const chosenFacets = listChosenFacets(chosenValues);
  const unmetFacets = ads.map((ad) => findUnmetFacets(ad, chosenFacets));
  return listFacetNames(ads).flatMap((facet) => {
    const { getValues, formatValue, isSortedByValue } = getFacet(facet);
    const counts = new Map<string, { matchingAds: number; allAds: number }>();
    ads.forEach((ad, index) => {
      const matchesOtherFacets = unmetFacets[index]?.every((name) => name === facet) === true;
      for (const value of getValues(ad)) {
        const count = counts.get(value) ?? { matchingAds: 0, allAds: 0 };
        if (count.allAds++ === 0) counts.set(value, count);
        if (matchesOtherFacets) count.matchingAds++;
      }
    });
    // A value that all ads have filters nothing. Values that only one ad has each are no useful filter.
    const isFilter = [...counts.values()].some(
      ({ allAds }) => allAds < ads.length && (allAds > 1 || counts.size <= maxValuesOfSingleAds),
    );
    if (!isFilter && !chosenValues[facet]?.size) return [];
    // The order depends on all ads instead of the matching ads, so values do not move when the reader chooses one.
    const sortedCounts = [...counts].sort(
      isSortedByValue ? ([a], [b]) => (a < b ? 1 : -1) : ([, a], [, b]) => b.allAds - a.allAds,
    );
    const values = sortedCounts.flatMap(([value, { matchingAds }], rank) => {
      const isChosen = chosenValues[facet]?.has(value) === true;
      if (matchingAds === 0 && !isChosen) return [];
      return { facet, value, text: formatValue(value, formats), ads: matchingAds, rank, isChosen };
    });
    return values.length > 0 ? [values] : [];
  });
}

/** Returns the chosen values after one value was added, or removed if it was chosen before. */
export function toggleValue(chosenValues: ChosenValues, facet: FacetName, value: string): ChosenValues {
  const values = new Set(chosenValues[facet]);
  if (!values.delete(value)) values.add(value);
  return { ...chosenValues, [facet]: values };
}

/** Returns a comparator that sorts the highest value first, and ads without a value last. */
const compareDescending = (getValue: (ad: BriefAd) => number | string | undefined) => (a: BriefAd, b: BriefAd) => {
  const [left, right] = [getValue(a), getValue(b)];
  if (left === right) return 0;
  if (left === undefined || right === undefined) return left === undefined ? 1 : -1;
  return left < right ? 1 : -1;
};

const nameCollator = new Intl.Collator('en');
/** A character that sorts after all names, for ads without an advertiser. */
const lastCharacter = '\uffff';

/** The orders in which ads can be sorted: the title and the comparator of each. Ads without a value come last. */
const sortOrders = {
  relevance: ['As listed', () => 0],
  days: ['Days running', compareDescending(({ daysRunning }) => daysRunning)],
  newest: ['Newest first', compareDescending(({ startedAt }) => startedAt)],
  variants: ['Variants', () => 0],
  duplicates: ['Copies of the ad', compareDescending(({ duplicates }) => duplicates)],
  reach: ['Reach', compareDescending(({ audienceReach }) => audienceReach)],
  advertiser: [
    'Advertiser',
    (a: BriefAd, b: BriefAd) => nameCollator.compare(a.pageName ?? lastCharacter, b.pageName ?? lastCharacter),
  ],
} satisfies Record<string, [string, (a: BriefAd, b: BriefAd) => number]>;

/** The name of a sort order. */
export type SortName = keyof typeof sortOrders;
/** The names of all sort orders, in the order of the menu. */
export const sortNames = Object.keys(sortOrders) as SortName[];
/** Returns the title of a sort order. */
export const getSortTitle = (name: SortName): string => sortOrders[name][0];

/** Returns the ads in a sort order. */
export function sortAds(ads: readonly BriefAd[], name: SortName): BriefAd[] {
  if (name !== 'variants') return [...ads].sort(sortOrders[name][1]);
  const adsPerVariant = countValues(ads.map(variantOf));
  return [...ads].sort(compareDescending((ad) => adsPerVariant.get(variantOf(ad))));
}

/** The time axis that the runs of all ads share, so that readers can compare their bars. Times are in milliseconds. */
export interface TimeAxis {
  from: number;
  to: number;
}

const parseDay = (iso: string | undefined): number => Date.parse(iso?.slice(0, 10) ?? '');

const getLastDay = ({ endDate, lastSeenAt, active }: BriefAd): number =>
  parseDay(active === false ? endDate : lastSeenAt);

/** The longest time axis, ten years in days. Without a limit, one wrong date would shrink all other bars. */
const maxAxisDays = 3653;

/** Returns an axis from the first day of all ads to the last, but not beyond today; undefined if no ad has a date. */
export function createTimeAxis(ads: readonly BriefAd[], today: string | undefined): TimeAxis | undefined {
  const end = parseDay(today) || Number.POSITIVE_INFINITY;
  const isPast = (time: number) => time <= end;
  const starts = ads.map(({ startedAt }) => parseDay(startedAt)).filter(isPast);
  const to = ads
    .map(getLastDay)
    .concat(starts)
    .filter(isPast)
    .reduce((latest, time) => Math.max(latest, time), Number.NEGATIVE_INFINITY);
  if (to === Number.NEGATIVE_INFINITY) return undefined;
  const from = starts.reduce((earliest, time) => Math.min(earliest, time), to - 7 * dayMs);
  return { from: Math.max(from, to - maxAxisDays * dayMs), to };
}

/** Returns the start and the length of a run as fractions of the axis; undefined if its dates are unknown. */
export function locateRun(ad: BriefAd, axis: TimeAxis | undefined) {
  if (axis === undefined) return undefined;
  const { from, to } = axis;
  const start = parseDay(ad.startedAt);
  const end = Math.max(start, getLastDay(ad) || start);
  if (Number.isNaN(start) || start > to) return undefined;
  const toFraction = (time: number) => Math.min(1, Math.max(0, (time - from) / (to - from)));
  return { start: toFraction(start), length: toFraction(end) - toFraction(start) };
}

/**
 * Returns the months that begin on the axis, with the position of their first day as a fraction of the axis. Leaves out
 * months at equal intervals if there are more than `maxMonths`.
 */
export function listAxisMonths({ from, to }: TimeAxis, maxMonths: number) {
  const first = new Date(from);
  const months: { position: number; name: string }[] = [];
  for (let month = first.getUTCMonth() + 1; months.length < 600; month++) {
    const time = Date.UTC(first.getUTCFullYear(), month);
    if (time > to) break;
    months.push({ position: (time - from) / (to - from), name: new Date(time).toISOString().slice(0, 7) });
  }
  const step = Math.ceil(months.length / Math.max(1, maxMonths));
  return months.filter((_, index) => index % step === 0);
}
