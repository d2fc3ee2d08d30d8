import { LRUCache } from 'lru-cache';

/**
 * The minimum length of an API key that is masked, in characters. A shorter key is not a real secret and may be a word
 * in an ad.
 */
const minKeyLength = 12;

const replacementText = '***';

/**
 * Replaces the API key in a value with `***`. Returns the same value if it does not contain the key. `json` is the JSON
 * text of the value, if the caller already has it.
 */
type MaskKey = <Value>(value: Value, json?: string) => Value;

/**
 * The masking functions of recently used API keys. Creating such a function takes about as long as searching a response
 * for the key.
 */
const maskerByKey = new LRUCache<string, MaskKey>({ max: 1000 });

/**
 * Returns a function that replaces an API key with `***` in all texts and field names of a value. It finds the plain
 * key and its percent-encoded, JSON-escaped and HTML-escaped forms. It does not find a key that is truncated, escaped
 * twice or mixed with other characters.
 *
 * If you have the JSON text of the value, pass it as `json`, so that the function need not serialize the value.
 */
export function createKeyMasker(key = ''): MaskKey {
  if (key.length < minKeyLength) return (value) => value;
  const masker = maskerByKey.get(key) ?? createMasker(key);
  maskerByKey.set(key, masker);
  return masker;
}

function createMasker(key: string): MaskKey {
  const encodedForms = listEncodedForms(key);
  const containsKey = (text: string) => encodedForms.some((form) => text.includes(form));
  const replaceKey = (text: string) =>
    encodedForms.reduce((masked, form) => masked.replaceAll(form, replacementText), text);
  return (value, json) => {
    // A Unicode escape such as `\u0061` may hide the key in `json`. In this case, search a fresh serialization of the
    // value.
    const searchableText = json === undefined || json.includes('\\u') ? serializeUnlessTooDeep(value) : json;
    return searchableText === undefined || containsKey(searchableText) ? mapTexts(value, replaceKey) : value;
  };
}

/** Returns the JSON text of a value. Returns undefined if the value is nested so deeply that `JSON.stringify` fails. */
function serializeUnlessTooDeep(value: unknown): string | undefined {
  try {
    return JSON.stringify(value) ?? '';
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/**
 * Lists the forms in which the key may appear in plain text, URLs, JSON and HTML. Includes forms with hexadecimal
 * digits in upper and lower case.
 */
function listEncodedForms(key: string): string[] {
  const formatCodes = (formatCode: (code: string) => string) =>
    Array.from(key, (character) => formatCode(character.charCodeAt(0).toString(16).padStart(2, '0'))).join('');
  const withHexDigits = [
    encodeURIComponent(key),
    formatCodes((code) => `%${code}`),
    formatCodes((code) => `\\u00${code}`),
    formatCodes((code) => `&#x${code};`),
  ];
  const encodedForms = [
    key,
    JSON.stringify(key).slice(1, -1),
    key.replace(/[&<>"']/g, (character) => htmlReferences[character] ?? character),
    ...withHexDigits.flatMap((form) => [form, changeDigitCase(form, 'lower'), changeDigitCase(form, 'upper')]),
  ];
  // Also add each form with doubled backslashes, because a JSON string inside JSON doubles them.
  return [...new Set(encodedForms.flatMap((form) => [form, form.replaceAll('\\', '\\\\')]))];
}

const htmlReferences: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

const changeDigitCase = (form: string, digitCase: 'lower' | 'upper') =>
  form.replace(
    /(%|\\u00|&#x)([\da-f]{2})/gi,
    (_, start: string, digits: string) => start + (digitCase === 'lower' ? digits.toLowerCase() : digits.toUpperCase()),
  );

/**
 * The maximum nesting depth of a value that is masked. Deeper values become `***`, so that masking cannot exhaust the
 * stack and lose a response that the user has paid for.
 */
const maxMaskingDepth = 1000;

/** Applies `replaceText` to every text and field name in a value. Returns the same value if nothing has changed. */
function mapTexts<Value>(value: Value, replaceText: (text: string) => string, depth = 0): Value {
  if (typeof value === 'string') return replaceText(value) as Value;
  if (typeof value !== 'object' || value === null) return value;
  if (depth > maxMaskingDepth) return replacementText as Value;
  const object = value as Record<string, unknown>;
  const entries = Object.entries(object).map(([name, child]): [string, unknown] => [
    replaceText(name),
    mapTexts(child, replaceText, depth + 1),
  ]);
  if (entries.every(([name, child]) => Object.hasOwn(object, name) && object[name] === child)) return value;
  return (Array.isArray(value) ? entries.map(([_, child]) => child) : Object.fromEntries(entries)) as Value;
}

const prefixedKeyPattern = /\b(svc_[a-z]+_|Bearer\s+)[^\s"',;\\]+/gi;

/**
 * Replaces each API key in a log line with `***`. An API key is a word that starts with the service's key prefix
 * (`svc_…_`) or follows `Bearer`.
 */
export const maskPrefixedKeys = (line: string): string => line.replace(prefixedKeyPattern, '$1***');
