import type { SentField } from './fields.ts';
import { defuse, quote, sanitize, sanitizeLine } from './safe-text.ts';
import { estimateTokens, fitsWithin, truncate } from './tokens.ts';

/** Lists are brief and single objects standard by default; full shows every field. */
export type Detail = 'brief' | 'standard' | 'full';

/** The most tokens of an id: twice a UUID. */
export const idTokens = 48;

/** A full view and its frame stay below the default result budget of 8,000. */
export const fullTokens = 7500;

/** Maximum tokens of data for each token of text: data repeats what a text states once. */
export const dataPerText = 2;

export type Fields = Record<string, unknown>;

export const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Excludes infinity, which is what `1e309` becomes when JSON is parsed. */
export const isNumber = (value: unknown): value is number => Number.isFinite(value);

/** A whole number that JavaScript cannot read exactly came as a text. */
export const isLongNumber = (value: unknown): value is string => typeof value === 'string' && longNumber.test(value);

const longNumber = /^-?\d{16,400}$/;

/** The objects among the first entries of a list; none for anything else. */
export const objects = (value: unknown): Fields[] =>
  Array.isArray(value) ? value.slice(0, maxObjects).filter(isObject) : [];

/** The most objects that are read of a list: no ad has so many cards or media. */
const maxObjects = 1000;

/** A safe text of at most `tokens`; undefined for anything but a text with visible content. */
export function textOf(value: unknown, tokens: number): string | undefined {
  if (typeof value !== 'string' || value === '') return;
  if (plainWord.test(value) && fitsWithin(value, tokens)) return value;
  const enough = charsPerToken * (tokens + 8);
  const text = sanitize(value.slice(0, enough)).trim();
  const beyond = Math.max(0, value.length - enough);
  return text === '' && beyond === 0 ? undefined : truncate(text, tokens, beyond);
}

/** Most values are ids and constants, in which there is nothing to clean. */
const plainWord = /^[\w-]{1,32}$/;

export const isVisible = (value: unknown): boolean =>
  typeof value === 'string' && sanitize(value.slice(0, 100)).trim() !== '';

/** The output schemas promise clients that an id is always present and always text. */
export const idOf = (value: unknown): string => textOf(isNumber(value) ? String(value) : value, idTokens) ?? '';

/** The most characters of a token by our estimate: a text beyond that is not read. */
const charsPerToken = 8;
const maxWords = 12;
const wordTokens = 12;

/** The type of a field: the maximum tokens of a text, a number, a flag, a list of words. */
type FieldType = number | 'number' | 'flag' | 'words';

/** The fields that a view shows, for `keep`. A single object shows what lists show as well. */
export const viewTable = (fields: Record<string, SentField>, view: 'brief' | 'standard'): Record<string, FieldType> =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, { is, brief, standard = brief }]) => {
      const shown = view === 'brief' ? brief : standard;
      if (shown === undefined) return [];
      return [[name, is === 'number' || is === 'flag' || is === 'words' ? is : shown === true ? dateTokens : shown]];
    }),
  );

const dateTokens = 20;

/** `reach 800000`: a phrase for each field of the view whose number needs only a word. */
export function simpleFacts(fields: Record<string, SentField>): (view: object) => string[] {
  const phrases = Object.entries(fields).flatMap(([name, { say }]) => (say === undefined ? [] : [{ name, say }]));
  return (view) =>
    phrases.flatMap(({ name, say }) => {
      const value = (view as Fields)[name];
      return value === undefined ? [] : [`${say} ${value}`];
    });
}

/**
 * Copies the named fields of a service object, in the given order. Leaves out absent, null and empty values and those
 * of another type; bounds texts and lists.
 */
export function keep(view: object, source: Fields, types: Readonly<Record<string, FieldType>>): void {
  for (const name in types) {
    const value = source[name];
    if (value === undefined || value === null) continue;
    const kept = keepValue(value, types[name]);
    if (kept !== undefined) (view as Fields)[name] = kept;
  }
}

/** Adds derived fields, without those that are undefined. */
export function add(view: object, fields: object): void {
  for (const name in fields) {
    const value = (fields as Fields)[name];
    if (value !== undefined) (view as Fields)[name] = value;
  }
}

