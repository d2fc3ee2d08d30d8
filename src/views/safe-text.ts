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
export const quote = (text: string): string =>
  `"${disableMarkup(text.replace(breakPattern, ' ').trim()).replaceAll('"', "'")}"`;

const breakPattern = /\s{2,}|[^\S ]/g;

export const quoteLines = (text: string): string =>
  `> ${disableMarkup(text).replace(/\n\n+/g, '\n').replaceAll('\n', '\n> ')}`;

/** Leaves an id, a date or a domain bare if it is one word, and quotes anything else. */
export const quoteUnlessWord = (text: string): string => (isWord(text) ? text : quote(text));

/** Leaves a constant (`SHOP_NOW`) bare if it is written like a constant: only constants may start a line. */
export const quoteUnlessConstant = (text: string): string =>
  constantPattern.test(text) && isWord(text) ? text : quote(text);

/** Leaves codes (`DE FR`) bare if each of them has the form, and otherwise quotes them all. */
export const quoteUnlessCodes = (list: readonly string[], form: RegExp): string => {
  const joined = list.join(' ');
  return list.every((code) => form.test(code) || morePattern.test(code)) ? joined : quote(joined);
};

/** ASCII only, because some scripts write sentences without spaces. No full stop at the end, no colon anywhere. */
const wordPattern = /^\w(?:[\w.+-]{0,78}[\w+-])?$/;
/** `ignore_all_previous_instructions`. Searched from the start of words only; otherwise the time would be quadratic. */
const sentencePattern = /(?<![a-z])(?:[a-z]{3,}[^a-z]+){3}[a-z]{3}/i;
const uuidForm = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;
const dateTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?$/;
const constantPattern = /^[A-Z\d_]+$/;
/** Our own note at the end of a list. */
const morePattern = /^… \(\+\d+ more\)$/;

export const isUuid = (text: string): boolean => uuidForm.test(text);

export const isWord = (text: string): boolean =>
  (wordPattern.test(text) && !sentencePattern.test(text)) || isUuid(text) || dateTime.test(text);

