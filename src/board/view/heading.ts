import { type Formats, formatConstant, formatCountry, formatLanguage, joinWithAnd } from '../../ui/formats.ts';
import { sanitizeLine } from '../../views/safe-text.ts';
import type { BoardContext, PriceBounds } from '../payload.ts';
import { minAds } from './finding.ts';
import { messagesIn, type State, wholeOf } from './state.ts';

/** `12 of 58 messages, 300 of 1,821 ads`: what is shown, or of how many ads those here are a part. */
export function partsText(state: State): string {
  const { ads, shown, formats } = state;
  const { formatCount, formatNumber } = formats;
  const part = (some: number, all: number, noun: string) =>
    `${some < all ? `${formatNumber(some)} of ` : ''}${formatCount(all, noun)}`;
  const allAds = wholeOf(state) ?? ads.length;
  const isAll = shown.length === ads.length && allAds !== Number.POSITIVE_INFINITY;
  const inAds = part(shown.length, isAll ? allAds : ads.length, 'ad');
  const messages = messagesIn(ads);
  return messages === ads.length ? inAds : `${part(messagesIn(shown), messages, 'message')}, ${inAds}`;
}

/** `146 ads in 2 pages, 15 credits`; undefined where the call did more than estimate. */
export function estimateText({ context, formats }: State): string | undefined {
  const { isDemo, estimate, gathering } = context;
  const { formatCount, formatNumber } = formats;
  if (!estimate || gathering) return undefined;
  const { ads, read = 0, pages, credits, atLeast = 0, atMost } = estimate;
  if (ads === null) return 'The service does not say how many ads there are.';
  const all = `${read > 0 && read < ads ? `${formatNumber(ads - read)} of ` : ''}${formatCount(ads, isDemo ? 'demo ad' : 'ad')}`;
  const size = read >= ads && read > 0 ? 'read already' : `in ${formatCount(pages ?? 0, 'page')}`;
  const price = credits === null ? atMost && { atLeast, atMost } : { atLeast: credits, atMost: credits };
  return `${all}${pages === null ? '' : ` ${size}`}, ${creditsText(price, formats)}`;
}

/** `free`, `15 credits`, `at most 3 credits`, `between 3 and 146 credits` */
export function creditsText(price: PriceBounds | 0 | undefined, { formatCount, formatNumber }: Formats): string {
  if (!price) return 'at an unknown price';
  const { atLeast, atMost } = price;
  if (atMost === 0) return 'free';
  const least = atLeast === 0 ? 'at most ' : `between ${formatNumber(atLeast)} and `;
  return `${atLeast === atMost ? '' : least}${formatCount(atMost, 'credit')}`;
}

/** The remaining conditions, the ads that are missing, and the date. */
export function aboutText(state: State, conditions: readonly string[]): string {
  const { gathering, coming, missing, readAt, formats } = state;
  const { formatDay, formatNumber } = formats;
  const parts = [
    ...conditions,
    gathering && !gathering.complete && 'not complete',
    coming.length > 0 && `${formatNumber(coming.length)} more to come`,
    missing.length > 0 && `${formatNumber(missing.length)} no longer stored`,
    readAt !== undefined && `as of ${formatDay(readAt)}`,
  ];
  return parts.filter(Boolean).join(' · ');
}

/** Whose charts these are, where they are a part. */
export function partText(state: State): string {
  const { formatCount, formatNumber } = state.formats;
  const matching = state.ads.length < minAds ? undefined : wholeOf(state);
  if (matching === undefined) return '';
  const shown = `Charts of the ${formatCount(state.shown.length, 'ad')} shown`;
  return matching === Number.POSITIVE_INFINITY
    ? `${shown}. There are more, which may look different.`
    : `${shown}, out of ${formatNumber(matching)}. The others may look different.`;
}

/** `Nothing was found: “free shipping” in Germany, running.` */
export function emptyText(state: State): string {
  const { title, rest } = headingOf(state);
  const conditions = [title === 'All ads' ? '' : title, ...rest].filter(Boolean).join(', ');
  return conditions === '' ? 'There are no ads to show.' : `Nothing was found: ${conditions}.`;
}