function keepValue(value: unknown, type: FieldType | undefined): unknown {
  if (type === 'number') return isNumber(value) || isLongNumber(value) ? value : undefined;
  if (type === 'flag') return typeof value === 'boolean' ? value : undefined;
  return type === 'words' ? wordsOf(value) : textOf(value, type ?? 0);
}

function wordsOf(value: unknown): string[] | undefined {
  if (!Array.isArray(value)) return;
  const words: string[] = [];
  for (const word of value.slice(0, maxWords)) {
    const text = textOf(word, wordTokens);
    if (text !== undefined) words.push(text);
  }
  if (value.length > maxWords) words.push(`… (+${value.length - maxWords} more)`);
  return words.length > 0 ? words : undefined;
}

/** As `Map.groupBy`, which Node 20 lacks. */
export function groupBy<Item, Key>(items: Iterable<Item>, keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

/**
 * Every field the service sent, with names and texts made safe, and without nulls and infinite numbers. An object
 * larger than `tokens` is cut where it is largest, between items and fields. The view says in place what is missing,
 * and once how to get it.
 */
export function fullView(raw: unknown, tokens: number, toGetAll?: string): Fields {
  const whole = clean(raw, maxDepth);
  return isObject(whole) ? bounded(whole, tokens, toGetAll) : {};
}

/** An ad or a page as data, which may be larger than its text. */
export const fullItem = (raw: unknown, tokens: number): Fields => fullView(raw, dataPerText * tokens, howToGetAll);

const howToGetAll = 'Cut to fit: raise AD_LIBRARY_RESULT_TOKENS for the rest';

function bounded(whole: Fields, tokens: number, toGetAll: string | undefined): Fields {
  if (fitsWithin(JSON.stringify(whole), tokens - 1)) return whole;
  if (toGetAll === undefined) return shrink(whole, tokens) as Fields;
  const { [missingName]: _, ...fields } = whole;
  const { [missingName]: missing, ...kept } = shrink(fields, tokens - 2 * note) as Fields;
  return { ...kept, [missingName]: missing === undefined ? toGetAll : `${missing}. ${toGetAll}` };
}

/**
 * One field on each line, its value as JSON, in which a text can neither end its quotes nor start a line. A name stays
 * bare if it is written as the API writes names, because none of our lines starts this way.
 */
export const fullText = (view: object, tokens: number): string =>
  Object.entries(bounded(view as Fields, tokens, howToGetAll))
    .map(
      ([name, value]) =>
        `${fieldPattern.test(name) || name === missingName ? name : quote(name)}: ${defuse(JSON.stringify(value) ?? 'null')}`,
    )
    .join('\n');

export const fullBlocks = (views: readonly object[], tokens: number, from = 1): string =>
  views.map((view, index) => `\n${index + from}.\n${fullText(view, tokens)}`).join('\n');

const fieldPattern = /^(?!credits?$|requests?$|demo|notice$|warning$)[a-z][A-Za-z\d]{0,39}$/;

const maxDepth = 8;

function clean(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return sanitize(value);
  if (typeof value === 'number') return isNumber(value) ? value : undefined;
  if (typeof value !== 'object' || value === null) return value ?? undefined;
  if (depth === 0) return '… (nested deeper)';
  if (Array.isArray(value)) return value.map((item) => clean(item, depth - 1)).filter((item) => item !== undefined);
  const nameOf = namesIn(value);
  const kept: [string, unknown][] = [];
  for (const [name, item] of Object.entries(value)) {
    const safe = clean(item, depth - 1);
    if (safe !== undefined) kept.push([nameOf(name), safe]);
  }
  return Object.fromEntries(kept);
}

/** Makes names safe. A safe name stays as it is; another one that becomes equal to it gets a number. */
function namesIn(object: object): (name: string) => string {
  if (Object.keys(object).every((name) => plainName.test(name))) return (name) => name;
  const taken = new Set([missingName]);
  for (const name of Object.keys(object)) if (name !== missingName && sanitizeLine(name) === name) taken.add(name);
  const next = new Map<string, number>();
  return (name) => {
    const safe = sanitizeLine(name);
    if (safe === name && name !== missingName) return name;
    let free = safe;
    for (let number = next.get(safe) ?? 2; taken.has(free); number++) {
      free = `${safe} (${number})`;
      next.set(safe, number + 1);
    }
    taken.add(free);
    return free;
  };
}

/** How the API writes names. */
const plainName = /^[a-z][A-Za-z\d]*$/;

/** The name of the field that says what is missing. */
const missingName = '…';

const costOf = (value: unknown): number => estimateTokens(JSON.stringify(value)) + 1;

function shrink(value: unknown, tokens: number): unknown {
  if (costOf(value) <= tokens) return value;
  if (typeof value === 'string') return truncate(value, tokens - quoteTokens);
  if (Array.isArray(value)) return shrinkArray(value, tokens - note);
  if (isObject(value)) return shrinkObject(value, tokens - note);
  return value;
}

const quoteTokens = 4;
const note = 12;

function shrinkArray(items: unknown[], tokens: number): unknown[] {
  const kept: unknown[] = [];
  let left = tokens;
  for (const item of items) {
    const cost = costOf(item);
    if (cost > left) break;
    kept.push(item);
    left -= cost;
  }
  if (kept.length === 0 && tokens > 2 * note) kept.push(shrink(items[0], tokens));
  return kept.length < items.length ? [...kept, `… (+${items.length - kept.length} more)`] : kept;
}

/** Each field gets an equal share. Small fields leave the rest of their share to larger ones. */
function shrinkObject(object: Fields, tokens: number): Fields {
  const entries = Object.entries(object);
  const costs = new Map(entries.map(([name, value]) => [name, costOf(value)]));
  const kept = new Map<string, unknown>();
  let left = tokens;
  let waiting = entries.length;
  for (const [name, value] of entries.toSorted(([a], [b]) => (costs.get(a) ?? 0) - (costs.get(b) ?? 0))) {
    const share = left / waiting-- - costOf(name);
    const cost = costs.get(name) ?? 0;
    if (cost > share && share < 2 * note) continue;
    const fitting = cost <= share ? value : shrink(value, share);
    kept.set(name, fitting);
    left -= costOf(name) + costOf(fitting);
  }
  const missing = entries.length - kept.size;
  const inOrder = entries.flatMap(([name]) => (kept.has(name) ? [[name, kept.get(name)] as const] : []));
  return Object.fromEntries(missing > 0 ? [...inOrder, [missingName, `(+${missing} more fields)`] as const] : inOrder);
}

/** A service value for `_meta`: names and texts made safe, and cut where it is largest. */
export const untrustedValue = (value: unknown, tokens: number): unknown => fullView({ value }, tokens).value;

/**
 * How long an ad has run and whether it is still running, as far as its three dates tell. Days are calendar days in
 * UTC, like the dates shown, so that readers who count get the same number.
 *
 * - `daysRunning`: days from `startedAt` to the end. The end is `endDate` if that is past, and otherwise the last time
 *   it was seen. An ad seen on a single day has run 0 days.
 * - `stillRunning`: false if `endDate` is past; true if `endDate` lies ahead or the ad was seen within two days. Otherwise
 *   it is unknown, because the service only looks from time to time.
 * - `daysSinceSeen`: lets the reader judge.
 */
export interface Run {
  daysRunning?: number;
  stillRunning?: boolean;
  daysSinceSeen?: number;
}

export interface RunDates {
  startedAt?: unknown;
  lastSeenAt?: unknown;
  endDate?: unknown;
}

export function runOf(dates: RunDates, now: number): Run {
  const started = timeOf(dates.startedAt);
  const seen = timeOf(dates.lastSeenAt);
  const end = timeOf(dates.endDate);
  const ended = end !== undefined && end <= now;
  const last = ended ? end : seen;
  const sinceSeen = seen === undefined ? undefined : Math.max(0, days(seen, now));
  const run: Run = {};
  const ran = started === undefined || last === undefined ? -1 : days(started, last);
  if (ran >= 0) run.daysRunning = ran;
  if (end !== undefined) run.stillRunning = !ended;
  else if (sinceSeen !== undefined && sinceSeen <= maxDaysSinceSeen) run.stillRunning = true;
  if (sinceSeen !== undefined && !ended) run.daysSinceSeen = sinceSeen;
  return run;
}

/** `2026-07-01` from an iso date-time or milliseconds; undefined if it is not a date. */
export function dayOf(date: unknown): string | undefined {
  if (typeof date === 'string' && utcDate.test(date)) return date.slice(0, 10);
  const time = typeof date === 'number' ? date : timeOf(date);
  if (time === undefined || !(Math.abs(time) <= maxTime)) return;
  return new Date(time).toISOString().replace(/T.*/, '');
}

/** The first and last day on which ads were last seen, and for how many ads a date tells it. */
export interface SeenDays {
  first: string;
  last: string;
  ads: number;
  isAll: boolean;
}

/** Undefined where no date tells it. */
export function seenDays(ads: readonly RunDates[]): SeenDays | undefined {
  const days = ads.flatMap(({ lastSeenAt }) => dayOf(lastSeenAt) ?? []).sort();
  const [first, last] = [days[0], days.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  return { first, last, ads: days.length, isAll: days.length === ads.length };
}

/** `2 of them last seen 2026-05-30 to 2026-06-16`, or on the one day; without a number if it is all of them. */
export function seenText({ first, last, ads, isAll }: SeenDays): string {
  const days = first === last ? first : `${first} to ${last}`;
  return `${isAll ? '' : `${ads} of them `}last seen ${days}`;
}

/** Days from one day or date-time to another; undefined if the second is earlier. */
export function daysBetween(from: string, to: string): number | undefined {
  const [start, end] = [timeOf(from), timeOf(to)];
  const between = start === undefined || end === undefined ? -1 : days(start, end);
  return between >= 0 ? between : undefined;
}

/**
 * Milliseconds since the epoch, the same on every machine: a time without an offset is UTC. Undefined if it is no date,
 * or one in a year of other than four digits.
 */
export function timeOf(date: unknown): number | undefined {
  if (typeof date !== 'string' || date.length > maxDate) return;
  const time = Date.parse(utcDate.test(date) ? date : inUtc(date.trim()));
  return time >= firstTime && time <= lastTime ? time : undefined;
}

function inUtc(text: string): string {
  const [, day, time = '00:00', zone = 'Z', hours, minutes = '00'] = iso.exec(text) ?? [];
  if (day !== undefined) return `${day}T${time.replace(',', '.')}${hours === undefined ? zone : `${hours}:${minutes}`}`;
  // `1 June 2025`, `Sun, 01 Jun 2025 00:30:00 GMT`: what holds no year could be any text.
  if (!yearPattern.test(text)) return '';
  return zonePattern.test(text) ? text : `${text} UTC`;
}

const maxDate = 100;
const iso = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?) ?(Z|([+-]\d\d)(?::?(\d\d))?)?)?$/i;
const yearPattern = /\b\d{4}\b/;
const zonePattern = /\b(?:UTC?|GMT|Z|[ECMP][SD]T)\b|:\d\d ?[+-]\d/i;
const firstTime = Date.parse('0000-01-01T00:00:00Z');
const lastTime = Date.parse('9999-12-31T23:59:59.999Z');

