import { sanitizeLine } from './safe-text.ts';

/** `landingDomain` and `landing_domain` as `landing domain`; what somebody wrote as words stays as it is. */
export function splitColumnName(name: string): string {
  const line = sanitizeLine(name);
  if (!/^[A-Za-z][A-Za-z\d_]*$/.test(line)) return line;
  const words = line
    .replace(/([a-z\d])(?=[A-Z])/g, '$1 ')
    .toLowerCase()
    .split(/[ _]+/);
  return words
    .map((word) => (initials.has(word) ? word.toUpperCase() : word))
    .join(' ')
    .trim();
}

const initials = new Set(['id', 'cta', 'url', 'eu', 'ai']);

export const formatColumnTitle = (name: string): string => capitalize(splitColumnName(name));

export const capitalize = (words: string): string => words.replace(/^\p{Ll}/u, (letter) => letter.toUpperCase());
