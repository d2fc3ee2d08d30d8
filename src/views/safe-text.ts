/**
 * Quotes third-party text on a single line, so that readers can distinguish it from the server's own text.
 *
 * In formatted text, third-party text may appear in three places only:
 * - Between straight double quotes on a line of the server (`quote`). The quoted text contains neither straight double
 *   quotes nor line breaks, so it cannot close the quotes or start a new line.
 * - On separate lines that start with `> ` (`quoteLines`). No line of the server starts this way.
 * - In items with full detail, in the JSON strings after a field name (`formatFullView`), which stay on one line.
 *
 * Text needs no quotes only if it cannot form a sentence. This is the case for a single id, date, domain or constant
 * (`quoteUnlessWord`), and for a list of codes that all match a pattern (`quoteUnlessCodes`). Any other list is quoted
 * as a whole, because several words can form a sentence. Markdown links, images and HTML are always broken up with a
 * space or a look-alike character, so that hosts show them as plain text.
 */
export const quote = (text: string): string =>
  `"${disableMarkup(text.replace(breakPattern, ' ').trim()).replaceAll('"', "'")}"`;

const breakPattern = /\s{2,}|[^\S ]/g;

/** Quotes a text with several lines. Every line of the result starts with `> `. */
export const quoteLines = (text: string): string =>
  `> ${disableMarkup(text).replace(/\n\n+/g, '\n').replaceAll('\n', '\n> ')}`;

/** Returns a single word, such as an id, a date or a domain, without quotes. Quotes any other text. */
export const quoteUnlessWord = (text: string): string => (isWord(text) ? text : quote(text));

/** Returns a constant, such as `SHOP_NOW`, without quotes, even at the start of a line. Quotes any other text. */
export const quoteUnlessConstant = (text: string): string =>
  constantPattern.test(text) && isWord(text) ? text : quote(text);

/**
 * Returns a list of codes, e.g. `DE FR`, without quotes if every code matches `codePattern`. Otherwise, quotes the
 * whole list.
 */
export const quoteUnlessCodes = (codes: readonly string[], codePattern: RegExp): string => {
  const joinedCodes = codes.join(' ');
  return codes.every((code) => codePattern.test(code) || moreItemsPattern.test(code))
    ? joinedCodes
    : quote(joinedCodes);
};

/** Returns the code of a currency, such as `EUR`, without quotes. Quotes any other text. */
export const quoteUnlessCurrency = (text: string): string => quoteUnlessCodes([text], /^[A-Z]{3}$/);

/**
 * Matches a word of ASCII characters without a colon and without a period at the end. Does not match non-ASCII words,
 * because some scripts write sentences without spaces.
 */
const wordPattern = /^\w(?:[\w.+-]{0,78}[\w+-])?$/;
/**
 * Matches a sentence that is disguised as one word, e.g. `ignore_all_previous_instructions`. Because of the lookbehind,
 * a match can start only at the beginning of a word. Otherwise, the time for matching would be quadratic.
 */
const disguisedSentencePattern = /(?<![a-z])(?:[a-z]{3,}[^a-z]+){3}[a-z]{3}/i;
const uuidPattern = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;
const dateTimePattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?$/;
const constantPattern = /^[A-Z\d_]+$/;
/** Matches the note that this server adds to the end of a shortened list, e.g. `… (+3 more)`. */
const moreItemsPattern = /^… \(\+\d+ more\)$/;

/** Returns true if the text is a UUID. */
export const isUuid = (text: string): boolean => uuidPattern.test(text);

/** Returns true for a single word that cannot form a sentence, such as an id, a date, a domain or a constant. */
export const isWord = (text: string): boolean =>
  (wordPattern.test(text) && !disguisedSentencePattern.test(text)) || isUuid(text) || dateTimePattern.test(text);

