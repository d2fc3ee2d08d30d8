import { spelledOut } from './spelled-out.ts';

/** Anything shorter is no secret, but may well be a word of an ad. */
const minLength = 12;
/** A service may show this much of a key to tell it from others. */
const shownLength = 18;
/** Between the last whole character of a key that was cut and the ellipsis: an escape that was cut. */
const escapeLength = 8;

const mask = '***';
/** Without quotes, so that what is masked stays in those it is in. */
const WORD = /[^\s"]+/g;

/**
 * Masks a key in texts a service may have sent it back in: as it is or more than half of it, cut to fit, in another
 * case, and escaped as in JSON, an address or HTML; in names of fields too. For texts that were made safe, where no
 * hidden characters are left inside it.
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
