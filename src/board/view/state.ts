import { countValues } from '../../ui/bars.tsx';
import {
  englishFormatters,
  type Formatters,
  formatAdLibrary,
  formatConstant,
  formatCountry,
} from '../../ui/formats.ts';
import { dayMs } from '../../views/durations.ts';
import { groupBy } from '../../views/group-by.ts';
import type { BoardData, BoardGathering, BriefAd, FullAd } from '../payload.ts';
import { getAdvertiserId, listAdvertisers } from './advertisers.ts';
import { type Finding, getVariantId } from './finding.ts';
import { type BoardDisplay, type HostConnection, type JsonObject, type ToolClient, ToolError } from './host.ts';
import type { PictureLoader } from './pictures.tsx';

/** The complete state of the ad board. It is never modified; each change creates a new object. */
export interface BoardState {
  /** Functions that format numbers and dates in the user's locale. */
  formatters: Formatters;
  ads: readonly BriefAd[];
  /** The ads that match `chosenValues`, the filter values that the user has chosen on the board. */
  visibleAds: readonly BriefAd[];
  /**
   * The visible ads, grouped and sorted as the list shows them. Each group has one card, or one row of the timeline. A
   * group contains a single ad, or all visible ads with nearly the same text (a variant).
   */
  adGroups: readonly (readonly BriefAd[])[];
  /** The time axis on which the board shows when each ad ran. Undefined if no ad has a date. */
  timeAxis?: TimeAxis | undefined;
  finding?: Finding | undefined;
  /** The ids of ads that the board has requested but not received yet. */
  pendingIds: readonly string[];
  /** The ids of ads that the tool result lists, but that the server no longer stores. */
  missingIds: readonly string[];
  chosenValues: ChosenValues;
  /**
   * The id of the variant (a group of ads with nearly the same text) that the user has opened. The board then shows
   * only the ads of this variant.
   */
  openVariantId?: string | undefined;
  /**
   * True if the user chose to show ads with nearly the same text (a variant) on one card, false if the user chose one
   * card per ad. Undefined until the user chooses.
   */
  shouldGroupVariants?: boolean | undefined;
  sortName: SortName;
  listLayout: 'cards' | 'timeline';
  /**
   * True if the user has opened the panel with charts and filters, false if the user has closed it. Undefined until the
   * user does either; the panel is then open if there is enough space.
   */
  isPanelOpen?: boolean | undefined;
  selectedIds: ReadonlySet<string>;
  /** The ids of ads that the user has already asked about in the conversation. */
  idsAskedAbout: readonly string[];
  /** The id of the ad whose details are open. */
  openAdId?: string | undefined;
  /** The ids of the ads that the user compares. */
  comparedIds?: readonly string[] | undefined;
  /** The ids of the ads that the save dialog is about to save. */
  idsToSave?: readonly string[] | undefined;
  /** The names of the tools that the board may call on this server. */
  offeredTools: readonly string[];
  /** The time of the last call to the server, in ISO format. Undefined before the first response. */
  asOf?: string | undefined;
  /** The time at which the ads were read from the service, in ISO format. Undefined before the first response. */
  readAt?: string | undefined;
  gathering?: BoardGathering | undefined;
  /** The arguments of the tool call that opened the board. */
  toolArguments: Readonly<Record<string, unknown>>;
  /** The board's data in the result of the tool call that opened the board. */
  boardData: BoardData;
  collectionName?: string | undefined;
  display: BoardDisplay;
  /** The text of the status line below the ads, e.g. `Reading the ads …`. */
  statusText: string;
  problem?: BoardProblem | undefined;
}

/** An error that the board shows in its footer. */
export interface BoardProblem {
  text: string;
  /** Repeats the failed step. Undefined if a retry cannot help or the board cannot perform it. */
  retry?: (() => void) | undefined;
}

