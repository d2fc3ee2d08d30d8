import { lengthWithin } from './tokens.ts';

/**
 * The start of `text` that fits `tokens`, ending on a word (where a script has spaces, or where its dictionary knows)
 * and never inside a character a person sees as one. What is missing is said, `… (+312 chars)`: the rest of the text
 * and what there was `beyond` it.
 */
export function cut(text: string, tokens: number, beyond = 0): string {
  const fits = lengthWithin(text, tokens);
  if (fits >= text.length && beyond === 0) return text;
  const end = borderBefore(text, lengthWithin(text, Math.max(0, tokens - SUFFIX_TOKENS)));
  const kept = text.slice(0, end).trimEnd();
  return `${kept}… (+${text.length - kept.length + beyond} chars)`;
}

/** `… (+1234567 chars)` as it is estimated. */
const SUFFIX_TOKENS = 9;
/** As much of what follows as can belong to the word or the character at the border. */
const AFTER = 60;
/** A space this near is a good enough border, and surely one. */
const NEAR = 16;

/** Made when first needed: loading a language's rules takes a good part of the time in which a process starts. */
const segmenters: Partial<Record<'word' | 'grapheme', Intl.Segmenter>> = {};
function segmentAt(index: number, text: string, granularity: 'word' | 'grapheme'): number {
  segmenters[granularity] ??= new Intl.Segmenter('und', { granularity });
  return segmenters[granularity].segment(text).containing(index)?.index ?? 0;
}

function borderBefore(text: string, end: number): number {
  const space = Math.max(text.lastIndexOf(' ', end), text.lastIndexOf('\n', end));
  if (space > Math.max(end - NEAR, end / 2)) return space;
  const around = text.slice(0, end + AFTER);
  const word = segmentAt(end, around, 'word');
  return word > end / 2 ? word : segmentAt(end, around, 'grapheme');
}
