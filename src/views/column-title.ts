import { sanitizeLine } from './safe-text.ts';

/**
 * Splits the name of a column into words: `landingDomain` and `landing_domain` become `landing domain`. A name that is
 * already written in words stays as it is.
 */
export function splitColumnName(name: string): string {
  const line = sanitizeLine(name);
  if (!/^[A-Za-z][A-Za-z\d_]*$/.test(line)) return line;
  const words = line
    .replace(/([a-z\d])(?=[A-Z])/g, '$1 ')
    .toLowerCase()
    .split(/[ _]+/);
  return words
    .map((word) => (acronyms.has(word) ? word.toUpperCase() : word))
    .join(' ')
    .trim();
}

/** Words that are written in capitals. */
const acronyms = new Set(['id', 'cta', 'url', 'eu', 'ai']);

/** Returns the title of a column, such as `Landing domain`. */
export const formatColumnTitle = (name: string): string => capitalize(splitColumnName(name));

/** Returns a text with a capital first letter. */
export const capitalize = (words: string): string => words.replace(/^\p{Ll}/u, (letter) => letter.toUpperCase());