/** The state of the board, and the functions that its components use. */
export interface BoardController {
  readonly state: Readonly<BoardState>;
  /** Applies a change to the state and re-renders the board. */
  updateState(change: Partial<Omit<BoardState, 'visibleAds' | 'adGroups'>>): void;
  /**
   * Returns the number by which the user and the model refer to an ad, e.g. `3.2` for the second ad of variant 3 (a
   * group of ads with nearly the same text). Ads are numbered in the order in which the board first shows them, and
   * then keep their number.
   */
  getAdNumber(ad: BriefAd): string;
  /** Applies the theme, the display mode and the maximum height that the host announces. */
  applyHostContext(context: JsonObject): void;
  /** Returns true if the host announced a capability, e.g. `message`. */
  hasCapability(capability: string): boolean;
  /** Requests ads by id from the server and adds them to the board. */
  loadAds(ids: readonly string[]): Promise<void>;
  /**
   * Ads with all their fields, by id. The board first receives each ad as a `BriefAd`, and loads the other fields when
   * it needs them.
   */
  fullAds: Map<string, FullAd>;
  toolClient: ToolClient;
  host: HostConnection;
  pictureLoader: PictureLoader;
}

/** The state of the board before the first tool result arrives. */
export const initialState: BoardState = {
  formatters: englishFormatters,
  ads: [],
  visibleAds: [],
  adGroups: [],
  pendingIds: [],
  missingIds: [],
  chosenValues: {},
  sortName: 'relevance',
  listLayout: 'cards',
  selectedIds: new Set(),
  idsAskedAbout: [],
  offeredTools: [],
  toolArguments: {},
  boardData: {},
  display: { hasLittleSpace: false, canShowFullScreen: false },
  statusText: 'Waiting for ads …',
};

/** Returns the message of a thrown value. Converts the value to text if it is not an `Error`. */
export const getErrorText = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/**
 * Converts an error to a problem that the board can show. The problem gets a retry button unless the server states that
 * a retry cannot help.
 */
export const createProblem = (error: unknown, retry: () => unknown): BoardProblem => ({
  text: getErrorText(error),
  retry: error instanceof ToolError && error.isRetryable === false ? undefined : () => void retry(),
});

/**
 * Returns the number of ads that match the search, including ads that are not on the board. Returns undefined if the
 * board has all matching ads, and `Infinity` if their number is unknown.
 */
export function countAllMatches({
  ads,
  toolArguments,
  boardData,
  gathering,
  pendingIds,
  missingIds,
}: BoardState): number | undefined {
  const listedCount = ads.length + pendingIds.length + missingIds.length;
  const { totalHits = 0, cursor, checks = [] } = boardData;
  const matchingCount = gathering
    ? Math.max(gathering.read, gathering.complete ? 0 : (gathering.found ?? 0))
    : totalHits;
  if (matchingCount > ads.length || listedCount > ads.length) return Math.max(matchingCount, listedCount);
  const hasMore = gathering
    ? !gathering.complete
    : Boolean(cursor || toolArguments.cursor) || checks.some(({ omittedAds }) => omittedAds > 0);
  return hasMore ? Number.POSITIVE_INFINITY : undefined;
}

const cachedVariantCountsByAds = new WeakMap<readonly BriefAd[], number>();

/**
 * Counts the variants (groups of ads with nearly the same text) in a list of ads. The function caches the count for
 * each list, because several components need it in every render.
 */
export function countVariants(ads: readonly BriefAd[]): number {
  const variantCount = cachedVariantCountsByAds.get(ads) ?? new Set(ads.map(getVariantId)).size;
  cachedVariantCountsByAds.set(ads, variantCount);
  return variantCount;
}

/**
 * Returns true if ads with nearly the same text (a variant) share one card. Unless the user has made a choice, they
 * share a card if this reduces the number of cards by at least a quarter.
 */
export const areVariantsGrouped = ({ ads, openVariantId, shouldGroupVariants }: BoardState): boolean =>
  openVariantId === undefined && (shouldGroupVariants ?? countVariants(ads) <= 0.75 * ads.length);

