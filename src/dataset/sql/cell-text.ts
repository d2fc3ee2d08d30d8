import { sanitize } from '../../present/safe-text.ts';

/** A text cleaned and at most `max` characters long, saying how many are missing. */
export function cellText(text: string, max: number): string {
  const looked = text.slice(0, 2 * max + MARGIN);
  const clean = sanitize(looked);
  if (looked.length === text.length && clean.length <= max) return clean;
  const end = isHighSurrogate(clean.charCodeAt(max - 1)) ? max - 1 : max;
  const kept = clean.slice(0, end);
  const missing = text.length - looked.length + clean.length - kept.length;
  return missing > 0 ? `${kept}… (+${missing} chars)` : kept;
}

/** What is not seen takes room in a text too. */
const MARGIN = 200;

const isHighSurrogate = (code: number) => code >= 0xd800 && code < 0xdc00;
