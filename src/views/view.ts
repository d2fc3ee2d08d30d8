import type { ApiField } from './fields.ts';
import { sanitize } from './safe-text.ts';
import { fitsWithin, maxReadCharsPerToken, truncate } from './tokens.ts';

/** The maximum length of an id, in tokens. A UUID needs half as many tokens. */
export const maxIdTokens = 48;

/**
 * An object from the service, or a result that is built from such an object. The fields can have any type, so code must
 * check each field before use.
 */
export type UntypedFields = Record<string, unknown>;

/** Returns true for an object, but not for an array or null. */
export const isObject = (value: unknown): value is UntypedFields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Returns true for a finite number. `JSON.parse` converts a very large number of the service, such as `1e309`, to
 * infinity.
 */
export const isFiniteNumber = (value: unknown): value is number => Number.isFinite(value);

/**
 * Returns true for an integer that the JSON parser of this project returns as text, because a JavaScript number cannot
 * represent it exactly.
 */
const isLongNumberText = (value: unknown): value is string =>
  typeof value === 'string' && longNumberPattern.test(value);

const longNumberPattern = /^-?\d{16,400}$/;

/** Returns the objects in an array. Returns an empty array for any other value. */
export const readObjects = (value: unknown): UntypedFields[] =>
  Array.isArray(value) ? value.slice(0, maxObjects).filter(isObject) : [];

/** The maximum number of objects to read from an array. Real ads have far fewer cards and media files. */
const maxObjects = 1000;

/** Sanitizes a text and truncates it to `maxTokens` tokens. Returns undefined if the value is empty or not a string. */
export function readText(value: unknown, maxTokens: number): string | undefined {
  if (typeof value !== 'string' || value === '') return;
  if (plainWordPattern.test(value) && fitsWithin(value, maxTokens)) return value;
  const readChars = maxReadCharsPerToken * (maxTokens + 8);
  const text = sanitize(value.slice(0, readChars)).trim();
  const unreadChars = Math.max(0, value.length - readChars);
  return text === '' && unreadChars === 0 ? undefined : truncate(text, maxTokens, unreadChars);
}

/** Matches short ids and constants, e.g. `SHOP_NOW`. Most values match, so they need no sanitizing. */
const plainWordPattern = /^[\w-]{1,32}$/;

/** Returns true if the value is a text with at least one visible character. */
export const isVisibleText = (value: unknown): value is string =>
  typeof value === 'string' &&
  // Check the beginning first, because most texts begin with a visible character.
  [value.slice(0, 100), value].some((text) => sanitize(text).trim() !== '');

/** Returns an id as text. Returns an empty string if the id is missing, because the output schemas require an id. */
export const readId = (id: unknown): string => readText(isFiniteNumber(id) ? String(id) : id, maxIdTokens) ?? '';

const maxListedTexts = 12;
const maxListedTextTokens = 12;

/**
 * The rule by which `copyFields` copies a field. `'number'`, `'boolean'` and `'textList'` are the types that the field
 * must have. A number, such as 40, means that the field must be a text, and is the maximum length of the text in
 * tokens.
 */
type FieldCopyRule = number | 'number' | 'boolean' | 'textList';

/**
 * Selects the fields that results with brief or standard detail contain, and returns them in the form that `copyFields`
 * takes. Standard detail includes all fields with brief detail.
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
        [
          name,
          type === 'number' || type === 'boolean' || type === 'textList' ? type : limit === true ? dateTokens : limit,
        ],
      ];
    }),
  );

const dateTokens = 20;

/** Creates a function that formats all fields of an object whose description has a `phrase`, e.g. as `reach 800000`. */
export function createFactFormatter(fields: Record<string, ApiField>): (view: object) => string[] {
  const phrases = Object.entries(fields).flatMap(([name, { phrase }]) =>
    phrase === undefined ? [] : [{ name, label: phrase }],
  );
  return (view) =>
    phrases.flatMap(({ name, label }) => {
      const value = (view as UntypedFields)[name];
      return value === undefined ? [] : [`${label} ${value}`];
    });
}

/**
 * Copies fields from an object of the service to a result. Omits fields that are missing, null, empty or of an
 * unexpected type. Truncates long texts and lists.
 */
export function copyFields(
  view: object,
  apiObject: UntypedFields,
  fieldCopyRules: Readonly<Record<string, FieldCopyRule>>,
): void {
  for (const fieldName in fieldCopyRules) {
    const fieldValue = apiObject[fieldName];
    if (fieldValue === undefined || fieldValue === null) continue;
    const shownValue = readValue(fieldValue, fieldCopyRules[fieldName]);
    if (shownValue !== undefined) (view as UntypedFields)[fieldName] = shownValue;
  }
}

/** Adds all fields that are not undefined to an object. */
export function addFields(targetObject: object, fields: object): void {
  for (const fieldName in fields) {
    const fieldValue = (fields as UntypedFields)[fieldName];
    if (fieldValue !== undefined) (targetObject as UntypedFields)[fieldName] = fieldValue;
  }
}

function readValue(value: unknown, type: FieldCopyRule | undefined): unknown {
  if (type === 'number') return readNumber(value);
  if (type === 'boolean') return typeof value === 'boolean' ? value : undefined;
  return type === 'textList' ? readTextList(value) : readText(value, type ?? 0);
}

/** Returns the value as a number if it is a finite number. Rounds integers that are too large for JavaScript. */
export function readNumber(value: unknown): number | undefined {
  const number = isLongNumberText(value) ? Number(value) : value;
  return isFiniteNumber(number) ? number : undefined;
}

function readTextList(value: unknown): string[] | undefined {
  if (!Array.isArray(value)) return;
  const texts: string[] = [];
  for (const item of value.slice(0, maxListedTexts)) {
    const text = readText(item, maxListedTextTokens);
    if (text !== undefined) texts.push(text);
  }
  if (value.length > maxListedTexts) texts.push(`… (+${value.length - maxListedTexts} more)`);
  return texts.length > 0 ? texts : undefined;
}
