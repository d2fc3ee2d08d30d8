/**
 * Where the service's and the advertisers' words end and ours begin.
 *
 * THE RULE. In text we render, a third party's words stand in one of three places only:
 *   - on a line of ours, between straight double quotes; inside them there is no straight double quote and no line
 *     break, so nothing in them can close the quotes or start a line (`quote`);
 *   - on lines of their own that start with `> ` (`quoteLines`). No line of ours starts so;
 *   - in a full view, in the strings of the JSON after a field's name (`fullText`), which keeps them on its line.
 * Bare stands only what cannot say anything: one id, date, domain or constant (`word`), and a list of codes of which
 * every one has the form it must have (`codes`). Any other list is quoted as a whole, for words in a row are a sentence.
 * In all of them Markdown links, images and HTML are broken up by a space or a look-alike, so that a host that renders
 * the text shows them as text; to a reader they stay legible.
 */
export const quote = (text: string): string => `"${defuse(text.replace(BREAKS, ' ').trim()).replaceAll('"', "'")}"`;

/** White space but for a single space, which may stay. */
const BREAKS = /\s{2,}|[^\S ]/g;

export const quoteLines = (text: string): string =>
  `> ${defuse(text).replace(/\n\n+/g, '\n').replaceAll('\n', '\n> ')}`;

/** An id, a date or a domain bare when it is one word, quoted when it is anything else. */
export const word = (text: string): string => (isWord(text) ? text : quote(text));

/** A value of an enumeration (`SHOP_NOW`) bare when it is written like one: only those may stand where a line starts. */
export const constant = (text: string): string => (CONSTANT.test(text) && isWord(text) ? text : quote(text));

/** Codes (`DE FR`) bare when each of them has the form, else all of them quoted. */
export const codes = (list: readonly string[], form: RegExp): string => {
  const joined = list.join(' ');
  return list.every((code) => form.test(code) || MORE.test(code)) ? joined : quote(joined);
};

/** ASCII only: in some scripts a sentence has no spaces. At its end no full stop, anywhere no colon. */
const WORD = /^\w(?:[\w.+-]{0,78}[\w+-])?$/;
/** `ignore_all_previous_instructions`. Looked for from the start of a word only, or the time grows with its square. */
const SENTENCE = /(?<![a-z])(?:[a-z]{3,}[^a-z]+){3}[a-z]{3}/i;
const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;
const DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?$/;
const CONSTANT = /^[A-Z\d_]+$/;
/** Our own note at the end of a list. */
const MORE = /^… \(\+\d+ more\)$/;

const isWord = (text: string) => (WORD.test(text) && !SENTENCE.test(text)) || UUID.test(text) || DATE_TIME.test(text);

const ACTIVE = /[[<`\]!]/;

export function defuse(text: string): string {
  if (!ACTIVE.test(text)) return text;
  return text
    .replace(/\](?=[([:])/g, '] ')
    .replace(/!(?=\[)/g, '! ')
    .replace(/<(?=[a-z/!?])/gi, '‹')
    .replaceAll('`', "'");
}