/**
 * Returns the ads to which the filters apply. These are all ads, or only the ads of one variant (a group of ads with
 * nearly the same text) if the user has opened it.
 */
export const selectFilterableAds = ({ ads, openVariantId }: BoardState): readonly BriefAd[] =>
  openVariantId === undefined ? ads : ads.filter((ad) => getVariantId(ad) === openVariantId);

/**
 * Applies a change to the state, and recomputes derived fields, such as `visibleAds`, if the change affects them. All
 * other derived fields stay the same objects, so that their components do not re-render.
 */
export function applyStateChange(previousState: BoardState, change: Partial<BoardState>): BoardState {
  const state = { ...previousState, ...change };
  const hasChanged = (...fieldNames: (keyof BoardState)[]) =>
    fieldNames.some((name) => state[name] !== previousState[name]);
  if (hasChanged('ads', 'openVariantId', 'chosenValues'))
    state.visibleAds = filterAds(selectFilterableAds(state), state.chosenValues);
  if (hasChanged('visibleAds', 'sortName', 'shouldGroupVariants', 'openVariantId'))
    state.adGroups = [
      ...groupBy(
        sortAds(state.visibleAds, state.sortName),
        areVariantsGrouped(state) ? getVariantId : ({ id }) => id,
      ).values(),
    ];
  return state;
}

/** A facet: a property of ads by which the user can filter, e.g. the country. */
interface Facet {
  title: string;
  /** Returns the values that an ad has for this facet, e.g. its countries. */
  getValues(ad: BriefAd): readonly string[];
  formatValue(value: string, formatters: Formatters, ads: readonly BriefAd[]): string;
  /** Returns a short text that distinguishes the value from another value with the same text. */
  formatDetail?(value: string, ads: readonly BriefAd[]): string | undefined;
  /**
   * True if the filter lists its values in descending order, e.g. the latest month first. By default, the most frequent
   * value comes first.
   */
  isSortedByValue?: true;
}

const wrapIfDefined = (value: string | undefined) => (value === undefined ? [] : [value]);
const returnUnchanged = (value: string) => value;

/**
 * The facets, i.e. the properties of ads by which the user can filter. Labels that the user has given to ads are
 * additional facets; see `getFacet`.
 */
export const facets = {
  runState: {
    title: 'State',
    getValues: ({ active }) => [active === undefined ? 'Unknown' : active ? 'Running' : 'Ended'],
    formatValue: (runState) => (runState === 'Unknown' ? 'State unknown' : runState),
    isSortedByValue: true,
  },
  format: {
    title: 'Format',
    getValues: ({ displayFormat }) => wrapIfDefined(displayFormat),
    formatValue: formatConstant,
  },
  library: {
    title: 'Ad library',
    getValues: ({ adLibrary }) => wrapIfDefined(adLibrary),
    formatValue: formatAdLibrary,
  },
  cta: { title: 'Call to action', getValues: ({ ctaType }) => wrapIfDefined(ctaType), formatValue: formatConstant },
  advertiser: {
    title: 'Advertiser',
    getValues: (ad) => wrapIfDefined(getAdvertiserId(ad)),
    formatValue: (id, _, ads) => listAdvertisers(ads).get(id)?.name ?? id,
    formatDetail: (id, ads) => listAdvertisers(ads).get(id)?.pageLabel,
  },
  country: { title: 'Country', getValues: ({ countries = [] }) => countries, formatValue: formatCountry },
  landing: { title: 'Landing page', getValues: ({ landing }) => wrapIfDefined(landing), formatValue: returnUnchanged },
  month: {
    title: 'Started',
    getValues: ({ startedAt }) => wrapIfDefined(startedAt?.slice(0, 7)),
    formatValue: (month, { formatMonth }) => formatMonth(month),
    isSortedByValue: true,
  },
} satisfies Record<string, Facet>;