const utcDate = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])(?:T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?Z)?$/;
/** How many calendar days ago an ad without an end may have been seen last to count as running. */
export const maxDaysSinceSeen = 2;
const dayMs = 86_400_000;
const maxTime = 8.64e15;

const days = (from: number, to: number) => Math.floor(to / dayMs) - Math.floor(from / dayMs);

/**
 * The address that a browser would open, read as browsers read addresses: `https:/host`, `https://host\\@other` and
 * tabs inside included. `host/path` and `//host/path` count as https. For an address with backslashes, only the host is
 * given. Undefined for a text that leads to no host of the web.
 */
export function addressOf(text: unknown): URL | undefined {
  if (typeof text !== 'string') return;
  const plain = text.replace(ignored, '');
  const isWhole = scheme.test(plain) && !hostAndPort.test(plain);
  if (!isWhole && !hostFirst.test(plain)) return;
  const whole = isWhole ? plain : `https://${plain}`;
  if (longHost.test(whole)) return;
  let url: URL;
  try {
    url = new URL(whole);
  } catch {
    return;
  }
  // The parser turns backslashes into slashes, and so would hide a text that is spelled in escapes, above all the
  // caller's key.
  if (whole.includes('\\')) url.pathname = url.search = url.hash = '';
  return webPattern.test(url.protocol) && (isWhole || url.hostname.includes('.')) ? url : undefined;
}

