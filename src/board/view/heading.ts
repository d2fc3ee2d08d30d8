import { type Formatters, formatConstant, formatCountry, formatLanguage, joinWithOr } from '../../ui/formats.ts';
import { capitalize } from '../../views/column-title.ts';
import { joinNames, sanitizeLine } from '../../views/safe-text.ts';
import type { BoardData, PriceBounds } from '../payload.ts';
import { formatAdvertiser, listAdvertisers } from './advertisers.ts';
import { minAdsForOverview } from './finding.ts';
import { type BoardState, countAllMatches, countVariants } from './state.ts';

/**
 * Formats the numbers of visible messages (groups of ads with nearly the same text) and visible ads, e.g. `12 of 58
 * messages, 300 of 1,821 ads`. The total number of ads includes all matching ads, or only the ads on the board if
 * filters hide some of them.
 */
export function formatVisibleCounts(state: BoardState): string {
  const { ads, visibleAds, formatters } = state;
  const { formatCount, formatNumber } = formatters;
  const formatCountOfTotal = (count: number, totalCount: number, noun: string) =>
    `${count < totalCount ? `${formatNumber(count)} of ` : ''}${formatCount(totalCount, noun)}`;
  const matchingCount = countAllMatches(state) ?? ads.length;
  const showsAllAds = visibleAds.length === ads.length && matchingCount !== Number.POSITIVE_INFINITY;
  const adsText = formatCountOfTotal(visibleAds.length, showsAllAds ? matchingCount : ads.length, 'ad');
  const variantCount = countVariants(ads);
  if (variantCount === ads.length) return adsText;
  return `${formatCountOfTotal(countVariants(visibleAds), variantCount, 'message')}, ${adsText}`;
}

/**
 * Formats the estimated cost of a `gather_ads` or `check_watches` call, e.g. `146 ads in 2 pages, 15 credits`. Returns
 * undefined if the call also read ads, because the board then shows these ads.
 */
export function formatEstimate({ boardData, formatters }: BoardState): string | undefined {
  const { isDemo, estimate, gathering } = boardData;
  const { formatCount, formatNumber } = formatters;
  if (!estimate || gathering) return undefined;
  const { ads, read = 0, pages, credits, atLeast = 0, atMost } = estimate;
  const price = credits === null ? atMost && { atLeast, atMost } : { atLeast: credits, atMost: credits };
  if (ads === undefined) {
    const subjectText = `Check of your watches${isDemo ? ' (demo data)' : ''}`;
    return `${subjectText}${pages ? ` in ${formatCount(pages, 'page')}` : ''}, ${formatPrice(price, formatters)}`;
  }
  if (ads === null) return 'The number of ads is unknown.';
  const unreadText = read > 0 && read < ads ? `${formatNumber(ads - read)} of ` : '';
  const adsText = `${unreadText}${formatCount(ads, isDemo ? 'demo ad' : 'ad')}`;
  const pagesText = read >= ads && read > 0 ? 'read already' : `in ${formatCount(pages ?? 0, 'page')}`;
  return `${adsText}${pages === null ? '' : ` ${pagesText}`}, ${formatPrice(price, formatters)}`;
}

/**
 * Formats a price, e.g. `free`, `15 credits`, `at most 3 credits` or `between 3 and 146 credits`. If `price` is
 * undefined or 0, the price is unknown.
 */
export function formatPrice(price: PriceBounds | 0 | undefined, { formatCount, formatNumber }: Formatters): string {
  if (!price) return 'at an unknown price';
  const { atLeast, atMost } = price;
  if (atMost === 0) return 'free';
  const lowerBound = atLeast === 0 ? 'at most ' : `between ${formatNumber(atLeast)} and `;
  return `${atLeast === atMost ? '' : lowerBound}${formatCount(atMost, 'credit')}`;
}

/**
 * Formats the line below the board's heading. The line contains the search conditions that are not in the title, the
 * number of missing ads, and the date on which the ads were read.
 */
