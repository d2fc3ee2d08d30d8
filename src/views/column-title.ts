import { sanitizeLine } from './safe-text.ts';

/**
 * Splits a column name into words. For example, both `landingDomain` and `landing_domain` become `landing domain`.
 * Returns a name that already consists of words unchanged.
 */
export function splitColumnName(columnName: string): string {
  const cleanName = sanitizeLine(columnName);
  if (!/^[A-Za-z][A-Za-z\d_]*$/.test(cleanName)) return cleanName;
  const words = cleanName
    .replace(/([a-z\d])(?=[A-Z])/g, '$1 ')
    .toLowerCase()
    .split(/[ _]+/);
  return words
    .map((word) => (acronyms.has(word) ? word.toUpperCase() : word))
    .join(' ')
    .trim();
}

/** Words that column titles show in upper case. */
const acronyms = new Set(['id', 'cta', 'url', 'eu', 'ai']);

/** Formats a column name as a title, e.g. `Landing domain`. */
export const formatColumnTitle = (columnName: string): string => capitalize(splitColumnName(columnName));

/** Converts the first letter of a text to upper case. */
export const capitalize = (text: string): string => text.replace(/^\p{Ll}/u, (letter) => letter.toUpperCase());