/**
 * The name of a facet (a property by which the user can filter ads), e.g. `country`. For a label, the name is `#`
 * followed by the label, e.g. `#hook`.
 */
export type FacetName = keyof typeof facets | `#${string}`;

const isLabelFacet = (name: FacetName): name is `#${string}` => name.startsWith('#');

/** Returns the facet with this name. A name that starts with `#`, e.g. `#hook`, belongs to a label. */
export function getFacet(name: FacetName): Facet {
  if (!isLabelFacet(name)) return facets[name];
  const title = name.slice(1);
  return {
    title,
    getValues: ({ labels = [] }) => labels.flatMap(({ label, value = '' }) => (label === title ? [value] : [])),
    formatValue: (value) => value || title,
  };
}

/** The maximum number of labels that the user can filter by. */
const maxLabels = 12;

function listFacetNames(ads: readonly BriefAd[]): FacetName[] {
  const labels = new Set<FacetName>();
  for (const ad of ads) for (const { label } of ad.labels ?? []) if (labels.size < maxLabels) labels.add(`#${label}`);
  return [...(Object.keys(facets) as FacetName[]), ...labels];
}

/**
 * The filter values that the user has chosen, by facet (e.g. the country). An ad matches if it has at least one of the
 * chosen values of each facet.
 */
export type ChosenValues = Partial<Record<FacetName, ReadonlySet<string>>>;

/**
 * Returns the names of the facets for which an ad has none of the values that the user has chosen. If there are any
 * such facets, the filters hide the ad.
 */
const findUnmetFacets = (ad: BriefAd, chosenFacets: ReturnType<typeof listChosenFacets>): FacetName[] =>
  chosenFacets.flatMap(({ name, facet, values }) =>
    facet.getValues(ad).some((value) => values.has(value)) ? [] : [name],
  );

const listChosenFacets = (chosenValues: ChosenValues) =>
  (Object.keys(chosenValues) as FacetName[]).flatMap((name) => {
    const values = chosenValues[name];
    return values?.size ? [{ name, facet: getFacet(name), values }] : [];
  });

/** Counts the facets for which the user has chosen at least one value. */
export const countActiveFilters = (chosenValues: ChosenValues): number => listChosenFacets(chosenValues).length;

function filterAds(ads: readonly BriefAd[], chosenValues: ChosenValues): BriefAd[] {
  const chosenFacets = listChosenFacets(chosenValues);
  return ads.filter((ad) => findUnmetFacets(ad, chosenFacets).length === 0);
}

/**
 * A value of a facet, e.g. `Germany` for the facet `country`, with the number of ads that the board would show if the
 * user chose this value.
 */
export type FacetValue = ReturnType<typeof listFacetValues>[number][number];

/**
 * A facet (e.g. the country) in which every value belongs to only one ad is shown as a filter only if it has at most
 * this many values. A longer list of single ads would not be a useful filter.
 */
const maxValuesWithOneAd = 8;

/**
 * Returns the values of each facet (e.g. the country) that distinguishes the ads. In the result, `matchingAdCount` is
 * the number of ads that have the value and match the chosen values of all other facets.
 */
