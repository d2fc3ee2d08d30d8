import type { SentField } from './fields.ts';
import { sanitize } from './safe-text.ts';
import { charsPerToken, fitsWithin, truncate } from './tokens.ts';

/** The most tokens of an id, which is twice a UUID. */
export const maxIdTokens = 48;

/** An object of the service, whose fields may have any type. */
export type Fields = Record<string, unknown>;

/** Returns whether a value is an object and not an array. */
export const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns whether a value is a finite number. `JSON.parse` turns `1e309` into infinity. */
export const isNumber = (value: unknown): value is number => Number.isFinite(value);

/**
 * Returns whether a value is a whole number as text. The parser keeps numbers as text if JavaScript cannot represent
 * them exactly.
 */
const isLongNumber = (value: unknown): value is string => typeof value === 'string' && longNumber.test(value);

const longNumber = /^-?\d{16,400}$/;

/** Returns the objects in a list. Any other value counts as an empty list. */
export const readObjects = (value: unknown): Fields[] =>
  Array.isArray(value) ? value.slice(0, maxObjects).filter(isObject) : [];

/** The most objects that are read from a list. No ad has as many cards or media. */
const maxObjects = 1000;

/** Returns a text, made safe and cut to a number of tokens. Returns undefined for an empty text and any other type. */
export function readText(value: unknown, tokens: number): string | undefined {
  if (typeof value !== 'string' || value === '') return;
  if (plainWord.test(value) && fitsWithin(value, tokens)) return value;
  const readChars = charsPerToken * (tokens + 8);
  const text = sanitize(value.slice(0, readChars)).trim();
  const beyond = Math.max(0, value.length - readChars);
  return text === '' && beyond === 0 ? undefined : truncate(text, tokens, beyond);
}

/** Matches ids and constants, which most values are. They need no cleaning. */
const plainWord = /^[\w-]{1,32}$/;

/** Returns whether a value is a text with a visible character. */
export const isVisible = (value: unknown): boolean =>
  typeof value === 'string' && sanitize(value.slice(0, 100)).trim() !== '';

/**
 * Returns an id as text. The output schemas promise that an id is always present and a text, so a missing id is empty.
 */
export const readId = (value: unknown): string => readText(isNumber(value) ? String(value) : value, maxIdTokens) ?? '';

const maxListedWords = 12;
const wordTokens = 12;

/** How a field is copied into a view. A number is the most tokens of a text. */
type FieldType = number | 'number' | 'flag' | 'words';

/** Returns the fields that a view shows, for `copyFields`. A single object shows the fields of lists, too. */
export const selectViewFields = (
  fields: Record<string, SentField>,
  view: 'brief' | 'standard',
): Record<string, FieldType> =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, { type, brief, standard = brief }]) => {
      const limit = view === 'brief' ? brief : standard;
      if (limit === undefined) return [];
      return [
        [name, type === 'number' || type === 'flag' || type === 'words' ? type : limit === true ? dateTokens : limit],
      ];
    }),
  );

const dateTokens = 20;

/** Returns a function that lists phrases such as `reach 800000`, one for each field whose number needs only a word. */
export function createFactLister(fields: Record<string, SentField>): (view: object) => string[] {
  const phrases = Object.entries(fields).flatMap(([name, { phrase }]) =>
    phrase === undefined ? [] : [{ name, say: phrase }],
  );
  return (view) =>
    phrases.flatMap(({ name, say }) => {
      const value = (view as Fields)[name];
      return value === undefined ? [] : [`${say} ${value}`];
    });
}

/**
 * Copies fields into a view. Absent, null and empty values and values of another type are left out. Texts and lists are
 * cut.
 */
export function copyFields(view: object, source: Fields, types: Readonly<Record<string, FieldType>>): void {
  for (const name in types) {
    const value = source[name];
    if (value === undefined || value === null) continue;
    const shownValue = readValue(value, types[name]);
    if (shownValue !== undefined) (view as Fields)[name] = shownValue;
  }
}

/** Adds the fields that are not undefined to a view. */
export function addFields(view: object, fields: object): void {
  for (const name in fields) {
    const value = (fields as Fields)[name];
    if (value !== undefined) (view as Fields)[name] = value;
  }
}

function readValue(value: unknown, type: FieldType | undefined): unknown {
  if (type === 'number') return readNumber(value);
  if (type === 'flag') return typeof value === 'boolean' ? value : undefined;
  return type === 'words' ? readWords(value) : readText(value, type ?? 0);
}

/** Returns a finite number. A whole number with more digits than JavaScript can represent is rounded. */
export function readNumber(value: unknown): number | undefined {
  const number = isLongNumber(value) ? Number(value) : value;
  return isNumber(number) ? number : undefined;
}

function readWords(value: unknown): string[] | undefined {
  if (!Array.isArray(value)) return;
  const words: string[] = [];
  for (const word of value.slice(0, maxListedWords)) {
    const text = readText(word, wordTokens);
    if (text !== undefined) words.push(text);
  }
  if (value.length > maxListedWords) words.push(`… (+${value.length - maxListedWords} more)`);
  return words.length > 0 ? words : undefined;
}
