import type { Separators } from './source.ts';

/** Characters that some pattern of ours treats as special, or that cleaning a text removes, keeps or looks beside. */
const characters = [
  ...'aZ09 _-.,:;=?!&#%/\\|*+~^$@<>()[]{}"\'`\n\t\r',
  ...['©', '®', '‼', '⁉', '↔', '↗', '↩', '↪', '❤', '👩', '🏽', '🏴', '🇩', '\ufe0f', '\ufe0e', '\u20e3', '…', 'é', 'ß'],
  ...['\u200b', '\u200c', '\u200d', '\u202e', '\u2066', '\u2028', '\xad', '\xa0', '\u2800', '\u3164', '\ufeff', '\0'],
  ...['\u0301', '\u{1d167}', '\u094d', '\u0e31', 'क', 'م', 'ก', '中', 'か', '한', '\u{e0067}', '\u{e007f}'],
  ...'\ud800 \udc00 👩\u200d ❤\ufe0f \\u0041 %25 &amp; {{ [a]( <a> svc_ svc_live_CANARY'.split(' '),
  'aaa ',
];

/** What makes a pattern fail, or a text end in the middle of something. */
const endings = ['ก\u202e!', '"x'];

export interface HostileText {
  name: string;
  ofLength(length: number): string;
}

const hostileText = (start: string, piece: string, end: string): HostileText => ({
  name: `${JSON.stringify(start)}, then ${JSON.stringify(piece)} over and over, then ${JSON.stringify(end)}`,
  ofLength: (length) => start + piece.repeat(Math.ceil(length / piece.length)) + end,
});

const repeated = (pieces: Iterable<string>): HostileText[] =>
  [...new Set(pieces)].map((piece) => hostileText('', piece, endings[0] ?? ''));

/** Each of the characters over and over, and something at the end. */
const hostileTexts: HostileText[] = characters.flatMap((piece) => endings.map((end) => hostileText('', piece, end)));

/** A word in a pattern, what one character fits, and what only steers it. */
const place =
  /[a-z_]{2,}(?![*+?{])|\\u\{[\da-f]+\}|\\u[\da-f]{4}|\\x[\da-f]{2}|\\p\{[^}]*\}|\[(?:\\.|[^\]\\])*\]|\\.|\(\?<?[=!:]?|\{[\d,]+\}|./gisu;
const written = /\\u\{?([\da-f]{4,6})\}?|\\x([\da-f]{2})|\\([nrt])|\\[wdspbk]|\\/gi;
const controls: Record<string, string> = { n: '\n', r: '\r', t: '\t' };
/** What no pattern has to name to take it. */
const unnamed = ' 0a.';
/** Characters that are tried in one place, and places from which the characters of one piece are. */
const maxLetters = 8;
const reach = 4;

/** For each place of a pattern, in turn, the word it is, or the characters that fit it, of those that the pattern names. */
function placesOf({ source, flags }: RegExp): string[][] {
  const named = source.replace(written, (_, four, two, control) =>
    control ? (controls[control.toLowerCase()] ?? '') : String.fromCodePoint(Number.parseInt(four ?? two ?? '20', 16)),
  );
  const alphabet = [...new Set(named + unnamed)];
  return (source.match(place) ?? []).flatMap((one) => {
    if (/^\w\w/.test(one)) return [[one]];
    const fits = patternOf(`^(?:${one})$`, flags);
    const letters = alphabet.filter((letter) => fits?.test(letter));
    const few =
      letters.length > maxLetters
        ? [...letters.slice(0, 3), ...unnamed].filter((one) => letters.includes(one))
        : letters;
    return few.length > 0 ? [few] : [];
  });
}

/** Nothing where that is no pattern by itself. */
function patternOf(source: string, flags: string): RegExp | undefined {
  try {
    return new RegExp(source, flags.replace(/[gy]/g, ''));
  } catch {}
}

/** A character for each of so many places, one behind the other: what lies between may be empty, or was only looked at. */
const through = (places: readonly string[][], count: number): string[] =>
  count === 0
    ? ['']
    : places.slice(0, reach).flatMap((letters, at) => {
        const rest = through(places.slice(at + 1), count - 1);
        return letters.flatMap((letter) => rest.map((more) => letter + more));
      });

/** What a pattern is made of: its words, and what it reads in up to so many of its places. */
function piecesOf(pattern: RegExp, count: number): string[] {
  const places = placesOf(pattern);
  const counts = Array.from({ length: count }, (_, index) => index + 1);
  return counts.flatMap((count) => places.flatMap((_, at) => through(places.slice(at), count)));
}

/** What a pattern is made of over and over, and one of its characters behind another. */
export function textsAgainst(pattern: RegExp): HostileText[] {
  const letters = [...new Set(placesOf(pattern).flat())].slice(0, 14);
  const after = letters.flatMap((first) =>
    letters.map((second) => hostileText(first + second, second, endings[0] ?? '')),
  );
  const common = hostileTexts.filter((_, at) => pattern.flags.includes('u') || at % 2 === 0);
  return [...repeated(piecesOf(pattern, 3)), ...after, ...common];
}

/** Pieces of which a function is tried with so many, evenly chosen. */
const maxPieces = 400;

/** What a file looks for over and over: what its patterns are made of, its signs, and either behind the other. */
export function textsFor({ literals, signs }: Pick<Separators, 'literals' | 'signs'>): HostileText[] {
  const read = literals.flatMap((pattern) => piecesOf(pattern, 2));
  const both = signs.flatMap((sign) => [...read, ...signs].flatMap((piece) => [piece + sign, sign + piece]));
  const pieces = [...new Set([...signs, ...read, ...both])];
  const each = Math.ceil(pieces.length / maxPieces);
  return [...repeated(pieces.filter((_, at) => at % each === 0)), ...hostileTexts.filter((_, at) => at % 2 === 0)];
}
