/**
 * Makes third-party text safe to read: keeps what a person can see, and removes what is invisible.
 *
 * Removed: control characters except newline and tab, bidi marks, zero-width and other default-ignorable characters
 * (soft hyphen, Hangul fillers, tag block, variation selectors …), non-characters. A lone surrogate becomes U+FFFD.
 * Kept where they carry meaning: the joiner and the selector inside an emoji, the three flags spelled in tags, ZWJ/ZWNJ
 * between letters of scripts that join (Persian, Indic …). A letter keeps at most eight marks.
 */
export function sanitize(text: string): string {
  if (!UNUSUAL.test(text) || !UNUSUAL_BESIDE_EMOJI.test(text) || !SUSPECT.test(text)) return text;
  return text
    .replace(LINE_BREAK, '\n')
    .replace(BLANK, ' ')
    .replace(HIDDEN, (match) => (isFlag(match) ? match : ''))
    .replace(LONE_SURROGATE, '\ufffd')
    .replace(MARKS, (run) => run.slice(0, endOfMarks(run)))
    .replace(JOINERS, '');
}

/** The same for a text on one line, such as a name. */
export const sanitizeLine = (text: string): string => sanitize(text).replace(/\s+/gu, ' ').trim();

const MAX_MARKS = 8;

/** Common blocks in which nothing is hidden and nothing combines. */
const EVERYDAY = String.raw`\n\t -~\xa1-\xac\xae-\u02ff\u0386-\u0482\u048a-\u0556\u2010-\u2027\u2030-\u205e\u20a0-\u20bf\u2190-\u2307\u2500-\u25a9\u3000-\u3029\u3041-\u3096\u309b-\u312f\u3131-\u3163\u3400-\u9fff\uac00-\ud7a3\uff01-\uff9f`;
/** A single character outside them. Most copy has none, and needs no further check. */
const UNUSUAL = new RegExp(`[^${EVERYDAY}]`);
/** The same, but emoji with or without their selector are common, too. Little copy needs a further check. */
const UNUSUAL_BESIDE_EMOJI = new RegExp(
  String.raw`[^${EVERYDAY}\p{ExtPict}\p{EMod}\p{RI}\ufe0f]|(?<!\p{ExtPict})\ufe0f`,
  'u',
);

// Default-ignorable code points, controls, annotation marks and non-characters; the joiners and the two emoji
// selectors are checked in their context.
const ALWAYS_HIDDEN = String.raw`(?![\u200c\u200d\ufe0e\ufe0f])[\p{DI}\ufff9-\ufffb\p{NChar}]|(?![\n\t])\p{Cc}`;
const TAG_FLAG = String.raw`\u{1f3f4}\u{e0067}\u{e0062}(?:\u{e0065}\u{e006e}\u{e0067}|\u{e0073}\u{e0063}\u{e0074}|\u{e0077}\u{e006c}\u{e0073})\u{e007f}`;

// Letters and marks of scripts that are written with ZWNJ or ZWJ between them.
const JOINING = String.raw`[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Mongolian}\p{Script=Nko}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Myanmar}]`;
const VIRAMA = String.raw`[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca]`;
const IN_EMOJI = String.raw`(?<=\p{ExtPict}[\ufe0f\p{EMod}]?)\u200d(?=\p{ExtPict})|(?<=\p{ExtPict})[\ufe0e\ufe0f]|(?<=[0-9#*])\ufe0f(?=\u20e3)`;
const IN_SCRIPT = String.raw`(?<=${JOINING})[\u200c\u200d](?=${JOINING})|(?<=${VIRAMA})[\u200c\u200d]`;

const LINE_BREAK = /\r\n?|[\v\f\x85\u2028\u2029]/g;
/** Braille blank: looks like a space and is used as one. */
const BLANK = /\u2800/g;
const HIDDEN = new RegExp(`${TAG_FLAG}|${ALWAYS_HIDDEN}`, 'gu');
const LONE_SURROGATE = /\p{Cs}/gu;
const MARKS = new RegExp(String.raw`[\p{M}\u200c\u200d]{${MAX_MARKS + 1},}`, 'gu');
const JOINERS = new RegExp(`(?!${IN_EMOJI}|${IN_SCRIPT})[\\u200c\\u200d\\ufe0e\\ufe0f]`, 'gu');
const SUSPECT = new RegExp(
  String.raw`[\r\u2800\u2028\u2029\u200c\u200d\ufe0e\ufe0f\p{Cs}]|${ALWAYS_HIDDEN}|\p{M}{${MAX_MARKS + 1}}`,
  'u',
);

const isFlag = (match: string) => match.length > 2;

function endOfMarks(run: string): number {
  let end = 0;
  for (let kept = 0; kept < MAX_MARKS; kept++) end += (run.codePointAt(end) ?? 0) > 0xffff ? 2 : 1;
  return end;
}

/**
 * Six digits that are the same for texts that are the same, in every result (FNV-1a). Digits, because a model reads six
 * of them as two tokens. Of an endless text, the start and the length count.
 */
export const hashOf = (text: string): number =>
  LOWEST + (fnv1a(text.slice(0, MAX_LENGTH), text.length) % (1_000_000 - LOWEST));

const MAX_LENGTH = 20_000;
const LOWEST = 100_000;

export function fnv1a(text: string, seed = 0): number {
  let hash = 0x811c9dc5 ^ seed;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash >>> 0;
}