export function listFacetValues(ads: readonly BriefAd[], chosenValues: ChosenValues, formatters: Formatters) {
  const chosenFacets = listChosenFacets(chosenValues);
  const unmetFacetsByAdIndex = ads.map((ad) => findUnmetFacets(ad, chosenFacets));
  return listFacetNames(ads).flatMap((facetName) => {
    const { getValues, formatValue, formatDetail, isSortedByValue } = getFacet(facetName);
    const adCountsByValue = new Map<string, { matchingAdCount: number; allAdCount: number }>();
    ads.forEach((ad, index) => {
      const matchesOtherFacets = unmetFacetsByAdIndex[index]?.every((name) => name === facetName) === true;
      for (const value of getValues(ad)) {
        const count = adCountsByValue.get(value) ?? { matchingAdCount: 0, allAdCount: 0 };
        if (count.allAdCount++ === 0) adCountsByValue.set(value, count);
        if (matchesOtherFacets) count.matchingAdCount++;
      }
    });
    // A facet is not a useful filter if all ads have the same value, or if it has many values that each belong to only
    // one ad.
    const isUsefulFilter = [...adCountsByValue.values()].some(
      ({ allAdCount }) => allAdCount < ads.length && (allAdCount > 1 || adCountsByValue.size <= maxValuesWithOneAd),
    );
    if (!isUsefulFilter && !chosenValues[facetName]?.size) return [];
    // Sort by the number of all ads with a value, not only of the matching ads. The order then does not depend on the
    // chosen values, so values keep their place when the user chooses one of them.
    const sortedCounts = [...adCountsByValue].sort(
      isSortedByValue ? ([a], [b]) => (a < b ? 1 : -1) : ([, a], [, b]) => b.allAdCount - a.allAdCount,
    );
    const values = sortedCounts.flatMap(([value, { matchingAdCount }], rank) => {
      const isChosen = chosenValues[facetName]?.has(value) === true;
      if (matchingAdCount === 0 && !isChosen) return [];
      return {
        facet: facetName,
        value,
        text: formatValue(value, formatters, ads),
        detail: formatDetail?.(value, ads),
        matchingAdCount,
        rank,
        isChosen,
      };
    });
    return values.length > 0 ? [values] : [];
  });
}

/**
 * Adds a value of a facet, e.g. a country, to the chosen values, or removes the value if it is already chosen. Returns
 * the new chosen values.
 */
export function toggleValue(chosenValues: ChosenValues, facetName: FacetName, value: string): ChosenValues {
  const values = new Set(chosenValues[facetName]);
  if (!values.delete(value)) values.add(value);
  return { ...chosenValues, [facetName]: values };
}

/** Creates a comparator that sorts ads by a value, from the highest to the lowest. Ads without a value come last. */
const createDescendingComparator =
  (getValue: (ad: BriefAd) => number | string | undefined) => (firstAd: BriefAd, secondAd: BriefAd) => {
    const [firstValue, secondValue] = [getValue(firstAd), getValue(secondAd)];
    if (firstValue === secondValue) return 0;
    if (firstValue === undefined || secondValue === undefined) return firstValue === undefined ? 1 : -1;
    return firstValue < secondValue ? 1 : -1;
  };

const nameCollator = new Intl.Collator('en');
/**
 * A character that sorts after all names. It stands in for the missing name of an advertiser, so that ads without an
 * advertiser come last.
 */
const characterSortedLast = '\uffff';

/** The sort orders, each with its title in the menu and its comparator. Ads without a value come last. */
const sortOrders = {
  relevance: ['As listed', () => 0],
  days: ['Days running', createDescendingComparator(({ daysRunning }) => daysRunning)],
  newest: ['Newest first', createDescendingComparator(({ startedAt }) => startedAt)],
  variants: ['Variants', () => 0],
  duplicates: ['Copies of the ad', createDescendingComparator(({ duplicates }) => duplicates)],
  reach: ['Reach', createDescendingComparator(({ audienceReach }) => audienceReach)],
  advertiser: [
    'Advertiser',
    (a: BriefAd, b: BriefAd) =>
      nameCollator.compare(a.pageName ?? characterSortedLast, b.pageName ?? characterSortedLast) ||
      nameCollator.compare(a.pageId ?? '', b.pageId ?? ''),
  ],
} satisfies Record<string, [string, (a: BriefAd, b: BriefAd) => number]>;

/** The name of a sort order, e.g. `newest`. */
export type SortName = keyof typeof sortOrders;
/** The names of all sort orders, in menu order. */
export const sortNames = Object.keys(sortOrders) as SortName[];
/** Returns the title of a sort order, e.g. `Newest first`. */
export const getSortTitle = (sortName: SortName): string => sortOrders[sortName][0];

/**
 * Returns a sorted copy of the ads. The sort order `variants` starts with the ads that share their text with the most
 * other ads.
 */
