import type { SentField } from './fields.ts';
import { sanitize } from './safe-text.ts';
import { charsPerToken, fitsWithin, truncate } from './tokens.ts';

/** The most tokens of an id: twice a UUID. */
export const maxIdTokens = 48;

export type Fields = Record<string, unknown>;

export const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Excludes infinity, which is what `1e309` becomes when JSON is parsed. */
export const isNumber = (value: unknown): value is number => Number.isFinite(value);

/** A whole number that JavaScript cannot read exactly came as a text. */
const isLongNumber = (value: unknown): value is string => typeof value === 'string' && longNumber.test(value);

const longNumber = /^-?\d{16,400}$/;

export const readObjects = (value: unknown): Fields[] =>
  Array.isArray(value) ? value.slice(0, maxObjects).filter(isObject) : [];

/** The most objects that are read of a list: no ad has so many cards or media. */
const maxObjects = 1000;

export function readText(value: unknown, tokens: number): string | undefined {
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
export const readId = (value: unknown): string => readText(isNumber(value) ? String(value) : value, maxIdTokens) ?? '';

const maxWords = 12;
const wordTokens = 12;

type FieldType = number | 'number' | 'flag' | 'words';

/** The fields that a view shows, for `keep`. A single object shows what lists show as well. */
export const selectViewFields = (
  fields: Record<string, SentField>,
  view: 'brief' | 'standard',
): Record<string, FieldType> =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, { is, brief, standard = brief }]) => {
      const shown = view === 'brief' ? brief : standard;
      if (shown === undefined) return [];
      return [[name, is === 'number' || is === 'flag' || is === 'words' ? is : shown === true ? dateTokens : shown]];
    }),
  );

const dateTokens = 20;

/** `reach 800000`: a phrase for each field of the view whose number needs only a word. */
export function createFactLister(fields: Record<string, SentField>): (view: object) => string[] {
  const phrases = Object.entries(fields).flatMap(([name, { say }]) => (say === undefined ? [] : [{ name, say }]));
  return (view) =>
    phrases.flatMap(({ name, say }) => {
      const value = (view as Fields)[name];
      return value === undefined ? [] : [`${say} ${value}`];
    });
}

/** Leaves out absent, null and empty values and those of another type; bounds texts and lists. */
export function copyFields(view: object, source: Fields, types: Readonly<Record<string, FieldType>>): void {
  for (const name in types) {
    const value = source[name];
    if (value === undefined || value === null) continue;
    const kept = keepValue(value, types[name]);
    if (kept !== undefined) (view as Fields)[name] = kept;
  }
}

export function addFields(view: object, fields: object): void {
  for (const name in fields) {
    const value = (fields as Fields)[name];
    if (value !== undefined) (view as Fields)[name] = value;
  }
}

function keepValue(value: unknown, type: FieldType | undefined): unknown {
  if (type === 'number') return readNumber(value);
  if (type === 'flag') return typeof value === 'boolean' ? value : undefined;
  return type === 'words' ? wordsOf(value) : readText(value, type ?? 0);
}

/** A whole number of more digits than JavaScript can hold is rounded. */
export function readNumber(value: unknown): number | undefined {
  const number = isLongNumber(value) ? Number(value) : value;
  return isNumber(number) ? number : undefined;
}

function wordsOf(value: unknown): string[] | undefined {
  if (!Array.isArray(value)) return;
  const words: string[] = [];
  for (const word of value.slice(0, maxWords)) {
    const text = readText(word, wordTokens);
    if (text !== undefined) words.push(text);
  }
  if (value.length > maxWords) words.push(`… (+${value.length - maxWords} more)`);
  return words.length > 0 ? words : undefined;
}
