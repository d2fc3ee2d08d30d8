/**
 * Where the service's and the advertisers' words end and ours begin.
 *
 * THE RULE. In text we render, a third party's words stand in one of three places only:
 *   - on a line of ours, between straight double quotes; inside them there is no straight double quote and no line
 *     break, so nothing in them can close the quotes or start a line (`quote`);
 *   - on lines of their own that start with `> ` (`quoteLines`). No line of ours starts so;
 *   - in a full view, in the strings of the JSON after a field's name (`fullText`), which keeps them on its line.
 * A single word made of letters, digits and `_.:+-` needs no quotes: it cannot say anything (`word`).
 * In all of them Markdown links, images and HTML are broken up by a space or a look-alike, so that a host that renders
 * the text shows them as text; to a reader they stay legible.
 */
export const quote = (text: string): string => `"${defuse(text.replace(/\s+/gu, ' ').trim()).replaceAll('"', "'")}"`;

export const quoteLines = (text: string): string =>
  `> ${defuse(text).replace(/\n\n+/g, '\n').replaceAll('\n', '\n> ')}`;

/** A name of the service's (`SHOP_NOW`, an id, a domain) bare when it is one word, quoted when it is anything else. */
export const word = (text: string): string => (WORD.test(text) ? text : quote(text));

const WORD = /^[\p{L}\p{N}_][\p{L}\p{N}\p{M}_.:+-]{0,79}$/u;

const ACTIVE = /[[<`\]!]/;

export function defuse(text: string): string {
  if (!ACTIVE.test(text)) return text;
  return text
    .replace(/\](?=[([:])/g, '] ')
    .replace(/!(?=\[)/g, '! ')
    .replace(/<(?=[a-z/!?])/gi, '‹')
    .replaceAll('`', "'");
}