export function paidText(receipt: BoardContext['receipt'], { formatCount, formatNumber }: Formats): string {
  const { charged = null, remaining = null } = receipt ?? {};
  const paid =
    charged === null ? 'The service did not say what it charged' : `${formatCount(charged, 'credit')} charged`;
  return `${paid}${remaining === null ? '' : `, ${formatNumber(remaining)} left`}.`;
}

const maxWords = 80;
const maxRest = 5;
const subjects: Record<string, string> = {
  view_ads: 'Ads looked at',
  check_watches: 'New in your watches',
  list_collection_items: 'Saved ads',
};

/** What was searched for, which a model may have copied from an ad: `“free shipping” in the United States`. */
export function headingOf({ args, ads, context, collection, formats }: State): { title: string; rest: string[] } {
  const { formatNumber } = formats;
  const filters = filtersIn(args);
  const { query = [], countries = [], active = [], advertiser = [], advertiserExact = [], ...others } = filters;
  const { pageId, sort: _, order: __, ...conditions } = others;
  const rest = Object.entries(conditions).map(([key, values]) => phrase(key, values, formats));
  // An id says nothing to a reader: the ads name their advertiser.
  const ofIds = pageId ? ads.flatMap(({ pageName }) => pageName ?? []) : [];
  const advertisers = [...new Set([...advertiser, ...advertiserExact, ...ofIds].map(String))];
  const words = query.map((text) => `“${String(text).replaceAll('"', '')}”`);
  const who = advertisers.length > 3 ? `${formatNumber(advertisers.length)} advertisers` : joinWithAnd(advertisers);
  const state = active.length === 0 ? 'Ads' : active.every((value) => value === true) ? 'Running ads' : 'Ended ads';
  if (active.length === 1 && (words.length > 0 || who)) rest.unshift(active[0] === true ? 'running' : 'ended');
  const subject = [...words, who].filter(Boolean).join(' by ');
  const places = countries.map((code) => formatCountry(String(code))).map(withArticle);
  const where = places.length > 3 ? `${formatNumber(places.length)} countries` : joinWithAnd(places);
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

export const filtersByTime = (args: State['args']): boolean =>
  Object.keys(filtersIn(args)).some((key) => /active|start|end|seen|days|date|created/i.test(key));

const isId = (value: unknown): boolean => typeof value === 'string' && /^[\da-f-]{20,}$|^\d{8,}$/i.test(value);

/** `daysRunningFrom: 30` as `days running from 30`. */
function phrase(key: string, values: readonly unknown[], formats: Formats): string {
  const textOf = (value: unknown) => (/currency/i.test(key) ? String(value).toUpperCase() : valueText(value, formats));
  if (key === 'displayFormat' || key === 'ctaType') return values.map(textOf).join(' or ');
  if (key === 'language') return `in ${values.map((code) => formatLanguage(String(code))).join(' or ')}`;
  const words = key.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).replaceAll('_', ' ');
  const shownValues = values.filter((value) => !isId(value) && value !== true).map(textOf);
  return [words, shownValues.join(' or ')].filter(Boolean).join(' ');
}

function valueText(value: unknown, formats: Formats): string {
  if (typeof value === 'number') return formats.formatNumber(value);
  if (typeof value === 'string')
    return (
      (/^\d{4}-\d\d-\d\d/.test(value) && formats.formatDay(value)) ||
      (formatCountry(value) === value ? formatConstant(value) : formatCountry(value))
    );
  if (typeof value !== 'object' || value === null) return String(value);
  return joinWithAnd(Object.entries(value).map(([key, inner]) => phrase(key, [inner].flat(), formats)));
}

const withArticle = (name: string): string =>
  /^(?:United|Netherlands|Philippines|Czech Rep|Dominican Rep|Bahamas|Gambia|Maldives)/.test(name)
    ? `the ${name}`
    : name;
