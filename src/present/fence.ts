/**
 * Separates third-party text from our own.
 *
 * THE RULE. In rendered text, third-party text stands in one of three places only:
 *   - on one of our lines, between straight double quotes; it contains no straight double quote and no line break, so it
 *     cannot close the quotes or start a line (`quote`);
 *   - on lines of its own that start with `> ` (`quoteLines`). None of our lines starts this way;
 *   - in a full view, in the JSON strings after a field's name (`fullText`), which stay on one line.
 * Only what cannot form a sentence stands without quotes: one id, date, domain or constant (`word`), and a list of
 * codes that all have the required form (`codes`). Any other list is quoted as a whole, because words in a row can form
 * a sentence. Everywhere, a space or a look-alike breaks up Markdown links, images and HTML, so that a host that
 * renders the text shows them as text; readers can still read them.
 */
export const quote = (text: string): string => `"${defuse(text.replace(BREAKS, ' ').trim()).replaceAll('"', "'")}"`;

/** White space other than a single space. */
const BREAKS = /\s{2,}|[^\S ]/g;

export const quoteLines = (text: string): string =>
  `> ${defuse(text).replace(/\n\n+/g, '\n').replaceAll('\n', '\n> ')}`;

/** Leaves an id, a date or a domain bare if it is one word, and quotes anything else. */
export const word = (text: string): string => (isWord(text) ? text : quote(text));

/** Leaves a constant (`SHOP_NOW`) bare if it is written like one: only constants may start a line. */
export const constant = (text: string): string => (CONSTANT.test(text) && isWord(text) ? text : quote(text));

/** Leaves codes (`DE FR`) bare if each of them has the form, and otherwise quotes them all. */
export const codes = (list: readonly string[], form: RegExp): string => {
  const joined = list.join(' ');
  return list.every((code) => form.test(code) || MORE.test(code)) ? joined : quote(joined);
};

/** ASCII only, because some scripts write sentences without spaces. No full stop at the end, no colon anywhere. */
const WORD = /^\w(?:[\w.+-]{0,78}[\w+-])?$/;
/** `ignore_all_previous_instructions`. Searched from the start of words only; otherwise the time would be quadratic. */
const SENTENCE = /(?<![a-z])(?:[a-z]{3,}[^a-z]+){3}[a-z]{3}/i;
const UUID_FORM = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;
const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?$/;
const CONSTANT = /^[A-Z\d_]+$/;
/** Our own note at the end of a list. */
const MORE = /^… \(\+\d+ more\)$/;

export const isUuid = (text: string): boolean => UUID_FORM.test(text);

export const isWord = (text: string): boolean =>
  (WORD.test(text) && !SENTENCE.test(text)) || isUuid(text) || DATE_TIME.test(text);

const ACTIVE = /[[<`\]!]/;

export function defuse(text: string): string {
  if (!ACTIVE.test(text)) return text;
  return text
    .replace(/\](?=[([:])/g, '] ')
    .replace(/!(?=\[)/g, '! ')
    .replace(/<(?=[a-z/!?])/gi, '‹')
    .replaceAll('`', "'");
}
