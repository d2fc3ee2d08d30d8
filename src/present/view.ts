import { cut } from './cut.ts';
import { sanitize } from './text.ts';

/** Lists are brief, single objects standard, unless the caller wants every field. */
export type Detail = 'brief' | 'standard' | 'full';

/** Twice a UUID. */
export const ID_TOKENS = 48;

/** A full view with its surroundings stays below the default result budget of 8,000. */
export const FULL_TOKENS = 7500;

/** Most tokens of data for each token of text that a result may hold: what a text says once, data may say often. */
export const DATA_PER_TEXT = 2;

export type Fields = Record<string, unknown>;

export const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A number a reader can be shown: `1e309` is one in JSON and infinite here. */
export const isNumber = (value: unknown): value is number => Number.isFinite(value);

/** The objects of a list, as far as one looks; of anything else none. */
export const objects = (value: unknown): Fields[] =>
  Array.isArray(value) ? value.slice(0, MOST_OBJECTS).filter(isObject) : [];

/** No ad has that many cards or media; a list that never ends has. */
const MOST_OBJECTS = 1000;

/** A text with something in it, safe and at most `tokens` long; of anything else nothing. */
export function textOf(value: unknown, tokens: number): string | undefined {
  if (typeof value !== 'string' || value === '') return;
  const enough = CHARS_PER_TOKEN * (tokens + 8);
  const text = sanitize(value.slice(0, enough)).trim();
  const beyond = Math.max(0, value.length - enough);
  return text === '' && beyond === 0 ? undefined : cut(text, tokens, beyond);
}

/** An id is always there and always text: it is what a client is promised. */
export const idOf = (value: unknown): string => textOf(isNumber(value) ? String(value) : value, ID_TOKENS) ?? '';

/** No text has more by our estimate: what lies further on is not even looked at. */
const CHARS_PER_TOKEN = 8;
const MAX_WORDS = 12;
const WORD_TOKENS = 12;

/** What a field is to be: a text of at most so many tokens, a number, a flag, a list of words. */
export type Kind = number | 'number' | 'flag' | 'words';

/**
 * Takes over the named fields of a service's object with the values it sent, in the order named. Absent, null and empty
 * ones are left out, and so is what is not of its kind; texts and lists are bounded.
 */
export function keep(view: object, source: Fields, kinds: Readonly<Record<string, Kind>>): void {
  for (const name in kinds) {
    const value = source[name];
    if (value === undefined || value === null) continue;
    const kept = keepValue(value, kinds[name]);
    if (kept !== undefined) (view as Fields)[name] = kept;
  }
}

/** Adds what is derived and known. */
export function add(view: object, fields: object): void {
  for (const name in fields) {
    const value = (fields as Fields)[name];
    if (value !== undefined) (view as Fields)[name] = value;
  }
}

function keepValue(value: unknown, kind: Kind | undefined): unknown {
  if (kind === 'number') return isNumber(value) ? value : undefined;
  if (kind === 'flag') return typeof value === 'boolean' ? value : undefined;
  return kind === 'words' ? wordsOf(value) : textOf(value, kind ?? 0);
}

function wordsOf(value: unknown): string[] | undefined {
  if (!Array.isArray(value)) return;
  const words: string[] = [];
  for (const word of value.slice(0, MAX_WORDS)) {
    const text = textOf(word, WORD_TOKENS);
    if (text !== undefined) words.push(text);
  }
  if (value.length > MAX_WORDS) words.push(`… (+${value.length - MAX_WORDS} more)`);
  return words.length > 0 ? words : undefined;
}