export function sortAds(ads: readonly BriefAd[], sortName: SortName): BriefAd[] {
  if (sortName !== 'variants') return [...ads].sort(sortOrders[sortName][1]);
  const adCountsByVariant = countValues(ads.map(getVariantId));
  return [...ads].sort(createDescendingComparator((ad) => adCountsByVariant.get(getVariantId(ad))));
}

/**
 * A time axis, with both ends in milliseconds since 1970. The bars of all ads share one axis, so that users can compare
 * them.
 */
export interface TimeAxis {
  startMs: number;
  endMs: number;
}

const parseDayMs = (isoDate: string | undefined): number => Date.parse(isoDate?.slice(0, 10) ?? '');

const getLastKnownDayMs = ({ endDate, lastSeenAt, active }: BriefAd): number =>
  parseDayMs(active === false ? endDate : lastSeenAt);

/**
 * The maximum length of the time axis in days, i.e. ten years. Without this limit, a single wrong date would make the
 * bars of all other ads tiny.
 */
const maxAxisDays = 3653;

/**
 * Creates an axis from the first to the last date of all ads, but not beyond the day of `currentTime`. Returns
 * undefined if no ad has a date.
 */
export function createTimeAxis(ads: readonly BriefAd[], currentTime: string | undefined): TimeAxis | undefined {
  const currentDayMs = parseDayMs(currentTime) || Number.POSITIVE_INFINITY;
  const isPast = (timeMs: number) => timeMs <= currentDayMs;
  const startTimesMs = ads.map(({ startedAt }) => parseDayMs(startedAt)).filter(isPast);
  const endMs = ads
    .map(getLastKnownDayMs)
    .concat(startTimesMs)
    .filter(isPast)
    .reduce((latestMs, timeMs) => Math.max(latestMs, timeMs), Number.NEGATIVE_INFINITY);
  if (endMs === Number.NEGATIVE_INFINITY) return undefined;
  const startMs = startTimesMs.reduce((earliestMs, timeMs) => Math.min(earliestMs, timeMs), endMs - 7 * dayMs);
  return { startMs: Math.max(startMs, endMs - maxAxisDays * dayMs), endMs };
}

/**
 * Returns the start and the length of the bar of an ad, as fractions of the axis. Returns undefined if the ad's
 * dates are unknown.
 */
export function locateRunBar(ad: BriefAd, axis: TimeAxis | undefined) {
  if (axis === undefined) return undefined;
  const { startMs, endMs } = axis;
  const runStartMs = parseDayMs(ad.startedAt);
  const runEndMs = Math.max(runStartMs, getLastKnownDayMs(ad) || runStartMs);
  if (Number.isNaN(runStartMs) || runStartMs > endMs) return undefined;
  const toFraction = (timeMs: number) => Math.min(1, Math.max(0, (timeMs - startMs) / (endMs - startMs)));
  return { startFraction: toFraction(runStartMs), lengthFraction: toFraction(runEndMs) - toFraction(runStartMs) };
}

/**
 * Returns the months that start on the axis, each with the position of its first day as a fraction of the axis. If
 * there are more than `maxMonths`, returns only every second month, every third month, and so on.
 */
export function listAxisMonths({ startMs, endMs }: TimeAxis, maxMonths: number) {
  const startDate = new Date(startMs);
  const months: { positionFraction: number; isoMonth: string }[] = [];
  for (let month = startDate.getUTCMonth() + 1; months.length < 600; month++) {
    const timeMs = Date.UTC(startDate.getUTCFullYear(), month);
    if (timeMs > endMs) break;
    months.push({
      positionFraction: (timeMs - startMs) / (endMs - startMs),
      isoMonth: new Date(timeMs).toISOString().slice(0, 7),
    });
  }
  const monthStep = Math.ceil(months.length / Math.max(1, maxMonths));
  return months.filter((_, index) => index % monthStep === 0);
}
