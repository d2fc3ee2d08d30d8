import type { ApiField } from './fields.ts';
import { sanitize } from './safe-text.ts';
import { charsPerToken, fitsWithin, truncate } from './tokens.ts';

/** Maximum number of tokens of an id. A UUID needs half as many. */
export const maxIdTokens = 48;

/** An object from the service. Its fields can have any type, so check them before use. */
export type Fields = Record<string, unknown>;

/** Returns true for objects, but not for arrays or null. */
export const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns true for a finite number. Infinite numbers can occur, because `JSON.parse` converts `1e309` to infinity. */
export const isNumber = (value: unknown): value is number => Number.isFinite(value);

/** Returns true for an integer that the JSON parser kept as text, because JavaScript cannot represent it exactly. */
const isLongNumber = (value: unknown): value is string => typeof value === 'string' && longNumberPattern.test(value);

const longNumberPattern = /^-?\d{16,400}$/;

/** Returns the objects in a list. Returns an empty list for any other value. */
export const readObjects = (value: unknown): Fields[] =>
  Array.isArray(value) ? value.slice(0, maxObjects).filter(isObject) : [];

/** Maximum number of objects to read from a list. No real ad has this many cards or media files. */
const maxObjects = 1000;

/** Sanitizes a text and truncates it to a token budget. Returns undefined if the value is empty or not a string. */
export function readText(value: unknown, maxTokens: number): string | undefined {
  if (typeof value !== 'string' || value === '') return;
  if (plainWordPattern.test(value) && fitsWithin(value, maxTokens)) return value;
  const readChars = charsPerToken * (maxTokens + 8);
  const text = sanitize(value.slice(0, readChars)).trim();
  const unreadChars = Math.max(0, value.length - readChars);
  return text === '' && unreadChars === 0 ? undefined : truncate(text, maxTokens, unreadChars);
}

/** Matches short ids and constants, e.g. `SHOP_NOW`. Most values match and then need no sanitizing. */
const plainWordPattern = /^[\w-]{1,32}$/;

/** Returns true if the text has at least one visible character. */
export const isVisible = (value: unknown): boolean =>
  typeof value === 'string' && sanitize(value.slice(0, 100)).trim() !== '';

/** Returns an id as text. If the id is missing, returns an empty string, because the output schemas require an id. */
export const readId = (value: unknown): string => readText(isNumber(value) ? String(value) : value, maxIdTokens) ?? '';

const maxListedWords = 12;
const wordTokens = 12;

/** How `copyFields` copies a field. A number is the maximum length of a text field in tokens. */
type FieldCopyRule = number | 'number' | 'flag' | 'words';

/**
 * Selects the fields that results with brief or standard detail show, in the form that `copyFields` takes. `standard`
 * includes all `brief` fields.
 */
export const selectViewFields = (
  fields: Record<string, ApiField>,
  detail: 'brief' | 'standard',
): Record<string, FieldCopyRule> =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, { type, brief, standard = brief }]) => {
      const limit = detail === 'brief' ? brief : standard;
      if (limit === undefined) return [];
      return [
        [name, type === 'number' || type === 'flag' || type === 'words' ? type : limit === true ? dateTokens : limit],
      ];
    }),
  );

const dateTokens = 20;

/** Creates a function that formats all fields whose description has a `phrase`, e.g. `reach 800000`. */
export function createFactLister(fields: Record<string, ApiField>): (view: object) => string[] {
  const phrases = Object.entries(fields).flatMap(([name, { phrase }]) =>
    phrase === undefined ? [] : [{ name, label: phrase }],
  );
  return (view) =>
    phrases.flatMap(({ name, label }) => {
      const value = (view as Fields)[name];
      return value === undefined ? [] : [`${label} ${value}`];
    });
}

/**
 * Copies fields from an object of the service to a result. Omits fields that are missing, null, empty or of an
 * unexpected type. Truncates long texts and lists.
 */
export function copyFields(view: object, apiObject: Fields, fieldTypes: Readonly<Record<string, FieldCopyRule>>): void {
  for (const fieldName in fieldTypes) {
    const fieldValue = apiObject[fieldName];
    if (fieldValue === undefined || fieldValue === null) continue;
    const shownValue = readValue(fieldValue, fieldTypes[fieldName]);
    if (shownValue !== undefined) (view as Fields)[fieldName] = shownValue;
  }
}

/** Adds fields to an object, except those that are undefined. */
export function addFields(target: object, fields: object): void {
  for (const fieldName in fields) {
    const fieldValue = (fields as Fields)[fieldName];
    if (fieldValue !== undefined) (target as Fields)[fieldName] = fieldValue;
  }
}

function readValue(value: unknown, type: FieldCopyRule | undefined): unknown {
  if (type === 'number') return readNumber(value);
  if (type === 'flag') return typeof value === 'boolean' ? value : undefined;
  return type === 'words' ? readWords(value) : readText(value, type ?? 0);
}

/** Reads a finite number. Integers that are too large for JavaScript are rounded. */
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