/** An address of a form that the parser of addresses leaves as it is. */
const plainHost = /^(?:https?:\/\/)?((?:(?!xn--)[a-z\d-]{1,63}\.){1,4}[a-z]{2,20})(?=\/|$)/;

/** The host of an address, without `www.`; undefined if it has none. */
export function domainOf(address: unknown): string | undefined {
  const [, plain] = (typeof address === 'string' && plainHost.exec(address)) || [];
  const host = (plain ?? addressOf(address)?.hostname)?.replace(/^www\.(?=[^.]+\.)|\.$/g, '');
  return host !== undefined && host.length <= maxName ? host : undefined;
}

/**
 * An address as a person would share it: without tracking parameters, unfilled macros (`{{ad.name}}`) and user names,
 * with readable letters instead of percent codes where it stays the same address, at most `tokens` long.
 */
export function cleanAddress(address: unknown, tokens: number): string | undefined {
  if (typeof address !== 'string') return;
  const url = addressOf(address);
  if (url === undefined) {
    const start = sanitizeLine(address.slice(0, maxAddress));
    return start && truncate(start, tokens, Math.max(0, address.length - maxAddress));
  }
  url.username = url.password = url.hash = '';
  url.search = url.search.slice(1).split('&').filter(isWorthKeeping).join('&');
  return truncate(readable(url.href), tokens);
}