export function formatHeadingDetails(state: BoardState, searchConditions: readonly string[]): string {
  const { gathering, pendingIds, missingIds, readAt, formatters } = state;
  const { formatDay, formatNumber } = formatters;
  const details = [
    ...searchConditions,
    gathering && !gathering.complete && 'not complete',
    pendingIds.length > 0 && `${formatNumber(pendingIds.length)} more to come`,
    missingIds.length > 0 && `${formatNumber(missingIds.length)} no longer stored`,
    readAt !== undefined && `as of ${formatDay(readAt)}`,
  ];
  return details.filter(Boolean).join(' · ');
}

/**
 * Describes the check of each watch in a sentence, e.g. `“Shoes”: 2 new, 1 changed since 13 Nov 2026; 30 ads read.`
 * `areAdsShown` is true if the board shows ads of the watch. If it is false, the sentence says so.
 */
export function describeChecks({ boardData: { checks = [], gathering: shownGathering }, formatters }: BoardState) {
  const { formatCount, formatDay, formatNumber } = formatters;
  return checks.map(({ name, newAds, changedAds, goneAds, omittedAds, found, read, complete, since, gathering }) => {
    const subject = `“${sanitizeHeadingText(name)}”`;
    if (gathering === undefined) return { areAdsShown: false, sentence: `${subject} was not checked.` };
    const changes = [
      newAds > 0 && `${formatNumber(newAds)} new`,
      changedAds > 0 && `${formatNumber(changedAds)} changed`,
      newAds + changedAds === 0 && 'nothing new or changed',
      goneAds > 0 && `${formatNumber(goneAds)} no longer listed`,
    ].filter((text) => text !== false);
    const changesText = since === null ? 'first check' : `${changes.join(', ')} since ${formatDay(since)}`;
    const adsText =
      complete || found === null ? formatCount(read, 'ad') : `${formatNumber(read)} of ${formatCount(found, 'ad')}`;
    const readText = `${adsText} read${complete ? '' : ', not complete'}`;
    const areAdsShown = gathering === shownGathering || newAds + changedAds > 0;
    const sentence = [
      `${subject}: ${changesText}; ${readText}.`,
      !areAdsShown && 'Its ads are not shown here.',
      omittedAds > 0 && `${formatCount(omittedAds, 'new or changed ad is', 'new or changed ads are')} not shown here.`,
    ];
    return { areAdsShown, sentence: sentence.filter(Boolean).join(' ') };
  });
}

/**
 * Formats a warning that the charts and filters apply to only some of the matching ads. Returns an empty string if the
 * board has all matching ads. If too few ads are visible, there are no charts, and the warning mentions only filters.
 */
export function formatChartScopeWarning(state: BoardState): string {
  const { formatCount, formatNumber } = state.formatters;
  const matchingCount = state.ads.length < minAdsForOverview ? undefined : countAllMatches(state);
  if (matchingCount === undefined) return '';
  const scopeText =
    state.visibleAds.length < minAdsForOverview
      ? `Filters apply to the ${formatCount(state.ads.length, 'ad')} here`
      : `Charts of the ${formatCount(state.visibleAds.length, 'ad')} shown`;
  return matchingCount === Number.POSITIVE_INFINITY
    ? `${scopeText}. There are more, which may look different.`
    : `${scopeText}, out of ${formatNumber(matchingCount)}. The others may look different.`;
}

/** Formats the status of a board without ads, e.g. `Nothing was found: “free shipping” in Germany, running.` */
export function formatEmptyResult(state: BoardState): string {
  if (state.boardData.checks?.length === 0) return 'There are no watches to check.';
  if (state.boardData.checks) return 'There are no ads to show.';
  if (state.missingIds.length > 0)
    return 'The server no longer stores these ads. Ask your assistant to read them again.';
  if (state.toolArguments.collectionId !== undefined) return 'The collection contains no ads.';
  const { title, conditions } = buildHeading(state);
  const searchText = [title === 'All ads' ? '' : title, ...conditions].filter(Boolean).join(', ');
  return searchText === '' ? 'There are no ads to show.' : `Nothing was found: ${searchText}.`;
}

/**
 * Formats the cost of a call: the number of credits that the service charged, and the number of credits that remain.
 */