/** Matches characters that have a special meaning in Markdown or HTML. */
const markupPattern = /[[<`\]!]/;

/** Inserts spaces and look-alike characters into Markdown and HTML, so that MCP hosts show both as plain text. */
export function disableMarkup(text: string): string {
  if (!markupPattern.test(text)) return text;
  return text
    .replace(/\](?=[([:])/g, '] ')
    .replace(/!(?=\[)/g, '! ')
    .replace(/<(?=[a-z/!?])/gi, '‹')
    .replaceAll('`', "'");
}

/**
 * Makes third-party text safe to show. Keeps visible characters and removes invisible characters.
 *
 * Removes control characters except newline and tab, text direction marks, zero-width and other default-ignorable
 * characters, and non-characters. Default-ignorable characters are, for example, soft hyphens, Hangul fillers,
 * variation selectors and tag characters (U+E0000 to U+E007F). A lone surrogate becomes U+FFFD.
 *
 * Keeps three kinds of invisible characters where they have a meaning:
 *
 * - joiners and variation selectors inside an emoji
 * - tag characters in the flags of England, Scotland and Wales
 * - ZWJ and ZWNJ between letters of scripts that use them (Persian, Indic …)
 *
 * Keeps at most eight combining marks in a row.
 */
export function sanitize(text: string): string {
  if (
    (!rareCharacterPattern.test(text) && text.isWellFormed()) ||
    !unusualCharacterPattern.test(text) ||
    !suspectCharacterPattern.test(text)
  )
    return text;
  return text
    .replace(lineBreakPattern, '\n')
    .replace(brailleBlankPattern, ' ')
    .replace(hiddenPattern, (match) => (isFlag(match) ? match : ''))
    .toWellFormed()
    .replace(excessMarksPattern, (marks) => marks.slice(0, measureAllowedMarks(marks)))
    .replace(strayJoinerPattern, '');
}

/**
 * Makes third-party text safe to show on a single line. Removes invisible characters and replaces line breaks with
 * spaces.
 */
export const sanitizeLine = (text: string): string => sanitize(text).replace(/\s+/gu, ' ').trim();

/**
 * Normalizes a text, so that texts that look the same are equal. The result is a single line in Unicode form NFC
 * without invisible characters.
 */
export const normalizeLine = (text: string): string => sanitizeLine(text).normalize('NFC');

const maxCombiningMarks = 8;

/**
 * Ranges of common characters that are neither invisible nor combining marks. If a text consists only of these
 * characters, it is safe without further checks.
 */
const commonCharacters = String.raw`\n\t -~\xa1-\xac\xae-\u02ff\u0386-\u0482\u048a-\u0556\u1e00-\u1eff\u2010-\u2027\u2030-\u205e\u20a0-\u20bf\u2190-\u27ff\u2900-\u2bff\u3000-\u3029\u3041-\u3096\u309b-\u312f\u3131-\u3163\u3400-\u9fff\uac00-\ud7a3\uff01-\uff9f`;
/** Matches a character that is neither in `commonCharacters` nor part of an emoji (U+1F000 to U+1FBFF). */
const rareCharacterClass = String.raw`[^${commonCharacters}\ud83c-\ud83e\udc00-\udfff]`;
/**
 * Used in the first check of `sanitize`: matches a rare character. Most texts of ads have no match and need no further
 * checks.
 */
const rareCharacterPattern = new RegExp(rareCharacterClass);
/**
 * Used in the second check of `sanitize`. Unlike `rareCharacterPattern`, does not match an emoji with a variation
 * selector, such as U+2764 U+FE0F (a red heart). Only a few texts have a match and need another check.
 */
const unusualCharacterPattern = new RegExp(
  String.raw`[^${commonCharacters}\p{ExtPict}\p{EMod}\p{RI}\ufe0f]|(?<!\p{ExtPict})\ufe0f`,
  'u',
);

// Matches default-ignorable (invisible) code points, control characters, annotation characters and non-characters.
// Joiners and emoji variation selectors are not included, because they are allowed between certain characters.
// `sanitize` checks them separately.
const hiddenCharacters = String.raw`(?![\u200c\u200d\ufe0e\ufe0f])[\p{DI}\ufff9-\ufffb\p{NChar}]|(?![\n\t])\p{Cc}`;
const flagSequence = String.raw`\u{1f3f4}\u{e0067}\u{e0062}(?:\u{e0065}\u{e006e}\u{e0067}|\u{e0073}\u{e0063}\u{e0074}|\u{e0077}\u{e006c}\u{e0073})\u{e007f}`;

// The letters and marks of scripts in which ZWNJ (zero-width non-joiner) or ZWJ (zero-width joiner) can appear between
// letters.
const lettersWithJoiners = String.raw`[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Mongolian}\p{Script=Nko}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Myanmar}]`;
const virama = String.raw`[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca]`;
const joinersInEmoji = String.raw`(?<=\p{ExtPict}[\ufe0f\p{EMod}]?)\u200d(?=\p{ExtPict})|(?<=\p{ExtPict})[\ufe0e\ufe0f]|(?<=[0-9#*])\ufe0f(?=\u20e3)`;
const joinersInScript = String.raw`(?<=${lettersWithJoiners})[\u200c\u200d](?=${lettersWithJoiners})|(?<=${virama})[\u200c\u200d]`;

const lineBreakPattern = /\r\n?|[\v\f\x85\u2028\u2029]/g;
/** Matches the blank Braille pattern, an unusual character that looks like a space. */
const brailleBlankPattern = /\u2800/g;
const hiddenPattern = new RegExp(`${flagSequence}|${hiddenCharacters}`, 'gu');
const excessMarksPattern = new RegExp(String.raw`[\p{M}\u200c\u200d]{${maxCombiningMarks + 1},}`, 'gu');
const strayJoinerPattern = new RegExp(`(?!${joinersInEmoji}|${joinersInScript})[\\u200c\\u200d\\ufe0e\\ufe0f]`, 'gu');
const suspectCharacterPattern = new RegExp(
  String.raw`[\r\u2800\u2028\u2029\u200c\u200d\ufe0e\ufe0f\p{Cs}]|${hiddenCharacters}|\p{M}{${maxCombiningMarks + 1}}`,
  'u',
);

/**
 * Returns true if a match of `hiddenPattern` is a flag that contains invisible tag characters, such as the flag of
 * Scotland. All other matches have at most two code units.
 */
const isFlag = (match: string) => match.length > 2;

/**
 * Returns the length of the first `maxCombiningMarks` characters of a sequence of combining marks, in UTF-16 code
 * units. `sanitize` removes the marks after these characters.
 */
function measureAllowedMarks(marks: string): number {
  let allowedLength = 0;
  for (let markCount = 0; markCount < maxCombiningMarks; markCount++)
    allowedLength += (marks.codePointAt(allowedLength) ?? 0) > 0xffff ? 2 : 1;
  return allowedLength;
}

/**
 * Computes a hash with six digits (FNV-1a), so that readers can recognize equal texts in different results. Six digits
 * take only two tokens. The hash of a very long text depends only on its beginning and its length.
 */
export const hashText = (text: string): number =>
  minHash + (computeFnv1a(text.slice(0, maxHashedChars), text.length) % (1_000_000 - minHash));

const maxHashedChars = 20_000;
const minHash = 100_000;

/** Computes the 32-bit FNV-1a hash of a text. This hash is fast, but not suitable for security. */
export function computeFnv1a(text: string, seed = 0): number {
  let hash = 0x811c9dc5 ^ seed;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash >>> 0;
}

/** Joins the texts in `parts` with a separator. Omits parts that are empty, zero, false or undefined. */
export const joinNonEmpty = (parts: readonly (string | number | false | undefined)[], separator: string): string =>
  parts.filter((part) => part).join(separator);

/** Joins the texts in `parts` with line breaks. Omits parts that are empty, zero, false or undefined. */
export const joinLines = (parts: Parameters<typeof joinNonEmpty>[0]): string => joinNonEmpty(parts, '\n');

/** Joins names like in an English sentence, e.g. `title, text and link`. */
export const joinNames = (names: readonly string[]): string =>
  [names.slice(0, -1).join(', '), names.at(-1)].filter(Boolean).join(' and ');