/** When a signed address stops working, in milliseconds since the epoch, if the address says so. */
export function expiryOf(address: string): number | undefined {
  const unix = /[?&](?:oe=([0-9a-f]{8})(?![0-9a-f])|(?:expires|exp)=(\d{10})(?!\d))/i.exec(address);
  if (unix) return 1000 * (unix[1] ? Number.parseInt(unix[1], 16) : Number(unix[2]));
  const signed = /[?&]x-amz-date=(\d{4})(\d\d)(\d\d)t(\d\d)(\d\d)(\d\d)z/i.exec(address);
  const seconds = /[?&]x-amz-expires=(\d{1,7})(?!\d)/i.exec(address);
  if (!signed || !seconds) return;
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = signed.slice(1).map(Number);
  return Date.UTC(year, month - 1, day, hour, minute, second) + 1000 * Number(seconds[1]);
}

/** The characters that a browser drops from an address, wherever they stand. */
const ignored = /^[\p{Cc} ]+|[\t\n\r]/gu;
const scheme = /^[a-z][a-z\d+.-]*:/i;
const hostAndPort = /^[a-z\d-]+(?:\.[a-z\d-]+)+:\d/i;
const hostFirst = /^(?:[\\/]{2}|[^\\/?#])/;
/**
 * No host name is so long, and reading one of non-Latin letters takes time that grows with the square of its length.
 */
const longHost = /^[^:]*:[\\/]*[^\\/?#]{1000}/;
const webPattern = /^https?:$/;
/** DNS: a name has at most 253 characters. */
const maxName = 253;
const maxAddress = 4000;

const trackingPattern =
  /^(?:utm_|af_|hsa_|mtm_|pk_|matomo_|fb_|ad_|adset|campaign|nt_|tracking|site_?source|placement|sub_id|is_retargeting|is_reengagement|advertising_id|idfa$|og_tag|yg_type|routing_short|[gf]bclid|gclid|dclid|gbraid|wbraid|msclkid|ttclid|twclid|igsh|li_fat_id|mc_[ce]id|_hs|ref_src|srsltid|yclid|scid$|epik$)/i;
const macro = /\{\{|%7b%7b|__[A-Z_]+__/i;

const isWorthKeeping = (parameter: string) =>
  parameter !== '' && !trackingPattern.test(parameter) && !macro.test(parameter);

function readable(href: string): string {
  if (href.length > maxAddress) return href;
  try {
    const text = sanitizeLine(decodeURI(href).replace(/\s/g, '%20'));
    return new URL(text).href === href ? text : href;
  } catch {
    return href;
  }
}