export function formatReceipt(receipt: BoardData['receipt'], { formatCount, formatNumber }: Formatters): string {
  const { charged = null, remaining = null } = receipt ?? {};
  const chargeText =
    charged === null ? 'The service did not say what it charged' : `${formatCount(charged, 'credit')} charged`;
  return `${chargeText}${remaining === null ? '' : `, ${formatNumber(remaining)} left`}.`;
}

/** The maximum length of the board's title and of each search condition, in characters. */
const maxHeadingTextLength = 80;
const maxConditions = 5;

/**
 * The title of the board for each tool that lists ads. These titles are used if the search contains neither search
 * words nor an advertiser.
 */
const titlesByTool: Record<string, string> = {
  view_ads: 'Ads looked at',
  check_watches: 'Ads of your watches',
  list_collection_items: 'Saved ads',
};

/**
 * Formats the title of the board for a result of `check_watches`, e.g. `New and changed ads of your watches`. If the
 * board shows all ads of one watch, because none are new or changed, the title contains the name of the watch.
 */
function formatChecksTitle(checks: NonNullable<BoardData['checks']>, shownGathering: string | undefined): string {
  const shownCheck = checks.find(({ gathering }) => gathering !== undefined && gathering === shownGathering);
  if (shownCheck !== undefined) return `Ads of the watch “${sanitizeHeadingText(shownCheck.name)}”`;
  const hasNewAds = checks.some(({ newAds }) => newAds > 0);
  const hasChangedAds = checks.some(({ changedAds }) => changedAds > 0);
  const newAndChanged = [hasNewAds && 'new', hasChangedAds && 'changed'].filter((word) => word !== false).join(' and ');
  return newAndChanged === '' ? 'Your watches' : `${capitalize(newAndChanged)} ads of your watches`;
}

/**
 * Builds the board's heading: a title, e.g. `“free shipping” in the United States`, and the other search conditions.
 * Texts are sanitized, because a model may have copied the search words from an ad.
 */
export function buildHeading(state: BoardState): { title: string; conditions: string[] } {
  const { toolArguments, ads, boardData, collectionName, formatters } = state;
  if (boardData.checks) return { title: formatChecksTitle(boardData.checks, boardData.gathering), conditions: [] };
  const { formatNumber } = formatters;
  const filters = collectFilters(toolArguments);
  const {
    query = [],
    countries = [],
    active = [],
    advertiser = [],
    advertiserExact = [],
    ...remainingFilters
  } = filters;
  const { pageId, sort: _, order: __, ...otherFilters } = remainingFilters;
  const conditions = Object.entries(otherFilters).map(([key, values]) => formatCondition(key, values, formatters));
  // Show the advertiser's name instead of its page id. The search contains only the id, but the ads contain the name.
  const pageNames = pageId ? [...listAdvertisers(ads).values()].map(formatAdvertiser) : [];
  const advertisers = [...new Set([...advertiser, ...advertiserExact, ...pageNames].map(String))];
  const searchWords = joinWithOr(query.map((text) => `“${String(text).replaceAll('"', '')}”`));
  const advertisersText =
    advertisers.length > 3 ? `${formatNumber(advertisers.length)} advertisers` : joinNames(advertisers);
  // A split search can contain both values of `active`. The search then returns running and ended ads.
  const runStates = active.map((value) => runStatesByActive.get(String(value)));
  const runState = runStates.length === 1 ? runStates[0] : undefined;
  const runStateTitle = runState === undefined ? 'Ads' : `${capitalize(runState)} ads`;
  if (runState !== undefined && (searchWords || advertisersText)) conditions.unshift(runState);
  if (runStates.includes(undefined)) conditions.unshift(formatCondition('active', active, formatters));
  const subject = [searchWords, advertisersText].filter(Boolean).join(' by ');
  const countryNames = countries.map((code) => formatCountry(String(code))).map(addArticleToCountry);
  const countriesText =
    countryNames.length > 3 ? `${formatNumber(countryNames.length)} countries` : joinNames(countryNames);
  const hasNoFilter = Object.keys(filters).length === 0;
  // A call with a cursor may omit the filters, because the server remembers them.
  const isUnfiltered = hasNoFilter && !toolArguments.cursor;
  const fallbackTitle = titlesByTool[boardData.tool ?? ''] || (isUnfiltered ? 'All ads' : runStateTitle);
  const title = sanitizeHeadingText(subject || collectionName || fallbackTitle);
  return {
    title: countriesText === '' ? title : `${title} in ${sanitizeHeadingText(countriesText)}`,
    conditions: conditions.filter(Boolean).slice(0, maxConditions).map(sanitizeHeadingText),
  };
}

