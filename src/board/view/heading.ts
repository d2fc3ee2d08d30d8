import { sanitizeLine } from '../../present/safe-text.ts';
import type { State } from './state.ts';
import { country, day, joined, label, number } from './words.ts';

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
export function headingOf({ args, ads, context, collection }: State): { title: string; rest: string[] } {
  const filters = filtersIn(args);
  const { query = [], countries = [], active = [], advertiser = [], advertiserExact = [], ...others } = filters;
  const { pageId, sort: _, order: __, ...conditions } = others;
  const rest = Object.entries(conditions).map(([key, values]) => phrase(key, values));
  // An id says nothing: the ads say whose it is.
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