const active = /[[<`\]!]/;

export function disableMarkup(text: string): string {
  if (!active.test(text)) return text;
  return text
    .replace(/\](?=[([:])/g, '] ')
    .replace(/!(?=\[)/g, '! ')
    .replace(/<(?=[a-z/!?])/gi, '‹')
    .replaceAll('`', "'");
}

/**
 * Makes third-party text safe to read: keeps what a person can see, and removes what is invisible.
 *
 * Removed: control characters except newline and tab, bidi marks, zero-width and other default-ignorable characters
 * (soft hyphen, Hangul fillers, tag block, variation selectors …), non-characters. A lone surrogate becomes U+FFFD.
 * Kept where they carry meaning: the joiner and the selector inside an emoji, the three flags spelled in tags, ZWJ/ZWNJ
 * between letters of scripts that join (Persian, Indic …). A letter keeps at most eight marks.
 */
export function sanitize(text: string): string {
  if ((!rare.test(text) && text.isWellFormed()) || !unusual.test(text) || !suspect.test(text)) return text;
  return text
    .replace(lineBreak, '\n')
    .replace(blankPattern, ' ')
    .replace(hiddenPattern, (match) => (isFlag(match) ? match : ''))
    .toWellFormed()
    .replace(markPattern, (run) => run.slice(0, endOfMarks(run)))
    .replace(joinerPattern, '');
}

export const sanitizeLine = (text: string): string => sanitize(text).replace(/\s+/gu, ' ').trim();

const maxMarks = 8;

/** Common blocks in which nothing is hidden and nothing combines. */
const everyday = String.raw`\n\t -~\xa1-\xac\xae-\u02ff\u0386-\u0482\u048a-\u0556\u1e00-\u1eff\u2010-\u2027\u2030-\u205e\u20a0-\u20bf\u2190-\u27ff\u2900-\u2bff\u3000-\u3029\u3041-\u3096\u309b-\u312f\u3131-\u3163\u3400-\u9fff\uac00-\ud7a3\uff01-\uff9f`;
/** Neither in these blocks nor half an emoji (U+1F000 to U+1FBFF). */
const rareForm = String.raw`[^${everyday}\ud83c-\ud83e\udc00-\udfff]`;
/** Most copy has no such character, and needs no further check. */
const rare = new RegExp(rareForm);
/** The same, but an emoji may have its selector. Little copy needs a further check. */
const unusual = new RegExp(String.raw`[^${everyday}\p{ExtPict}\p{EMod}\p{RI}\ufe0f]|(?<!\p{ExtPict})\ufe0f`, 'u');

// Default-ignorable code points, controls, annotation marks and non-characters; the joiners and the two emoji
// selectors are checked in their context.
const alwaysHidden = String.raw`(?![\u200c\u200d\ufe0e\ufe0f])[\p{DI}\ufff9-\ufffb\p{NChar}]|(?![\n\t])\p{Cc}`;
const tagFlag = String.raw`\u{1f3f4}\u{e0067}\u{e0062}(?:\u{e0065}\u{e006e}\u{e0067}|\u{e0073}\u{e0063}\u{e0074}|\u{e0077}\u{e006c}\u{e0073})\u{e007f}`;

// Letters and marks of scripts that are written with ZWNJ or ZWJ between them.
const joining = String.raw`[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Mongolian}\p{Script=Nko}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Myanmar}]`;
const virama = String.raw`[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca]`;
const inEmoji = String.raw`(?<=\p{ExtPict}[\ufe0f\p{EMod}]?)\u200d(?=\p{ExtPict})|(?<=\p{ExtPict})[\ufe0e\ufe0f]|(?<=[0-9#*])\ufe0f(?=\u20e3)`;
const inScript = String.raw`(?<=${joining})[\u200c\u200d](?=${joining})|(?<=${virama})[\u200c\u200d]`;

const lineBreak = /\r\n?|[\v\f\x85\u2028\u2029]/g;
/** Braille blank: looks like a space and is used as one. */
const blankPattern = /\u2800/g;
const hiddenPattern = new RegExp(`${tagFlag}|${alwaysHidden}`, 'gu');
const markPattern = new RegExp(String.raw`[\p{M}\u200c\u200d]{${maxMarks + 1},}`, 'gu');
const joinerPattern = new RegExp(`(?!${inEmoji}|${inScript})[\\u200c\\u200d\\ufe0e\\ufe0f]`, 'gu');
const suspect = new RegExp(
  String.raw`[\r\u2800\u2028\u2029\u200c\u200d\ufe0e\ufe0f\p{Cs}]|${alwaysHidden}|\p{M}{${maxMarks + 1}}`,
  'u',
);

const isFlag = (match: string) => match.length > 2;

function endOfMarks(run: string): number {
  let end = 0;
  for (let kept = 0; kept < maxMarks; kept++) end += (run.codePointAt(end) ?? 0) > 0xffff ? 2 : 1;
  return end;
}

/**
 * Six digits that are the same for texts that are the same, in every result (FNV-1a). Digits, because six digits are
 * two tokens. For an endless text, the start and the length are hashed.
 */
export const hashText = (text: string): number =>
  lowest + (fnv1a(text.slice(0, maxLength), text.length) % (1_000_000 - lowest));

const maxLength = 20_000;
const lowest = 100_000;

export function fnv1a(text: string, seed = 0): number {
  let hash = 0x811c9dc5 ^ seed;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash >>> 0;
}

export const joinNonEmpty = (parts: readonly (string | number | false | undefined)[], between: string): string =>
  parts.filter((part) => part).join(between);

export const joinLines = (parts: Parameters<typeof joinNonEmpty>[0]): string => joinNonEmpty(parts, '\n');

/** Names in a sentence: `title, text and link`. */
export const joinNames = (names: readonly string[]): string =>
  [names.slice(0, -1).join(', '), names.at(-1)].filter(Boolean).join(' and ');
