import { sanitizeLine } from './safe-text.ts';

/** `landingDomain` and `landing_domain` as `landing domain`; what somebody wrote as words stays as it is. */
export function columnWords(name: string): string {
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

export const columnTitle = (name: string): string => sentence(columnWords(name));

export const sentence = (words: string): string => words.replace(/^\p{Ll}/u, (letter) => letter.toUpperCase());
