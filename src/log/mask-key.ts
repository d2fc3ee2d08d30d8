import { spelledOut } from './spelled-out.ts';

/** Anything shorter is not a secret, and may be a word in an ad. */
const minLength = 12;
/** The service may show this many characters to tell keys apart. */
const shownLength = 18;
/** A cut escape may stand between the last character of a cut key and the ellipsis. */
const escapeLength = 8;

const mask = '***';
/** Excludes quotes, so that masked text stays inside them. */
const WORD = /[^\s"]+/g;

/**
 * Masks a key in texts in which a service may have sent it back: whole or more than half of it, cut to fit, in another
 * case, and escaped as in JSON, an address or HTML; in field names, too. Expects texts that were made safe, without
 * hidden characters.
 */
export function keyMasker(key = ''): <Value>(value: Value) => Value {
  if (key.length < minLength) return (value) => value;
  const whole = key.toLowerCase();
  const start = whole.slice(0, minLength);
  const half = whole.slice(0, Math.max(shownLength, whole.length / 2));
  const holdsKey = (text: string): boolean => {
    if (text.length < minLength) return false;
    const plain = spelledOut(text).toLowerCase();
    for (let at = plain.indexOf(start); at >= 0; at = plain.indexOf(start, at + 1)) {
      const rest = plain.slice(at, at + whole.length + escapeLength);
      if (rest.startsWith(half) || rest.includes('…')) return true;
    }
    return false;
  };
  const masked = (text: string): string => {
    if (!holdsKey(text)) return text;
    return text.replaceAll(key, mask).replace(WORD, (word) => (holdsKey(word) ? mask : word));
  };
  return (value) => (someText(value, holdsKey) ? mapTexts(value, masked) : value);
}

function someText(value: unknown, holds: (text: string) => boolean): boolean {
  if (typeof value === 'string') return holds(value);
  if (typeof value !== 'object' || value === null) return false;
  if (Array.isArray(value)) return value.some((item) => someText(item, holds));
  for (const name in value) if (holds(name) || someText((value as Record<string, unknown>)[name], holds)) return true;
  return false;
}

function mapTexts<Value>(value: Value, change: (text: string) => string): Value {
  if (typeof value === 'string') return change(value) as Value;
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, change)) as Value;
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, item]) => [change(name), mapTexts(item, change)]);
  return Object.fromEntries(entries) as Value;
}
