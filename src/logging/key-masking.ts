import { LRUCache } from 'lru-cache';

/** Keys shorter than this are not masked: they are no secrets, and may be ordinary words in an ad. */
const minKeyLength = 12;

const mask = '***';

/** Returns the value without the key, or the value itself if the key does not occur in its texts or field names. */
type MaskKey = <Value>(value: Value, json?: string) => Value;

/** Caches the functions by key. Creating a function takes about as long as searching one answer. */
const cachedMaskers = new LRUCache<string, MaskKey>({ max: 1000 });

/**
 * Returns a function that replaces an API key with `***` in every text of a value. The function finds the plain key and
 * its percent-encoded, JSON-escaped and HTML-escaped forms. It does not find a key that is cut, escaped twice or mixed
 * with other characters.
 *
 * Pass the JSON text of the value as `json` if you have it: the function then need not serialize the value.
 */
export function keyMasker(key = ''): MaskKey {
  if (key.length < minKeyLength) return (value) => value;
  const masker = cachedMaskers.get(key) ?? createMasker(key);
  cachedMaskers.set(key, masker);
  return masker;
}

function createMasker(key: string): MaskKey {
  const forms = encodedForms(key);
  const hasKey = (text: string) => forms.some((form) => text.includes(form));
  const replaceKey = (text: string) => forms.reduce((masked, form) => masked.replaceAll(form, mask), text);
  return (value, json) => {
    // A Unicode escape in JSON may stand for any character of the key, so only the parsed value shows the key.
    const searchable = json === undefined || json.includes('\\u') ? (JSON.stringify(value) ?? '') : json;
    return hasKey(searchable) ? mapTexts(value, replaceKey) : value;
  };
}

/** Returns the key as it is and as URLs, JSON and HTML write it, each with hexadecimal digits in both cases. */
function encodedForms(key: string): string[] {
  const writeCodes = (write: (code: string) => string) =>
    Array.from(key, (character) => write(character.charCodeAt(0).toString(16).padStart(2, '0'))).join('');
  const withHexDigits = [
    encodeURIComponent(key),
    writeCodes((code) => `%${code}`),
    writeCodes((code) => `\\u00${code}`),
    writeCodes((code) => `&#x${code};`),
  ];
  const forms = [
    key,
    JSON.stringify(key).slice(1, -1),
    key.replace(/[&<>"']/g, (character) => htmlReferences[character] ?? character),
    ...withHexDigits.flatMap((form) => [form, withDigitCase(form, 'lower'), withDigitCase(form, 'upper')]),
  ];
  // JSON text doubles each backslash of a text that holds a JSON-escaped key.
  return [...new Set(forms.flatMap((form) => [form, form.replaceAll('\\', '\\\\')]))];
}

const htmlReferences: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

const withDigitCase = (form: string, digitCase: 'lower' | 'upper') =>
  form.replace(
    /(%|\\u00|&#x)([\da-f]{2})/gi,
    (_, start: string, digits: string) => start + (digitCase === 'lower' ? digits.toLowerCase() : digits.toUpperCase()),
  );

/** Values that are nested deeper than this are masked entirely. Masking must not fail, because the answer was paid for. */
const maxDepth = 1000;

/** Returns the value with every text and field name changed, or the value itself if nothing changes. */
function mapTexts<Value>(value: Value, change: (text: string) => string, depth = 0): Value {
  if (typeof value === 'string') return change(value) as Value;
  if (typeof value !== 'object' || value === null) return value;
  if (depth > maxDepth) return mask as Value;
  const object = value as Record<string, unknown>;
  const entries = Object.entries(object).map(([name, item]): [string, unknown] => [
    change(name),
    mapTexts(item, change, depth + 1),
  ]);
  if (entries.every(([name, item]) => Object.hasOwn(object, name) && object[name] === item)) return value;
  return (Array.isArray(value) ? entries.map(([_, item]) => item) : Object.fromEntries(entries)) as Value;
}

const prefixedKey = /\b(svc_[a-z]+_|Bearer\s+)[^\s"',;\\]+/gi;

/** Masks everything that begins like an API key of the service, or follows `Bearer`, in a line of the log. */
export const maskPrefixedKeys = (line: string): string => line.replace(prefixedKey, '$1***');