/**
 * The run states by the value of the filter `active`, as text. Some models pass `true` as text. A service can also have
 * other values, e.g. `all`.
 */
const runStatesByActive = new Map([
  ['true', 'running'],
  ['false', 'ended'],
]);

const sanitizeHeadingText = (text: string): string => sanitizeLine(text.slice(0, maxHeadingTextLength));

/**
 * Collects the values of each filter key in a search. A search may be split into several filter objects, whose values
 * are merged.
 */
function collectFilters(toolArguments: BoardState['toolArguments']): Record<string, unknown[]> {
  const [filters, split] = [parseIfJsonText(toolArguments.filters), parseIfJsonText(toolArguments.split)];
  const valuesByKey: Record<string, unknown[]> = Object.create(null);
  for (const splitPart of Array.isArray(split) && split.length > 0 ? split : [{}])
    for (const [key, value] of Object.entries({ ...toObjectOrEmpty(filters), ...toObjectOrEmpty(splitPart) }))
      valuesByKey[key] = [...new Set([...(valuesByKey[key] ?? []), ...[value].flat()])];
  return valuesByKey;
}

/** Parses an argument that a model has passed as JSON text instead of an object. Returns other values unchanged. */
function parseIfJsonText(argument: unknown): unknown {
  if (typeof argument !== 'string') return argument;
  try {
    return JSON.parse(argument);
  } catch {
    return undefined;
  }
}

const toObjectOrEmpty = (value: unknown): object => (typeof value === 'object' && value !== null ? value : {});

/** Returns true if the search has a filter that limits the time in which ads ran, e.g. `startedAt`. */
export const hasTimeFilter = (toolArguments: BoardState['toolArguments']): boolean =>
  Object.keys(collectFilters(toolArguments)).some((key) => /active|start|end|seen|days|date|created/i.test(key));

const isId = (value: unknown): boolean => typeof value === 'string' && /^[\da-f-]{20,}$|^\d{8,}$/i.test(value);

/** Formats a filter as words, e.g. `days running from 30` for `daysRunningFrom: 30`. */
function formatCondition(filterKey: string, values: readonly unknown[], formatters: Formatters): string {
  const formatValue = (value: unknown) =>
    /currency/i.test(filterKey) ? String(value).toUpperCase() : formatFilterValue(value, formatters);
  if (filterKey === 'displayFormat' || filterKey === 'ctaType') return values.map(formatValue).join(' or ');
  if (filterKey === 'language') return `in ${values.map((code) => formatLanguage(String(code))).join(' or ')}`;
  const filterName = filterKey.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).replaceAll('_', ' ');
  const valueTexts = values.filter((value) => !isId(value) && value !== true).map(formatValue);
  return [filterName, valueTexts.join(' or ')].filter(Boolean).join(' ');
}

function formatFilterValue(value: unknown, formatters: Formatters): string {
  if (typeof value === 'number') return formatters.formatNumber(value);
  if (typeof value === 'string')
    return (
      (/^\d{4}-\d\d-\d\d/.test(value) && formatters.formatDay(value)) ||
      (formatCountry(value) === value ? formatConstant(value) : formatCountry(value))
    );
  if (typeof value !== 'object' || value === null) return String(value);
  return joinNames(
    Object.entries(value).map(([key, innerValue]) => formatCondition(key, [innerValue].flat(), formatters)),
  );
}

const addArticleToCountry = (name: string): string =>
  /^(?:United|Netherlands|Philippines|Czech Rep|Dominican Rep|Bahamas|Gambia|Maldives)/.test(name)
    ? `the ${name}`
    : name;
